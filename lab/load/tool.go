package load

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// toolMaxBytes of a tool's output are kept; a report has some kilobytes.
	toolMaxBytes = 1 << 20
	// toolErrorBytes of what it said last stand in an error.
	toolErrorBytes = 600
	// toolLineBytes bounds a line that is watched.
	toolLineBytes = 64 << 10
	// toolGrace is how long a tool may take to end after SIGTERM.
	toolGrace = 5 * time.Second
)

// tool is one run of a program that others wrote.
type tool struct {
	path  string
	args  []string
	env   []string // in addition to ours; secrets go here or to input, never to args
	input string
	// line is called with each line of standard error (or output, if watchOutput), as it
	// comes; nil for none.
	line        func(string)
	watchOutput bool
	grace       time.Duration // 0 is toolGrace
}

// ended is how a tool's run came out.
type ended struct {
	output, errors []byte
	cpuSeconds     float64
}

// run starts the tool and waits for its end, which the end of ctx brings about: SIGTERM
// to it and its children, after toolGrace SIGKILL. A tool also dies with this process. It
// has a process group of its own, so that Ctrl-C at the terminal is ours to handle.
func (t tool) run(ctx context.Context) (*ended, error) {
	// The kernel ties a child's life to the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// A child inherits how much longer than asked the kernel may let it sleep: 50 µs as a
	// rule, which a load from a schedule would count as the server's (prctl(2)).
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)                    // it is done without, less exact
	defer func() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0) }() // what it was before
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, t.path, t.args...)
	cmd.Env = append(os.Environ(), append([]string{"LC_ALL=C"}, t.env...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	if cmd.WaitDelay = t.grace; t.grace == 0 {
		cmd.WaitDelay = toolGrace
	}
	if t.input != "" {
		cmd.Stdin = strings.NewReader(t.input)
	}
	output, errs := &keeper{max: toolMaxBytes}, &keeper{max: toolMaxBytes}
	watched := errs
	if t.watchOutput {
		watched = output
	}
	watched.line = t.line
	cmd.Stdout, cmd.Stderr = output, errs
	err := cmd.Run()
	e := &ended{output: output.kept.Bytes(), errors: errs.kept.Bytes()}
	if cmd.ProcessState != nil {
		e.cpuSeconds = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	}
	if ctx.Err() != nil {
		return e, fmt.Errorf("%s: %w", filepath.Base(t.path), ctx.Err())
	}
	if err != nil {
		said := bytes.TrimSpace(errs.kept.Bytes())
		if len(said) == 0 {
			said = bytes.TrimSpace(output.kept.Bytes()) // sysbench reports errors there
		}
		return e, fmt.Errorf("%s: %w: %s", filepath.Base(t.path), err, said[max(0, len(said)-toolErrorBytes):])
	}
	return e, nil
}

// keeper keeps the beginning of an output and passes lines on. What is beyond its bound
// is read and dropped, or the tool would stop at a full pipe.
type keeper struct {
	max  int
	kept bytes.Buffer
	line func(string)
	rest []byte
}

func (k *keeper) Write(p []byte) (int, error) {
	k.kept.Write(p[:min(len(p), k.max-k.kept.Len())])
	if k.line == nil {
		return len(p), nil
	}
	k.rest = append(k.rest, p...)
	for {
		line, rest, ok := bytes.Cut(k.rest, []byte("\n"))
		if !ok {
			break
		}
		k.line(string(line))
		k.rest = rest
	}
	if len(k.rest) > toolLineBytes {
		k.rest = nil
	}
	return len(p), nil
}

// findTool looks for a program: the newest in the folders that match the pattern ("" for
// none), then on PATH.
func findTool(name, debianPackage, pattern string) (string, error) {
	if found, err := filepath.Glob(filepath.Join(pattern, name)); err == nil && pattern != "" && len(found) > 0 {
		return slices.MaxFunc(found, func(a, b string) int { return slices.Compare(numbers(a), numbers(b)) }), nil
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%[1]s is not installed; it is in the Debian package %[2]s (as root: apt-get install %[2]s): %[3]w", name, debianPackage, err)
	}
	return path, nil
}

// numbers are those in a path, so that version 16 is after 9.6.
func numbers(path string) []int {
	var all []int
	for _, digits := range strings.FieldsFunc(path, func(r rune) bool { return r < '0' || r > '9' }) {
		n, err := strconv.Atoi(digits)
		if err != nil {
			n = math.MaxInt // of more digits than any version has
		}
		all = append(all, n)
	}
	return all
}

// version asks a tool for the line with its name and version.
func version(ctx context.Context, path string) (string, error) {
	e, err := tool{path: path, args: []string{"--version"}}.run(ctx)
	if err != nil {
		return "", err
	}
	line, _, _ := bytes.Cut(e.output, []byte("\n"))
	return strings.TrimSpace(string(line)), nil
}

// eachLine reads lines of a bounded length and number.
func eachLine(r io.Reader, linesMax int, visit func(n int, line string) error) error {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, toolLineBytes)
	for n := 1; scanner.Scan(); n++ {
		if n > linesMax {
			return fmt.Errorf("line %d: %w", n, errTooLong)
		}
		if err := visit(n, scanner.Text()); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	return scanner.Err()
}

var errTooLong = errors.New("there are more lines than can be right")

// wholeSeconds rounds up to what the tools take.
func wholeSeconds(d time.Duration) int { return max(1, int((d+time.Second-1)/time.Second)) }

// toolSeed fits what the tools take, and is never 0, which means the clock to sysbench.
func toolSeed(seed uint64) uint64 { return seed%2_000_000_000 + 1 }
