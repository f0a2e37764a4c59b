package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Tool is a short program that we wait for, as initdb. The fields are those of
// Spec. It may outlive a kill of ours, as anything does; give it the LockFile of
// the data folder it works on, so that nothing else starts there meanwhile.
type Tool struct {
	Name     string
	Argv     []string
	Env      []string
	Dir      string
	User     *Credential
	Stdin    []byte // the way for secrets
	LockFile string
	Cgroups  []string
	Umask    int
	Nofile   uint64
	BindAs   string
	BindFrom string
	Seclude  *Seclusion

	StdoutBytesMax int // 0 means 1 MiB; more output is an error

	// Stdout and Stderr get all output as it comes, instead of what Run keeps of it. Where
	// a Write fails, and when we die, the tool finds the pipe broken.
	Stdout, Stderr io.Writer
	// RecordFile is Spec's, for a tool that somebody may have to Find.
	RecordFile string

	// DiskBytesPerSecondMax bounds what the tool reads from disks, and what it writes to
	// them, where that can be seen; 0 means no bound. Page cache is not disk.
	DiskBytesPerSecondMax int64
}

// ToolError is a tool that ran and failed.
type ToolError struct {
	Name   string
	Exit   ExitStatus
	Stderr string // last lines
}

func (e *ToolError) Error() string {
	if e.Stderr == "" {
		return fmt.Sprintf("%s: %v", e.Name, e.Exit)
	}
	return fmt.Sprintf("%s: %v: %s", e.Name, e.Exit, e.Stderr)
}

const (
	stdoutBytesDefault = 1 << 20
	stderrBytesKept    = 8 << 10
	stderrLinesShown   = 10
	// A grandchild may keep our pipes open after the tool has ended.
	toolPipeWait = 2 * time.Second
)

// errOutputTooLong: half an answer must not be parsed as a whole one.
var errOutputTooLong = errors.New("output is too long")

// Run runs a tool to its end and returns its standard output. When ctx ends, the
// whole process group is killed.
func Run(ctx context.Context, tool Tool) ([]byte, error) {
	spec := Spec{
		Name: tool.Name, Argv: tool.Argv, Env: tool.Env, Dir: tool.Dir, User: tool.User,
		LockFile: tool.LockFile, Cgroups: tool.Cgroups, Umask: tool.Umask, Nofile: tool.Nofile,
		BindAs: tool.BindAs, BindFrom: tool.BindFrom, RecordFile: tool.RecordFile,
		Seclude: tool.Seclude,
	}.withDefaults()
	if err := spec.check(); err != nil {
		return nil, fmt.Errorf("run %w", err)
	}
	shim, err := prepareShim(order{Spec: spec, KeepStdio: true, ShowUser: spec.User != nil && spec.User.Name != ""})
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", tool.Name, err)
	}
	defer shim.close()
	stdout := &head{max: tool.StdoutBytesMax}
	if stdout.max == 0 {
		stdout.max = stdoutBytesDefault
	}
	stderr := &tail{max: stderrBytesKept}
	cmd := shim.cmd
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(tool.Stdin), stdout, stderr

	cmd.WaitDelay = toolPipeWait
	if tool.Stdout != nil {
		cmd.Stdout, cmd.WaitDelay = tool.Stdout, 0 // the end of a long output counts too
	}
	if tool.Stderr != nil {
		cmd.Stderr = tool.Stderr
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("run %s: %w", tool.Name, err)
	}
	startErr, waitErr := shim.handshake(ctx), awaitGroup(ctx, cmd, tool.DiskBytesPerSecondMax)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("run %s: %w", tool.Name, context.Cause(ctx))
	}
	if startErr != nil {
		return nil, startErr
	}
	return stdout.bytes(), toolResult(tool.Name, waitErr, stdout, stderr)
}

// awaitGroup waits without reaping: as long as the leader is a zombie, the number
// of its group cannot be reused, so the kill hits nobody else.
func awaitGroup(ctx context.Context, cmd *exec.Cmd, diskBytesPerSecondMax int64) error {
	pid := cmd.Process.Pid
	var pacing sync.WaitGroup
	done := make(chan struct{})
	if diskBytesPerSecondMax > 0 {
		pacing.Go(func() { pace(pid, diskBytesPerSecondMax, done) })
	}
	h, err := newHandle(pid, false)
	if err == nil {
		err = h.wait(ctx)
	}
	close(done)
	pacing.Wait()
	if err != nil {
		_ = syscall.Kill(-pid, syscall.SIGKILL)
	}
	return cmd.Wait()
}

func toolResult(name string, err error, stdout *head, stderr *tail) error {
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		status := exitStatus(exit.Sys().(syscall.WaitStatus))
		return &ToolError{name, *status, stderr.lines(stderrLinesShown)}
	case errors.Is(err, exec.ErrWaitDelay), err == nil:
		if stdout.over {
			return fmt.Errorf("run %s: %w: more than %d bytes", name, errOutputTooLong, stdout.max)
		}
		return nil
	default:
		return fmt.Errorf("run %s: %w", name, err)
	}
}

// head keeps the first max bytes. It never refuses a write, which would end the
// tool by SIGPIPE with a misleading error.
type head struct {
	max  int
	buf  bytes.Buffer
	over bool
}

func (h *head) Write(p []byte) (int, error) {
	room := h.max - h.buf.Len()
	h.over = h.over || len(p) > room
	h.buf.Write(p[:min(len(p), room)])
	return len(p), nil
}

func (h *head) bytes() []byte { return h.buf.Bytes() }

// tail keeps the last max bytes, where tools say why they gave up.
type tail struct {
	max int
	buf []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p...)
	if extra := len(t.buf) - t.max; extra > 0 {
		t.buf = append(t.buf[:0], t.buf[extra:]...)
	}
	return len(p), nil
}

func (t *tail) lines(n int) string {
	all := strings.Split(strings.TrimSpace(string(t.buf)), "\n")
	return strings.Join(all[max(0, len(all)-n):], "\n")
}
