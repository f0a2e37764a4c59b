package drill

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/proc"
)

// remoteHost is a host with one server, and a clock of its own.
type remoteHost struct {
	*Permits
	process proc.Process
	clock   time.Duration
}

const farServer = kurabe.InstanceID("db-A~2")

func newRemoteHost(t *testing.T) *remoteHost {
	t.Helper()
	homes := t.TempDir()
	f := &remoteHost{Permits: NewPermits("h2", homes, guardCommand)}
	f.now = func() int64 { return int64(f.clock) }
	f.start(t)
	return f
}

func (f *remoteHost) start(t *testing.T) {
	t.Helper()
	home := engine.Home{Dir: filepath.Join(f.homes, string(farServer))}
	if err := os.MkdirAll(home.DataDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	p, err := proc.Start(t.Context(), proc.Spec{Name: "server", Argv: []string{"/bin/sleep", "600"}, Dir: home.DataDir(),
		LockFile: filepath.Join(home.Dir, "lock"), RecordFile: home.RecordFile()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proc.KillSurvivors(context.Background(), home.DataDir()) })
	f.process = p
}

func (f *remoteHost) give(t *testing.T) Permit {
	t.Helper()
	p, err := f.Give(farServer, f.process.PID, Fault{})
	if err != nil || p.PID != f.process.PID || p.StartTime != f.process.StartTime || p.Server != farServer || p.Host != "h2" || p.Key == "" {
		t.Fatalf("%+v, %v", p, err)
	}
	return p
}

func (f *remoteHost) dead(t *testing.T) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return f.process.Wait(ctx) == nil
}

func wantRefused(t *testing.T, f *remoteHost, err error, says string) {
	t.Helper()
	if kurabe.CodeOf(err) != kurabe.CodeInvalidInstanceState || !strings.Contains(err.Error(), says) {
		t.Errorf("%v, want %q", err, says)
	}
	if !f.process.Alive() {
		t.Error("the server was killed all the same")
	}
}

// A permit kills once the process that it was given for; who asks twice hears the same.
func TestPermit(t *testing.T) {
	f := newRemoteHost(t)
	p := f.give(t)
	if !f.process.Alive() {
		t.Fatal("a permit alone kills")
	}
	f.clock += PermitTime - 1
	if err := f.Use(farServer, p.Key, Fault{}); err != nil || !f.dead(t) {
		t.Fatalf("%v", err)
	}
	f.start(t)
	f.clock += permitKept
	if err := f.Use(farServer, p.Key, Fault{}); err != nil || !f.process.Alive() {
		t.Errorf("a second time: %v, alive %v", err, f.process.Alive())
	}
}

// What arrives late, at an agent that was started since, for another server or at a server
// that was started since does nothing.
func TestPermitRefuses(t *testing.T) {
	f := newRemoteHost(t)
	late := f.give(t)
	f.clock += PermitTime
	wantRefused(t, f, f.Use(farServer, late.Key, Fault{}), "db-A~2 was left alone: the request came later than 10s")

	p := f.give(t)
	again := &remoteHost{Permits: NewPermits("h2", f.homes, guardCommand), process: f.process}
	wantRefused(t, f, again.Use(farServer, p.Key, Fault{}), "restarted")
	wantRefused(t, f, f.Use("db-A", p.Key, Fault{}), "has no such permit")
	wantRefused(t, f, f.Use(farServer, "", Fault{}), "has no such permit")

	if err := f.process.Signal(9); err != nil || !f.dead(t) {
		t.Fatal(err)
	}
	was := f.process
	f.start(t)
	for range 2 {
		wantRefused(t, f, f.Use(farServer, p.Key, Fault{}), "had already ended")
	}
	_, err := f.Give(farServer, was.PID, Fault{})
	wantRefused(t, f, err, ", not")
	_, err = f.Give("db-B", 1, Fault{})
	wantRefused(t, f, err, "no running process on host h2")
	for _, id := range []kurabe.InstanceID{"", "..", "db-A/../db-A~2", "db-A~02", "db-A~2/"} {
		if _, err := f.Give(id, f.process.PID, Fault{}); kurabe.CodeOf(err) != kurabe.CodeInvalidParameterValue {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// Of many uses at a time one kills, and all hear of it.
func TestPermitAtOnce(t *testing.T) {
	f := newRemoteHost(t)
	p := f.give(t)
	errs := make([]error, 8)
	var wait sync.WaitGroup
	for n := range errs {
		wait.Go(func() { errs[n] = f.Use(farServer, p.Key, Fault{}) })
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil || !f.dead(t) {
		t.Error(err)
	}
}

func TestPermitsAreBounded(t *testing.T) {
	f := newRemoteHost(t)
	for range permitsMax {
		f.give(t)
	}
	if _, err := f.Give(farServer, f.process.PID, Fault{}); kurabe.CodeOf(err) != kurabe.CodeThrottled {
		t.Errorf("%v", err)
	}
	f.clock += PermitTime + permitKept
	f.give(t)
	if len(f.given) != 1 {
		t.Errorf("%d are kept", len(f.given))
	}
}
