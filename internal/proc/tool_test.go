package proc

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func sh(script string) Tool {
	return Tool{Name: "tool", Argv: []string{"/bin/sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/"}
}

func TestRun(t *testing.T) {
	tool := sh("cat; pwd; echo noise >&2")
	tool.Stdin = []byte("secret by stdin\n")
	out, err := Run(deadline(t), tool)
	if err != nil || string(out) != "secret by stdin\n/\n" {
		t.Errorf("out = %q, %v", out, err)
	}
}

func TestRunFails(t *testing.T) {
	_, err := Run(deadline(t), sh("for i in $(seq 100); do echo line $i >&2; done; exit 7"))
	var failed *ToolError
	if !errors.As(err, &failed) || failed.Exit.Code != 7 || !strings.HasSuffix(failed.Stderr, "line 100") ||
		strings.Contains(failed.Stderr, "line 90\n") || !strings.Contains(failed.Stderr, "line 91\n") {
		t.Errorf("error = %v", err)
	}
	_, err = Run(deadline(t), sh("kill -9 $$"))
	if !errors.As(err, &failed) || failed.Exit.Signal != syscall.SIGKILL {
		t.Errorf("error = %v", err)
	}
	missing := sh("")
	missing.Argv[0] = "/nonexistent/initdb"
	if _, err = Run(deadline(t), missing); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("error = %v", err)
	}
}

func TestRunBoundsOutput(t *testing.T) {
	tool := sh("head -c 100000 /dev/zero; head -c 100000 /dev/zero >&2")
	tool.StdoutBytesMax = 1000
	out, err := Run(deadline(t), tool)
	if !errors.Is(err, errOutputTooLong) || len(out) != 1000 {
		t.Errorf("%d bytes, %v", len(out), err)
	}
	tool.StdoutBytesMax = 100000
	if out, err = Run(deadline(t), tool); err != nil || !bytes.Equal(out, make([]byte, 100000)) {
		t.Errorf("%d bytes, %v", len(out), err)
	}
}

// slow takes its time, and may refuse the rest.
type slow struct {
	got  bytes.Buffer
	most int
}

func (s *slow) Write(p []byte) (int, error) {
	if s.most > 0 && s.got.Len()+len(p) > s.most {
		return 0, errors.New("enough")
	}
	return s.got.Write(p)
}

// Output of any length goes to its writer to the last byte, and one that refuses it ends
// the tool.
func TestRunStreams(t *testing.T) {
	tool := sh("head -c 5000000 /dev/zero; echo end; echo said >&2")
	out, said := &slow{}, &slow{}
	tool.Stdout, tool.Stderr = out, said
	if kept, err := Run(deadline(t), tool); err != nil || len(kept) != 0 {
		t.Errorf("%q, %v", kept, err)
	}
	if out.got.Len() != 5000004 || !bytes.HasSuffix(out.got.Bytes(), []byte("end\n")) || said.got.String() != "said\n" {
		t.Errorf("%d bytes, said %q", out.got.Len(), said.got.String())
	}
	tool = sh("while :; do echo more; done")
	tool.Stdout = &slow{most: 1 << 20}
	var failed *ToolError
	if _, err := Run(deadline(t), tool); !errors.As(err, &failed) || failed.Exit.Signal != syscall.SIGPIPE && failed.Exit.Code == 0 {
		t.Errorf("%v", err)
	}
}

// The end of the context ends grandchildren too, and at once.
func TestRunKillsGroup(t *testing.T) {
	b := newBed(t)
	tool := sh("sleep 60 & touch started; sleep 61")
	tool.Dir = b.data
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("enough")
	done := make(chan error, 1)
	go func() {
		_, err := Run(ctx, tool)
		done <- err
	}()
	eventually(t, "start", func() bool {
		_, err := os.Stat(filepath.Join(b.data, "started"))
		return err == nil
	})
	cancel(why)
	if err := <-done; !errors.Is(err, why) {
		t.Errorf("error = %v", err)
	}
	eventually(t, "all gone", func() bool {
		left, _ := Survivors(b.data)
		return len(left) == 0
	})
}

func TestRunHoldsLock(t *testing.T) {
	b := newBed(t)
	p := b.start(t, "/bin/sleep", "60")
	tool := sh("true")
	tool.LockFile = b.spec().LockFile
	var held *LockHeldError
	if _, err := Run(deadline(t), tool); !errors.As(err, &held) || held.PID != p.PID || held.File != tool.LockFile {
		t.Errorf("error = %v", err)
	}
}

func TestTraversable(t *testing.T) {
	b := newBed(t)
	open(t, b.dir)
	closed := filepath.Join(b.dir, "closed")
	data := filepath.Join(closed, "data")
	if err := os.MkdirAll(data, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(b.dir, "way")
	if err := os.Symlink(data, link); err != nil {
		t.Fatal(err)
	}
	me := os.Geteuid()
	for _, c := range []struct {
		path     string
		uid, gid int
		want     bool
	}{
		{b.data, 4711, 4711, true},
		{data, 4711, 4711, false},
		{link, 4711, 4711, false},
		{closed, me, 4711, true},
		{data, me, 4711, true},
		{data, 0, 0, true},
		{data + "/missing", 4711, 4711, false},
	} {
		if got := Traversable(c.path, c.uid, c.gid); got != c.want {
			t.Errorf("Traversable(%s, %d, %d) = %v", c.path, c.uid, c.gid, got)
		}
	}
	if os.Geteuid() == 0 {
		_ = os.Chown(closed, 4711, 4712)
		_ = os.Chmod(closed, 0o011)
		if Traversable(data, 4711, 4712) || !Traversable(data, 1, 4712) || !Traversable(data, 1, 1) {
			t.Error("the owner's bits alone count for the owner")
		}
		_ = os.Chmod(closed, 0o700)
	}
}

// The data folder is under a parent that only root may pass, as under /root.
func TestBind(t *testing.T) {
	user := other(t)
	b := newBed(t)
	open(t, b.dir)
	closed := filepath.Join(b.dir, "closed")
	data := filepath.Join(closed, "instance", "data")
	if err := os.MkdirAll(data, 0o755); err != nil {
		t.Fatal(err)
	}
	_ = os.Chown(data, user.UID, user.GID)
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	as := filepath.Join(b.dir, "run", "i1")
	spec := b.spec("/bin/sh", "-c", "pwd; touch "+as+"/data/made; exec sleep 60")
	spec.User, spec.Dir = user, data
	if _, err := Start(deadline(t), spec); !errors.Is(err, syscall.EACCES) {
		t.Fatalf("without a bind: %v, want permission denied", err)
	}
	spec.BindFrom, spec.BindAs = filepath.Join(closed, "instance"), as
	killedParent(t, spec)
	p, found, err := Find(spec.RecordFile)
	if err != nil || !found {
		t.Fatal(found, err)
	}
	eventually(t, "file made", func() bool {
		_, err := os.Stat(filepath.Join(data, "made"))
		return err == nil
	})
	if log := b.log(t); strings.TrimSpace(log) != as+"/data" {
		t.Errorf("log = %q", log)
	}
	if entries, err := os.ReadDir(as); err != nil || len(entries) != 0 {
		t.Errorf("the bind shows outside: %v, %v", entries, err)
	}
	eventually(t, "only the process itself", func() bool {
		left, err := Survivors(data)
		return err == nil && len(left) == 1 && left[0] == p.PID
	})
	tool := sh("pwd; ls")
	tool.User, tool.Dir, tool.BindFrom, tool.BindAs = user, data, spec.BindFrom, as
	if out, err := Run(deadline(t), tool); err != nil || string(out) != as+"/data\nmade\n" {
		t.Errorf("tool: %q, %v", out, err)
	}
	if err := KillSurvivors(deadline(t), data); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(as); err != nil {
		t.Errorf("mount point is busy: %v", err)
	}
}
