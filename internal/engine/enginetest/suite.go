package enginetest

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/engine"
)

// Run takes one instance through its life. The parts build on each other.
func Run(t *testing.T, s Setup) {
	b := NewBed(t, s)
	parts := []struct {
		name string
		part func(*testing.T, *Bed)
	}{
		{"the catalogue is complete and sorted", catalogue},
		{"a new instance serves its master user", creates},
		{"a satisfied assignment leaves nothing to do", settles},
		{"every step of the driver may be repeated", repeats},
		{"a wrong password is refused", refuses},
		{"sessions of clients are counted", samples},
		{"active sessions tell what they wait for", sessions},
		{"a dynamic setting changes in the running server", reloads},
		{"a new certificate is shown without a restart", renewsCertificate},
		{"a new password replaces the old one", changesPassword},
		{"a killed server comes back with all that was acknowledged", recovers},
		{"a stopped server is stopped cleanly", stops},
		{"an impossible setting is reported as such", reportsSettings},
		{"a taken port is reported as such", reportsPort},
		{"nothing is left of a removed instance", removes},
	}
	for _, p := range parts {
		if !t.Run(p.name, func(t *testing.T) { p.part(t, b) }) {
			t.FailNow()
		}
	}
}

func catalogue(t *testing.T, b *Bed) {
	c, err := b.Driver.ReadCatalog(t.Context(), b.Request())
	if err != nil {
		t.Fatal(err)
	}
	const fewestKnown = 100
	if len(c.Parameters) < fewestKnown {
		t.Fatalf("only %d parameters", len(c.Parameters))
	}
	for n, p := range c.Parameters {
		if n > 0 && c.Parameters[n-1].Name >= p.Name {
			t.Errorf("%s is out of order", p.Name)
		}
		if p.Modifiable != (p.Fixed == "") {
			t.Errorf("%s: modifiable %v, reason %q", p.Name, p.Modifiable, p.Fixed)
		}
	}
	if p, ok := c.Find(b.Dynamic.Name); !ok || !p.Modifiable || p.Apply != kurabe.ApplyDynamic {
		t.Errorf("%s: %+v", b.Dynamic.Name, p)
	}
}

// Request asks for something in a scratch folder of the suite's own.
func (b *Bed) Request() engine.TemplateRequest {
	scratch := filepath.Join(b.Root, "scratch")
	return engine.TemplateRequest{
		Version: b.Version, Locale: b.Want.Locale, Dir: filepath.Join(scratch, "template"), Scratch: scratch, User: b.User,
	}
}

func creates(t *testing.T, b *Bed) {
	if _, err := b.Lifecycle.EnsureTemplate(t.Context(), b.Version, b.Want.Locale); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	b.Satisfy(t)
	t.Logf("from template to probed in %v", time.Since(begin).Round(time.Millisecond))
	b.MustQuery(t, "CREATE TABLE kept (n integer)")
	b.MustQuery(t, "INSERT INTO kept VALUES (1)")
	if got := b.MustQuery(t, "SELECT count(*) FROM kept"); got != "1" {
		t.Errorf("count %s", got)
	}
}

func settles(t *testing.T, b *Bed) {
	before := b.Process(t).PID
	b.Satisfy(t)
	if after := b.Process(t).PID; after != before {
		t.Errorf("the server was restarted: %d, now %d", before, after)
	}
}

func repeats(t *testing.T, b *Bed) {
	i := b.Instance()
	steps := map[string]func(context.Context) error{
		"ready":    func(ctx context.Context) error { return b.Driver.Ready(ctx, i) },
		"master":   func(ctx context.Context) error { return b.Driver.EnsureMaster(ctx, i) },
		"password": func(ctx context.Context) error { return b.Driver.SetPassword(ctx, i) },
		"reload":   func(ctx context.Context) error { return b.Driver.Reload(ctx, i) },
		"probe":    func(ctx context.Context) error { return b.Driver.Probe(ctx, i, b.Login().CAFile) },
	}
	for name, step := range steps {
		for range 2 {
			if err := step(t.Context()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func refuses(t *testing.T, b *Bed) {
	login := b.Login()
	login.Password = "not-the-password"
	if _, err := b.Query(t.Context(), login, "SELECT 1"); err == nil {
		t.Error("it lets anybody in")
	}
}

func reloads(t *testing.T, b *Bed) {
	before := b.Process(t).PID
	b.Set(map[string]string{b.Dynamic.Name: b.Dynamic.Value})
	b.Satisfy(t)
	if got := b.MustQuery(t, b.ShowSQL(b.Dynamic.Name)); got != b.Dynamic.Shown {
		t.Errorf("%s is %q, want %q", b.Dynamic.Name, got, b.Dynamic.Shown)
	}
	if after := b.Process(t).PID; after != before {
		t.Error("the server was restarted")
	}
}

func renewsCertificate(t *testing.T, b *Bed) {
	path := filepath.Join(b.Home().TLSDir(), "server.crt")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	b.Satisfy(t)
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	b.MustQuery(t, "SELECT 1")
}

func changesPassword(t *testing.T, b *Bed) {
	old := b.Login()
	b.Password = "Second-password-2"
	b.Want.Password = b.verifier(t, b.Want.Password.Seq+1)
	b.Want.Generation++
	b.Satisfy(t)
	b.MustQuery(t, "SELECT 1")
	if _, err := b.Query(t.Context(), old, "SELECT 1"); err == nil {
		t.Error("the old password still works")
	}
}

func recovers(t *testing.T, b *Bed) {
	b.MustQuery(t, "INSERT INTO kept VALUES (2)")
	p := b.Process(t)
	if err := p.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.Satisfy(t)
	if got := b.MustQuery(t, "SELECT count(*) FROM kept"); got != "2" {
		t.Errorf("count %s after a crash, want 2", got)
	}
}

func stops(t *testing.T, b *Bed) {
	p := b.Process(t)
	b.Want.Goal = kurabe.GoalStopped
	b.Want.Generation++
	b.Satisfy(t)
	if p.Alive() {
		t.Error("it still runs")
	}
	b.Want.Goal = kurabe.GoalRunning
	b.Want.Generation++
	b.Want.Boot++
	b.Satisfy(t)
	if got := b.MustQuery(t, "SELECT count(*) FROM kept"); got != "2" {
		t.Errorf("count %s after a stop, want 2", got)
	}
}

// startFailure starts with what Want says by now and returns why it fails.
func (b *Bed) startFailure(t *testing.T) *engine.StartError {
	t.Helper()
	err := b.TrySatisfy(t.Context())
	var failed *engine.StartError
	if !errors.As(err, &failed) {
		t.Fatalf("got %v, want a StartError", err)
	}
	return failed
}

func reportsSettings(t *testing.T, b *Bed) {
	before := b.Want
	b.Set(map[string]string{b.Impossible.Name: b.Impossible.Value})
	b.Want.Boot++
	failed := b.startFailure(t)
	if failed.Kind != kurabe.FailureParameters || strings.TrimSpace(failed.Message) == "" {
		t.Errorf("kind %s, message %q", failed.Kind, failed.Message)
	}
	t.Logf("in its words: %s", failed.Message)
	generation := b.Want.Generation + 1
	b.Want = before
	b.Want.Generation = generation
	b.Satisfy(t)
}

func reportsPort(t *testing.T, b *Bed) {
	b.Want.Goal = kurabe.GoalStopped
	b.Satisfy(t)
	taken, err := net.Listen("tcp", net.JoinHostPort(b.Want.Address, strconv.Itoa(b.Want.Port)))
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	b.Want.Goal = kurabe.GoalRunning
	failed := b.startFailure(t)
	if failed.Kind != kurabe.FailureNetwork {
		t.Errorf("kind %s, message %q", failed.Kind, failed.Message)
	}
	t.Logf("in its words: %s", failed.Message)
}

func removes(t *testing.T, b *Bed) {
	b.Want.Goal = kurabe.GoalAbsent
	b.Satisfy(t)
	if _, err := os.Lstat(b.Home().Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its folder: %v", err)
	}
}
