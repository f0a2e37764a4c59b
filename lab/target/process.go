package target

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// child is a program that ends with us, whatever becomes of us.
type child struct {
	cmd  *exec.Cmd
	done chan struct{} // closed once it has ended and err is set
	err  error
}

// start starts a program in a process group of its own, so that Ctrl-C on a terminal is
// ours to handle, with the order to end when we die. That order is tied to the thread
// that gave it (golang/go#27505), so the thread waits for the program's end too.
func start(cmd *exec.Cmd) (*child, error) {
	c := &child{cmd: cmd, done: make(chan struct{})}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid, cmd.SysProcAttr.Pdeathsig = true, syscall.SIGTERM
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			c.err = cmd.Wait()
			close(c.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

// ended says whether it has.
func (c *child) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// stop asks it to end and kills it when that takes too long.
func (c *child) stop(patience time.Duration) error {
	if c.ended() {
		return nil
	}
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end %s: %w", filepath.Base(c.cmd.Path), err)
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-c.done:
		return nil
	case <-timer.C:
	}
	if err := c.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", filepath.Base(c.cmd.Path), err)
	}
	<-c.done
	return fmt.Errorf("%s did not end within %s and was killed", filepath.Base(c.cmd.Path), patience)
}

// tailBytes is what is kept and shown of a program's output.
const tailBytes = 4 << 10

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex // guards data
	data []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p...)
	t.data = t.data[max(0, len(t.data)-tailBytes):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.data))
}

// lookFor finds a program, also in the folders that only root's PATH has.
func lookFor(name string) (string, bool) {
	if path, err := exec.LookPath(name); err == nil {
		return path, true
	}
	for _, dir := range []string{"/usr/sbin", "/usr/local/sbin", "/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, true
		}
	}
	return "", false
}

// removeAll removes a folder of ours, also what is in folders that may not be written.
func removeAll(dir string) error {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil // RemoveAll says what is in the way
		}
		const enter = 0o700
		if info, err := d.Info(); err == nil && info.Mode().Perm()&enter != enter {
			_ = os.Chmod(path, enter) // likewise
		}
		return nil
	})
	if err != nil {
		return err
	}
	return os.RemoveAll(dir)
}
