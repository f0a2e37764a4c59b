package proc

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestPacer(t *testing.T) {
	p := pacer{rate: 1000}
	const tick = 10 * time.Millisecond // 10 bytes
	for n, step := range []struct {
		read, written int64
		ahead         bool
	}{
		{0, 0, false}, {10, 10, false}, {20, 30, true}, {20, 30, false}, // one behind, then even
		{20, 30, false}, {20, 30, false}, {50, 30, true}, {50, 30, true}, // quiet saves nothing up
		{50, 30, false}, {60, 50, true}, {70, 60, true}, {70, 60, false},
	} {
		if got := p.ahead([2]int64{step.read, step.written}, tick); got != step.ahead {
			t.Errorf("step %d: ahead = %v, %v", n, got, p.excess)
		}
	}
}

// writing writes this many bytes to a disk.
func writing(t *testing.T, bytes string) string {
	t.Helper()
	dir := t.TempDir()
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil || fs.Type == unix.TMPFS_MAGIC {
		t.Skipf("%s is memory, which is not paced: %v", dir, err)
	}
	return "head -c " + bytes + " /dev/zero > " + filepath.Join(dir, "zeros")
}

func TestPaceStopsAndLetsGo(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", writing(t, "20000000")+"; read line")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	hold, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		pace(cmd.Process.Pid, 10_000_000, done) // two seconds
		close(ended)
	}()
	awaitState(t, cmd.Process.Pid, "T")
	awaitState(t, cmd.Process.Pid, "S")
	close(done)
	<-ended
	_ = hold.Close()
	_ = cmd.Wait() // no line was read
}

func awaitState(t *testing.T, pid int, want string) {
	t.Helper()
	ctx := deadline(t)
	for {
		st, err := readStat(strconv.Itoa(pid))
		if err == nil && string([]byte{st.state}) == want {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("never in state %s: %+v, %v", want, st, err)
		case <-time.After(time.Millisecond):
		}
	}
}

func TestPacedToolCanBeEnded(t *testing.T) {
	tool := sh(writing(t, "20000000") + "; exec sleep 1000")
	tool.DiskBytesPerSecondMax = 1 // so it is stopped for months
	ctx, cancel := context.WithTimeout(deadline(t), 300*time.Millisecond)
	defer cancel()
	if _, err := Run(ctx, tool); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error = %v", err)
	}
}

func TestPacedToolThatIsQuiet(t *testing.T) {
	tool := sh("echo said")
	tool.DiskBytesPerSecondMax = 1
	if out, err := Run(deadline(t), tool); err != nil || string(out) != "said\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestDiskBytesOfNobody(t *testing.T) {
	if _, ok := diskBytes(os.Getpid()); !ok {
		t.Error("of ourselves")
	}
	if _, ok := diskBytes(0); ok {
		t.Error("of process 0")
	}
}
