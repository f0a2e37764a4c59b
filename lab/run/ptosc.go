package run

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"kurabe/lab/dial"
	"kurabe/lab/result"
	"kurabe/lab/study"
)

const (
	// toolSaidMax is what is kept of what a tool says.
	toolSaidMax = 4 << 10
	// toolLineMax bounds a line of it.
	toolLineMax = 64 << 10
	// criticalThreads is how many running threads beside the load's own make the tool give
	// up. It is the tool's default; all sessions of an open load run at once after a stall.
	criticalThreads = 50
	// toolPatience is for a tool that was told to stop: it drops its triggers first.
	toolPatience = 10 * time.Second
)

// ptOSC has Percona's tool make the change. A statement is what follows ALTER TABLE
// {table}. Its table of copies is dropped with the trial's data if it is interrupted.
func (c *change) ptOSC(ctx context.Context) error {
	path, err := exec.LookPath(study.ToolPtOSC)
	if err != nil {
		return fmt.Errorf("%w; it is in the package percona-toolkit", err)
	}
	for _, alter := range c.statements {
		if err := c.runPtOSC(ctx, path, alter); err != nil {
			return err
		}
	}
	return nil
}

// runPtOSC runs it once. It ends with us: the order to do so is tied to the thread that
// starts it (golang/go#27505). In a process group of its own Ctrl-C is ours to handle.
func (c *change) runPtOSC(ctx context.Context, path, alter string) error {
	options, err := optionFile(c.server)
	if err != nil {
		return fmt.Errorf("give %s the password: %w", study.ToolPtOSC, err)
	}
	defer options.Close()
	reader, writer, err := os.Pipe()
	if err != nil {
		return err
	}
	defer reader.Close()
	// What the first of ExtraFiles is called in the new process.
	const optionPath = "/dev/fd/3"
	cmd := exec.CommandContext(ctx, path, "--alter", alter, "--execute", "--no-version-check", "--no-check-replication-filters",
		"--recursion-method=none", fmt.Sprintf("--critical-load=Threads_running=%d", criticalThreads+c.clients), fmt.Sprintf("F=%s,h=%s,P=%d,D=%s,t=%s", optionPath, c.server.Host, c.server.Port, c.server.Database, c.table))
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = writer, writer, []*os.File{options}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it drops its triggers
	cmd.WaitDelay = toolPatience
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err = cmd.Start()
	writer.Close() // the tool has its own
	if err != nil {
		return err
	}
	said := make(chan string, 1)
	go func() { said <- c.hear(reader) }()
	err = cmd.Wait()
	// A child of the tool that outlives it would keep the pipe open.
	if deadline := reader.SetReadDeadline(time.Now().Add(toolPatience)); deadline != nil {
		reader.Close()
	}
	text := <-said
	if err != nil {
		return fmt.Errorf("%s: %w: %s", study.ToolPtOSC, err, text)
	}
	return nil
}

// optionFile holds user and password for a tool, in memory: arguments are for everybody
// to read, and a file would outlive us.
func optionFile(s dial.Server) (*os.File, error) {
	fd, err := unix.MemfdCreate("options", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "options")
	// One that others may write is not read.
	if err = file.Chmod(0o600); err == nil {
		_, err = file.WriteString(optionText(s))
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// optionText is in the notation of my.cnf. Without TLS being asked for it is used where
// the server has it, as by every client.
func optionText(s dial.Server) string {
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`)
	text := fmt.Sprintf("[client]\nuser=\"%s\"\npassword=\"%s\"\nhost=\"%s\"\nport=%d\n",
		quote.Replace(s.User), quote.Replace(string(s.Password)), quote.Replace(s.Host), s.Port)
	if s.TLS {
		text += "ssl-enforce\nssl-verify-server-cert=0\n"
	}
	return text
}

// toolTime begins some of the tool's lines.
var toolTime = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\s+`)

// toolSteps begin the lines that tell what the tool does next.
var toolSteps = []string{"Creating new table", "Altering new table", "Creating triggers", "Copying approximately", "Analyzing new table", "Swapping tables", "Dropping old table", "Dropping triggers"}

// hear notes the steps that the tool tells of and keeps the end of what it says.
func (c *change) hear(output io.Reader) string {
	var said string
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, toolLineMax)
	for lines.Scan() {
		line := toolTime.ReplaceAllString(lines.Text(), "")
		said += line + "\n"
		said = said[max(0, len(said)-toolSaidMax):]
		for _, step := range toolSteps {
			if strings.HasPrefix(line, step) {
				c.tell(result.EventStep, step)
			}
		}
	}
	// After a line too long for us the tool must still be able to speak.
	_, _ = io.Copy(io.Discard, output)
	return strings.ToValidUTF8(strings.TrimSpace(said), "")
}
