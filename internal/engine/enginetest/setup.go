package enginetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/account"
	"kurabe/internal/engine"
	"kurabe/internal/logkey"
	"kurabe/internal/pki"
	"kurabe/internal/proc"
	"kurabe/internal/volume"
)

// Login is how a client comes in over the endpoint. TLS is verified against
// CAFile; an empty one means a connection without TLS.
type Login struct {
	Address  string
	Port     int
	User     string
	Password logkey.Secret
	Database string
	CAFile   string
}

// Setting is one parameter, a value for it, and what Show answers then.
type Setting struct{ Name, Value, Shown string }

// Setup is what the suite must know of an engine.
type Setup struct {
	Engine   kurabe.EngineName
	Driver   engine.Driver
	Verifier engine.Verifier
	User     *proc.Credential // the account of the engine, nil for our own
	OneUser  bool             // all instances run as User, as with versions that gave them none
	Root     string           // an empty folder

	Settings map[string]string // of a small instance
	Dynamic  Setting           // can change in the running server
	// Impossible is well formed, and no server can start with it.
	Impossible Setting
	// Query runs one statement as a client and returns the first value of its
	// first row, "" for none.
	Query func(ctx context.Context, login Login, statement string) (string, error)
	// LeftSQL counts what a snapshot in the making has in the server.
	LeftSQL string
	// ShowSQL asks for a setting's value.
	ShowSQL func(name string) string
}

// Bed is one instance and what is needed to act on it.
type Bed struct {
	Setup
	Lifecycle *engine.Lifecycle
	Version   kurabe.EngineVersion
	Want      kurabe.Assignment
	Password  logkey.Secret
}

// limits of one wait in a test; generous, as they only end a failure.
const (
	passesMax = 60
	passTime  = time.Minute
)

// NewBed discovers the versions and describes an instance of the default one,
// at an address of its own. Whatever runs is ended with the test.
func NewBed(t *testing.T, s Setup) *Bed {
	t.Helper()
	versions := discovered(t, s)
	at := slices.IndexFunc(versions, func(v kurabe.EngineVersion) bool { return v.Default })
	if at < 0 {
		t.Fatalf("no %s is installed; have %v", s.Engine, versions)
	}
	id := kurabe.NewInstanceID()
	b := &Bed{Setup: s, Version: versions[at], Password: "First-password-1"}
	b.Want = kurabe.Assignment{
		Generation: 1, Instance: id, Name: "suite", Goal: kurabe.GoalRunning, Engine: s.Engine, Version: b.Version.Version,
		Address: address(id), Port: freePort(t, address(id)), MasterUsername: "master", DatabaseName: "shop",
		Locale: b.Version.Locales[0], Settings: s.Settings, Boot: 1,
	}
	b.Want.Password = b.verifier(t, 1)
	b.Lifecycle = lifecycle(t, s, versions)
	if err := volume.EnsureDir(filepath.Join(s.Root, "homes"), 0o755, -1, -1); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.kill(t) })
	return b
}

func lifecycle(t *testing.T, s Setup, versions []kurabe.EngineVersion) *engine.Lifecycle {
	t.Helper()
	return engine.NewLifecycle(engine.Config{
		Accounts: book(t, s),
		Driver:   s.Driver, Homes: filepath.Join(s.Root, "homes"), Templates: Shared(t, "templates"),
		Snapshots: filepath.Join(s.Root, "snapshots"),
		Runtime:   runtimeDir(t), User: s.User, Sign: signer(t, filepath.Join(s.Root, "pki")), Now: time.Now,
	}, versions)
}

// books has the book of accounts of each folder: several beds may share one.
var books struct {
	sync.Mutex
	of map[string]*account.Book
}

// book is that of a setup, nil where all is ours.
func book(t *testing.T, s Setup) *account.Book {
	t.Helper()
	if s.User == nil {
		return nil
	}
	path := filepath.Join(s.Root, "accounts.json")
	books.Lock()
	defer books.Unlock()
	if b := books.of[path]; b != nil && b.Off() == s.OneUser {
		return b
	}
	b, err := account.Open(path, account.Options{Etc: "/etc", Off: s.OneUser})
	if err != nil {
		t.Fatal(err)
	}
	if books.of == nil {
		books.of = map[string]*account.Book{}
	}
	books.of[path] = b
	return b
}

// runtimeDir is short and open to the engine's user, unlike what Root may be.
func runtimeDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kr-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// address is a loopback address that no other test of this machine is likely to
// have.
func address(id kurabe.InstanceID) string {
	sum := 0
	for _, c := range id {
		sum = sum*31 + int(c)
	}
	return fmt.Sprintf("127.77.%d.%d", (sum>>8)&0xff, 1+(sum&0xff)%254)
}

func freePort(t *testing.T, address string) int {
	t.Helper()
	l, err := net.Listen("tcp", address+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func signer(t *testing.T, dir string) engine.Signer {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	authority, err := pki.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return func(_ context.Context, csr []byte, ips, names []string) ([]byte, []byte, error) {
		var parsed []net.IP
		for _, ip := range ips {
			parsed = append(parsed, net.ParseIP(ip))
		}
		certificate, err := authority.Sign(csr, parsed, names, 90*24*time.Hour)
		return certificate, authority.PEM(), err
	}
}

func (b *Bed) verifier(t *testing.T, seq int64) kurabe.Password {
	t.Helper()
	v, err := b.Verifier(b.Password)
	if err != nil {
		t.Fatal(err)
	}
	return kurabe.Password{Seq: seq, Verifier: v}
}

// Home is the instance's folder.
func (b *Bed) Home() engine.Home { return b.Lifecycle.Home(b.Want.Instance) }

// Instance is what the lifecycle hands to the driver, where nothing is bound.
func (b *Bed) Instance() engine.Instance {
	home := b.Home()
	i := engine.Instance{Assignment: b.Want, Home: home, Version: b.Version, User: b.Account(), SeenDir: home.Dir}
	if b.Want.Role != nil && b.Want.Role.Source != nil {
		i.SourceUser = b.Lifecycle.Account(b.Want.Role.Source.ID)
	}
	return i
}

// Set wants these settings too, in a copy: the assignment before must not change.
func (b *Bed) Set(settings map[string]string) {
	all := map[string]string{}
	maps.Copy(all, b.Want.Settings)
	maps.Copy(all, settings)
	b.Want.Settings, b.Want.Generation = all, b.Want.Generation+1
}

// Serving is a bed whose instance serves.
func Serving(t *testing.T, s Setup) *Bed {
	t.Helper()
	b := NewBed(t, s)
	b.Satisfy(t)
	return b
}

// Satisfy takes steps until the assignment is true.
func (b *Bed) Satisfy(t *testing.T) {
	t.Helper()
	if err := b.TrySatisfy(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TrySatisfy is Satisfy that returns what hinders it.
func (b *Bed) TrySatisfy(ctx context.Context) error { return b.steps(ctx, "") }

// SatisfyUntil takes steps until one of that name is done.
func (b *Bed) SatisfyUntil(t *testing.T, step string) {
	t.Helper()
	if err := b.steps(t.Context(), step); err != nil {
		t.Fatal(err)
	}
}

// steps takes them until the assignment is true, or the last one is done.
func (b *Bed) steps(ctx context.Context, last string) error {
	ctx, cancel := context.WithTimeout(ctx, passTime)
	defer cancel()
	limited := false
	for range passesMax {
		o, err := b.Lifecycle.Observe(ctx, b.Want)
		if err != nil {
			return err
		}
		steps := slices.DeleteFunc(b.Lifecycle.Steps(b.Want, o), func(s engine.Step) bool {
			// Without a control group this one can never be seen to be done.
			return s.Name == engine.StepSetLimits && limited
		})
		if len(steps) == 0 {
			return nil
		}
		limited = limited || steps[0].Name == engine.StepSetLimits
		if err := steps[0].Do(ctx); err != nil {
			return fmt.Errorf("%s: %w", steps[0].Name, err)
		}
		if string(steps[0].Name) == last {
			return nil
		}
	}
	return errors.New("the steps never come to an end")
}

// Login is the master user's over TLS.
func (b *Bed) Login() Login {
	return Login{
		Address: b.Want.Address, Port: b.Want.Port, User: b.Want.MasterUsername, Password: b.Password,
		Database: b.Want.DatabaseName, CAFile: filepath.Join(b.Home().TLSDir(), "ca.pem"),
	}
}

// MustQuery runs a statement as the master user.
func (b *Bed) MustQuery(t *testing.T, statement string) string {
	t.Helper()
	value, err := b.Query(t.Context(), b.Login(), statement)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return value
}

// Process is the running server.
func (b *Bed) Process(t *testing.T) proc.Process {
	t.Helper()
	p, alive, err := b.Home().Daemon().Find()
	if err != nil || !alive {
		t.Fatalf("the server is not running: %v", err)
	}
	return p
}

// Crash kills the running server, and returns when it is gone.
func (b *Bed) Crash(t *testing.T) {
	t.Helper()
	p := b.Process(t)
	if err := errors.Join(p.Signal(syscall.Signal(b.Driver.KillSignal())), p.Wait(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// kill ends what is left, whatever state the test is in.
func (b *Bed) kill(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), passTime)
	defer cancel()
	if p, alive, err := b.Home().Daemon().Find(); err == nil && alive {
		_ = p.Signal(syscall.Signal(b.Driver.KillSignal()))
		if err := p.Wait(ctx); err != nil {
			t.Errorf("end the server: %v", err)
		}
	}
	if err := proc.KillSurvivors(ctx, b.Home().DataDir()); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Errorf("end what is left of the server: %v", err)
	}
}
