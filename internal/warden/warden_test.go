package warden

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The test binary is the warden too: TestMain becomes one when it is told so.
const asWarden = "KURABE_TEST_WARDEN"

func TestMain(m *testing.M) {
	page := os.Getenv(asWarden)
	if page == "" {
		os.Exit(m.Run())
	}
	err := Watch(page,
		func() error { return os.WriteFile(page+".ready", nil, 0o600) },
		func() error { return os.WriteFile(page+".killed", []byte(time.Now().Format(time.RFC3339Nano)), 0o600) })
	if err != nil {
		_ = os.WriteFile(page+".error", []byte(err.Error()), 0o600)
		os.Exit(1)
	}
	os.Exit(0)
}

// patience ends a test that hangs.
const patience = 20 * time.Second

type bed struct {
	page *Page
	path string
	cmd  *exec.Cmd
	done chan struct{}
}

// watched is an armed page with a warden.
func watched(t *testing.T, right time.Duration) *bed {
	t.Helper()
	b := &bed{path: filepath.Join(t.TempDir(), "page"), done: make(chan struct{})}
	var err error
	if b.page, err = Create(b.path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.page.Close() })
	if err := b.page.Arm(7, Boottime()+right); err != nil {
		t.Fatal(err)
	}
	b.cmd = exec.Command(os.Args[0])
	b.cmd.Env = append(os.Environ(), asWarden+"="+b.path)
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = b.cmd.Wait(); close(b.done) }()
	t.Cleanup(func() { _ = b.cmd.Process.Kill(); <-b.done })
	b.wait(t, "the warden watches", func() bool { return exists(b.path + ".ready") })
	return b
}

func (b *bed) wait(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

func (b *bed) ended() bool {
	select {
	case <-b.done:
		return true
	default:
		return false
	}
}

func exists(path string) bool { _, err := os.Lstat(path); return err == nil }

func TestKillsAtTheDeadline(t *testing.T) {
	b := watched(t, 300*time.Millisecond)
	b.wait(t, "it kills", func() bool { return exists(b.path + ".killed") })
	if !b.page.Fired() {
		t.Error("the page does not say so")
	}
	if err := b.page.Extend(Boottime() + time.Hour); !errors.Is(err, ErrFired) {
		t.Errorf("a lost right is extended: %v", err)
	}
	b.wait(t, "it ends", b.ended)
}

func TestExtendedItDoesNothing(t *testing.T) {
	b := watched(t, time.Second)
	for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err := b.page.Extend(Boottime() + time.Second); err != nil {
			t.Fatal(err)
		}
	}
	if exists(b.path+".killed") || b.ended() {
		t.Error("it killed or ended although its deadline moved")
	}
	// An answer that came late moves nothing back.
	if err := b.page.Extend(Boottime()); err != nil {
		t.Error(err)
	}
	b.page.Release()
	b.wait(t, "it ends with the page", b.ended)
	if exists(b.path + ".killed") {
		t.Error("it killed after the release")
	}
}

// A warden that was stopped past its deadline kills as soon as it goes on; its agent
// cannot have the right back in between.
func TestStoppedPastTheDeadline(t *testing.T) {
	b := watched(t, 400*time.Millisecond)
	if err := b.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Until(time.Now().Add(600 * time.Millisecond)))
	if exists(b.path + ".killed") {
		t.Fatal("a stopped process killed")
	}
	if err := b.page.Extend(Boottime() + time.Hour); !errors.Is(err, ErrFired) {
		t.Errorf("a right that has run out is extended: %v", err)
	}
	if err := b.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	b.wait(t, "it kills", func() bool { return exists(b.path + ".killed") })
}

func TestOneWardenForAPage(t *testing.T) {
	b := watched(t, time.Hour)
	if held, err := b.page.Watched(); err != nil || !held {
		t.Errorf("%v, %v", held, err)
	}
	if err := b.page.Arm(8, Boottime()); err == nil {
		t.Error("a page that is watched is armed anew")
	}
	if err := Watch(b.path, func() error { return errors.New("a second one watches") }, nil); err == nil || !strings.Contains(err.Error(), "another warden") {
		t.Error(err)
	}
	if err := b.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	b.wait(t, "its death shows", func() bool { held, err := b.page.Watched(); return err == nil && !held })
}

func TestPagesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"short": "x", "other": strings.Repeat("x", pageBytes)} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if p, err := Open(path); err == nil {
			p.Close()
			t.Errorf("%s is taken for a page", name)
		}
	}
	if _, err := Open(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if err := os.Symlink("short", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(filepath.Join(dir, "link")); err == nil {
		t.Error("a link is followed")
	}
	if err := Watch(filepath.Join(dir, "none"), nil, nil); err == nil {
		t.Error("a page that is not there is watched")
	}
}

// TestOneOfTheTwoWins: an agent extends while a warden fires, at the same moment, many
// times. Never does the agent hear that it has a right whose server is killed.
func TestOneOfTheTwoWins(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page")
	p, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	both := map[bool]int{}
	for range 300 {
		p.word(wordDeadline).Store(released)
		if err := p.Arm(1, Boottime()+200*time.Microsecond); err != nil {
			t.Fatal(err)
		}
		killed := make(chan struct{})
		ended := make(chan error, 1)
		ready := make(chan struct{})
		go func() {
			ended <- watch(path, time.Millisecond, func() error { close(ready); return nil }, func() error { close(killed); return nil })
		}()
		<-ready
		for Boottime() < time.Duration(p.word(wordDeadline).Load())-20*time.Microsecond {
		}
		extended := p.Extend(Boottime()+time.Hour) == nil
		both[extended]++
		if extended {
			select {
			case <-killed:
				t.Fatal("the right was extended, and the server killed")
			case <-time.After(time.Millisecond):
			}
			p.Release()
		} else {
			<-killed
		}
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("extended %d times, killed %d times", both[true], both[false])
}
