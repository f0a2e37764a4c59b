//go:build integration

package integration

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"kurabe/internal/harness"
	"kurabe/lab/dial"
	"kurabe/lab/result"
	"kurabe/lab/study"
)

// serverAt is a plain PostgreSQL by its URL.
func serverAt(t *testing.T, address string) dial.Server {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	password, _ := u.User.Password()
	return dial.Server{Engine: study.Postgres, Host: u.Hostname(), Port: port, User: u.User.Username(), Password: dial.Secret(password), Database: "postgres"}
}

// startLab starts the command and returns when so many trials are in the file.
func startLab(t *testing.T, dir, path string, trials int, args ...string) (*exec.Cmd, *harness.Log) {
	t.Helper()
	c := labCommand(t, dir, args...)
	// Signals that are ignored here, as SIGHUP below nohup, would be there too.
	c.Args = append([]string{"env", "--default-signal", c.Path}, c.Args[1:]...)
	c.Path = "/usr/bin/env"
	said := &harness.Log{}
	c.Stdout, c.Stderr = said, said
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() }) // of one that has ended there is nothing left
	harness.Wait(t, 3*time.Minute, "trials are in the file", func() string {
		if n := strings.Count(tryRead(filepath.Join(dir, path)), `"t":"trial"`); n < trials {
			return fmt.Sprintf("%d: %s", n, said)
		}
		return ""
	})
	return c, said
}

// endedInOrder tells a run to end after its first trial. It says so in its file, and
// leaves nothing on the server.
func endedInOrder(t *testing.T, address, dir string, told syscall.Signal) {
	t.Helper()
	c, said := startLab(t, dir, "short.jsonl", 1, "run", "short.yaml", "--target", address, "--out", "short.jsonl")
	if err := c.Process.Signal(told); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err == nil || c.ProcessState.ExitCode() != 1 || !strings.Contains(said.String(), "to go on: kurabe lab run --resume short.jsonl") {
		t.Fatalf("%v: %s", err, said)
	}
	f, err := result.Read(filepath.Join(dir, "short.jsonl"))
	if err != nil || len(f.Ends) != 1 || f.Ends[0].Reason != "interrupted" || f.Torn != 0 {
		t.Fatalf("%v: %+v", err, f)
	}
	if left := labDatabases(t, address); left != "[]" {
		t.Errorf("left on the server: %s", left)
	}
}

// The end of a session, as when ssh is cut off, is one like any other.
func TestLabEndsWithItsSession(t *testing.T) {
	onceIsEnough(t)
	endedInOrder(t, plain(t, study.Postgres), shortIn(t), syscall.SIGHUP)
}

// Whoever read what the run says may go without a word to it; it goes on, and can still
// be told to end.
func TestLabOutlivesItsReader(t *testing.T) {
	onceIsEnough(t)
	address, dir := plain(t, study.Postgres), shortIn(t)
	path := filepath.Join(dir, "alone.jsonl")
	c := labCommand(t, dir, "run", "short.yaml", "--target", address, "--out", "alone.jsonl")
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stdout, c.Stderr = writer, writer
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() }) // of one that has ended there is nothing left
	writer.Close()
	reader.Close()
	harness.Wait(t, 3*time.Minute, "a trial is in the file", func() string {
		if text := tryRead(path); !strings.Contains(text, `"t":"trial"`) {
			return fmt.Sprintf("it has %d lines", strings.Count(text, "\n"))
		}
		return ""
	})
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // it has to fail, as it was interrupted
	if f, err := result.Read(path); err != nil || len(f.Ends) != 1 || f.Ends[0].Reason != "interrupted" {
		t.Errorf("%v, ended %v", err, c.ProcessState)
	}
	if left := labDatabases(t, address); left != "[]" {
		t.Errorf("left on the server: %s", left)
	}
}

// A run that was told to end is gone on with, as it was begun: every cell then counts
// once, and its figures can be computed again.
func TestLabIsEndedAndResumed(t *testing.T) {
	onceIsEnough(t)
	address, dir := plain(t, study.Postgres), shortIn(t)
	endedInOrder(t, address, dir, syscall.SIGINT)
	path := filepath.Join(dir, "short.jsonl")
	kept := read(t, path)
	for _, flag := range []string{"--blocks=12", "--quick", "--as-published", "--variants=other", "--scale=2", "--seed=7", "--engine=postgres", "--out=x.jsonl"} {
		out := labFails(t, labCommand(t, dir, "run", "--resume", "short.jsonl", "--target", address, flag))
		if name, _, _ := strings.Cut(flag, "="); !strings.Contains(out, "so "+name+" cannot be given") || read(t, path) != kept {
			t.Errorf("%s: %s", flag, out)
		}
	}
	if out := lab(t, dir, "run", "--resume", "short.jsonl", "--dry-run"); !strings.Contains(out, "Of these trials the file has ") {
		t.Error(out)
	}
	lab(t, dir, "run", "--resume", "short.jsonl", "--target", address)
	finished(t, dir, path, kept, 2)
	if out := labFails(t, labCommand(t, dir, "run", "--resume", "short.jsonl", "--target", address)); !strings.Contains(out, "the plan of this study is fulfilled") {
		t.Error(out)
	}
}

// finished demands that a resumed file begins as it was, has every cell, and ended by its
// plan.
func finished(t *testing.T, dir, path, kept string, blocks int) {
	t.Helper()
	if !strings.HasPrefix(read(t, path), kept) {
		t.Error("what was in the file has changed")
	}
	f, err := result.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	cellsCount(t, f, blocks)
	if last := f.Ends[len(f.Ends)-1]; last.Reason != "blocks" {
		t.Errorf("ended %+v", last)
	}
	again, table := lab(t, dir, "recompute", filepath.Base(path)), lab(t, dir, "export", filepath.Base(path), "--format", "estimates")
	estimates, err := result.Estimates(f, 0.95)
	if err != nil || len(estimates) == 0 {
		t.Fatal(len(estimates), err)
	}
	if n := strings.Count(again, "\n") - 1; n != len(estimates) || strings.Count(table, "\n")-1 != n {
		t.Errorf("%d estimates, and recomputed\n%s", len(estimates), again)
	}
	for _, e := range estimates {
		if e.Ratio.Pairs != blocks {
			t.Errorf("%s of %s has %d pairs", e.Metric, e.Variant, e.Ratio.Pairs)
		}
	}
}

// relay stands before a server, and can be shut.
type relay struct {
	to string

	mu   sync.Mutex // guards all below
	shut bool
	open map[net.Conn]bool
}

func newRelay(t *testing.T, to string) (r *relay, at string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r = &relay{to: to, open: map[net.Conn]bool{}}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { r.pass(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		r.set(true)
		all.Wait()
	})
	return r, l.Addr().String()
}

// set shuts the way, and cuts who is on it, or opens it again.
func (r *relay) set(shut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shut = shut
	for c := range r.open {
		if shut {
			c.Close()
		}
	}
}

// enter notes a connection, if the way is open.
func (r *relay) enter(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.shut {
		r.open[c] = true
	}
	return !r.shut
}

func (r *relay) pass(from net.Conn) {
	defer from.Close()
	if !r.enter(from) {
		return
	}
	to, err := net.Dial("tcp", r.to)
	if err != nil {
		return
	}
	defer to.Close()
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(from, to) // the end of either side ends both
		from.Close()
	})
	_, _ = io.Copy(to, from) // likewise
	to.Close()
	back.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, from)
}

// A server that was away ends a run; when it is back the run is gone on with, though its
// baseline has failed as often as one run tries it.
func TestLabIsResumedWhenTheServerIsBack(t *testing.T) {
	onceIsEnough(t)
	address := plain(t, study.Postgres)
	server := serverAt(t, address)
	direct := net.JoinHostPort(server.Host, strconv.Itoa(server.Port))
	r, at := newRelay(t, direct)
	target := strings.Replace(address, direct, at, 1)
	dir := shortIn(t)
	path := filepath.Join(dir, "away.jsonl")
	c, said := startLab(t, dir, "away.jsonl", 1, "run", "short.yaml", "--target", target, "--out", "away.jsonl")
	r.set(true)
	if err := c.Wait(); err == nil || !strings.Contains(said.String(), "the baseline plain failed 2 times") {
		t.Fatalf("%v: %s", err, said)
	}
	kept := read(t, path)
	f, err := result.Read(path)
	if err != nil || len(f.Ends) != 0 {
		t.Fatalf("%v: %+v", err, f.Ends)
	}
	r.set(false)
	if out := lab(t, dir, "clean", "--target", target); !strings.Contains(out, "removed") {
		t.Errorf("clean said: %s", out)
	}
	lab(t, dir, "run", "--resume", "away.jsonl", "--target", target)
	finished(t, dir, path, kept, 2)
}
