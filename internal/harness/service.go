package harness

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe/internal/aws/sdkhttp"
	"kurabe/internal/sklookup"
	"kurabe/internal/volume"
)

// Time limits; generous, as they only end a failure.
const (
	readyTime = 60 * time.Second
	endTime   = 20 * time.Second
)

// Options say how a service runs.
type Options struct {
	Data   string   // "": a fresh folder
	Binary string   // "": built for the tests
	Args   []string // besides --data and --listen
	Env    []string // besides ours
	Fault  bool     // the binary with fault points, and a file to arm them
	Shared bool     // lives until all tests have run, not only this one
	// Machine is where it runs, nil: where the tests do. Agent has an agent run, which
	// joins by Args, and no service.
	Machine *Machine
	Agent   bool
}

// Service is one service on one data folder, through all its lives.
type Service struct {
	Data string
	Log  *Log // standard output and error
	*rds.Client

	options Options
	binary  string
	fault   string // the file that arms a fault point

	mu   sync.Mutex // guards the rest
	life *life
	url  string
}

// life is one process of a service.
type life struct {
	cmd    *exec.Cmd
	stdout *Log
	done   chan struct{} // closed once it has ended and err is set
	err    error
}

// Start starts a service on a fresh folder and waits until it is ready.
func Start(t testing.TB, o Options) *Service {
	t.Helper()
	s := New(t, o)
	s.Start(t)
	return s
}

// New makes a service that does not run yet. It ends with the test, and what it
// started too.
func New(t testing.TB, o Options) *Service {
	t.Helper()
	s := &Service{Data: o.Data, Log: &Log{}, options: o}
	switch {
	case o.Binary != "":
		s.binary = o.Binary
	case o.Fault:
		s.binary = FaultBinary(t)
	default:
		s.binary = Binary(t)
	}
	folder := ""
	if s.Data == "" {
		folder = Folder(t, o.Shared)
		s.Data = filepath.Join(folder, "data")
	}
	if o.Fault {
		if folder == "" {
			folder = Folder(t, o.Shared)
		}
		s.fault = filepath.Join(folder, "fault")
	}
	s.Client = rds.New(rds.Options{
		Region: "us-east-1", Credentials: aws.CredentialsProviderFunc(s.credentials), Retryer: aws.NopRetryer{},
		EndpointResolverV2: endpointOf{s}, HTTPClient: sdkhttp.Client(),
	})
	clean := func() {
		if strings.Contains(s.Log.String(), "what it was not given") {
			t.Error("an agent of ours has reported something that its host does not have")
		}
		if f, ok := t.(interface{ Failed() bool }); ok && f.Failed() && !o.Shared {
			tail := s.Log.tail() // which the other adds to
			t.Logf("%sthe end of the service's log:\n%s", s.autopsy(), tail)
		}
		if err := s.end(); err != nil {
			t.Log(err)
		}
	}
	if o.Shared {
		atEnd(func() { s.end() })
	} else {
		t.Cleanup(clean)
	}
	return s
}

// Folder is a fresh folder that an engine's account may enter, unlike TempDir's.
func Folder(t testing.TB, shared bool) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kb-")
	if err != nil {
		t.Fatal(err)
	}
	remove := func() { os.RemoveAll(dir) }
	if shared {
		atEnd(remove)
	} else {
		t.Cleanup(remove)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Launch starts the process and does not wait until it is ready.
func (s *Service) Launch(t testing.TB, args ...string) {
	t.Helper()
	s.takeTemplates(t)
	l := &life{stdout: &Log{}, done: make(chan struct{})}
	l.cmd = exec.Command(s.binary, append(append(s.command(), s.options.Args...), args...)...)
	l.cmd.Env = append(environment(), s.options.Env...)
	if s.fault != "" {
		l.cmd.Env = append(l.cmd.Env, "KURABE_FAULT="+s.fault)
	}
	l.cmd.Stdout, l.cmd.Stderr = l.stdout, s.Log
	l.cmd.WaitDelay = time.Second
	start := l.cmd.Start
	if m := s.options.Machine; m != nil {
		start = func() error { return m.Start(t, l.cmd) }
	}
	if err := start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(l.done)
		l.err = l.cmd.Wait()
	}()
	s.mu.Lock()
	s.life, s.url = l, ""
	s.mu.Unlock()
}

// command is how the process is started, without what a test adds.
func (s *Service) command() []string {
	listen := "127.0.0.1"
	switch m := s.options.Machine; {
	case s.options.Agent:
		return []string{"agent", "--data", s.Data}
	case m != nil:
		listen = m.Address
	}
	return []string{"server", "--data", s.Data, "--listen", listen + ":0"}
}

// environment is ours without what would lead a service or client astray.
func environment() []string {
	var env []string
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "KURABE_") && !strings.HasPrefix(e, "AWS_") {
			env = append(env, e)
		}
	}
	return env
}

var readyLine = regexp.MustCompile(`\Akurabe (?:agent )?ready (\S+)\n\z`)

// Start starts the service and waits until it is ready.
func (s *Service) Start(t testing.TB, args ...string) time.Duration {
	t.Helper()
	s.Launch(t, args...)
	return s.WaitReady(t)
}

// WaitReady waits for the line, which must be the only one.
func (s *Service) WaitReady(t testing.TB) time.Duration {
	t.Helper()
	l := s.now()
	took := Wait(t, readyTime, "the service is ready", func() string {
		out := l.stdout.String()
		if m := readyLine.FindStringSubmatch(out); m != nil {
			s.mu.Lock()
			s.url = m[1]
			s.mu.Unlock()
			return ""
		}
		select {
		case <-l.done:
			t.Fatalf("the service ended (%v):\n%s", l.err, s.Log.tail())
		default:
		}
		return "standard output is " + out
	})
	return took
}

func (s *Service) now() *life {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.life
}

// URL is where the API is.
func (s *Service) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.url
}

// PID is the newest process.
func (s *Service) PID() int { return s.now().cmd.Process.Pid }

// Running says if the service's process lives.
func (s *Service) Running() bool {
	l := s.now()
	if l == nil {
		return false
	}
	select {
	case <-l.done:
		return false
	default:
		return true
	}
}

// WaitEnd waits until the process has ended, and returns how: nil for status 0.
func (s *Service) WaitEnd(t testing.TB, within time.Duration) error {
	t.Helper()
	l := s.now()
	select {
	case <-l.done:
	case <-time.After(within):
		t.Fatalf("the service did not end within %v:\n%s", within, s.Log.tail())
	}
	return l.err
}

// Kill ends the service as kill -9 does; databases stay.
func (s *Service) Kill(t testing.TB) {
	t.Helper()
	if err := s.now().cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	s.WaitEnd(t, endTime)
}

// Terminate asks the service to end and says how long that took.
func (s *Service) Terminate(t testing.TB) time.Duration {
	t.Helper()
	start := time.Now()
	if err := s.now().cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := s.WaitEnd(t, endTime); err != nil {
		t.Fatalf("the service ended with %v:\n%s", err, s.Log.tail())
	}
	return time.Since(start)
}

// Arm has the service end before or after a step: "before:start". Disarm takes
// it back and says if it had not been reached.
func (s *Service) Arm(t testing.TB, point string) {
	t.Helper()
	if err := os.WriteFile(s.fault+".new", []byte(point), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(s.fault+".new", s.fault); err != nil {
		t.Fatal(err)
	}
}

// Disarm takes an armed fault back and says if it was still there.
func (s *Service) Disarm() bool { return os.Remove(s.fault) == nil }

// end ends the service and everything below its data folder.
func (s *Service) end() error {
	if l := s.now(); l != nil {
		l.cmd.Process.Kill()
		<-l.done
	}
	err := s.EndDatabases(context.Background())
	s.leaveTemplates()
	// MariaDB's system folder is read-only: os.RemoveAll would leave it.
	return errors.Join(err, s.removeGroups(), sklookup.Remove(sklookup.PinFolder(s.HostID())), volume.RemoveTree(filepath.Dir(s.Data), s.Data))
}
