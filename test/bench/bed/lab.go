package bed

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe/internal/cgroup"
)

const (
	Region     = "us-east-1"
	cgroupRoot = "/sys/fs/cgroup"
	AccessKey  = "AKIDBENCH"
	// ReadyTime bounds a first start, which prepares every engine; stopTime what
	// SIGTERM may take.
	ReadyTime = 2 * time.Minute
	StopTime  = 30 * time.Second
	// CloseTime bounds the cleaning up of a run.
	CloseTime = 2 * time.Minute
)

// Lab is a running service in a folder of its own.
type Lab struct {
	Dir, Data, Bin, Secret string
	Keep                   bool
	Flags                  []string // of the service, beside those that all have
	Out                    *Report

	Api      *rds.Client
	Engines  map[string]string // version by name, of the engines that are ready
	Families map[string]string // of their parameter groups
	twins    []*Twin

	Cmd    *exec.Cmd
	exited chan struct{} // closed when cmd has ended
}

// Program returns the binary to measure, built if there is none.
func Program(ctx context.Context, path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, "./cmd/kurabe")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w: %s", path, err, out)
	}
	return path, nil
}

// Service returns the lab, started at first.
func (r *Run) Service(ctx context.Context) (*Lab, error) {
	if r.Lab != nil {
		return r.Lab, nil
	}
	l, err := r.NewLab()
	if err != nil {
		return nil, err
	}
	r.Lab = l
	took, err := l.Start(ctx)
	if err != nil {
		return nil, err
	}
	r.Out.Say("  first start of the service: %.1f s", took.Seconds())
	return l, l.FindEngines(ctx)
}

// NewLab is a service that was not started yet, with a data folder of its own.
func (r *Run) NewLab() (*Lab, error) {
	dir, err := os.MkdirTemp(r.Dir, "kurabe-bench-")
	if err != nil {
		return nil, err
	}
	var random [20]byte
	rand.Read(random[:]) // never fails
	// The engines' users pass through to their own folders.
	return &Lab{Dir: dir, Data: filepath.Join(dir, "data"), Bin: r.Bin, Secret: hex.EncodeToString(random[:]), Keep: r.Keep, Out: r.Out}, os.Chmod(dir, 0o711)
}

// Start starts the service and returns how long it took from exec to the line
// that says ready.
func (l *Lab) Start(ctx context.Context) (time.Duration, error) {
	log, err := os.OpenFile(filepath.Join(l.Dir, "service.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	cmd := exec.Command(l.Bin, append([]string{"server", "--data", l.Data, "--listen", "127.0.0.1:0", "--region", Region}, l.Flags...)...)
	cmd.Env = append(os.Environ(), "KURABE_ROOT_ACCESS_KEY="+AccessKey, "KURABE_ROOT_SECRET_KEY="+l.Secret)
	cmd.Stderr = log
	// Ctrl-C at the terminal reaches the benchmark alone, which ends the rest in
	// order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	l.Cmd, l.exited = cmd, make(chan struct{})
	ready := make(chan string, 1)
	go func(exited chan struct{}) {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if url, ok := strings.CutPrefix(lines.Text(), "kurabe ready "); ok {
				ready <- url
			}
		}
		_ = cmd.Wait() // the status is of no interest: the log says why
		close(exited)
	}(l.exited)
	select {
	case url := <-ready:
		took := time.Since(began)
		l.Api = NewClient(url, l.Secret)
		return took, nil
	case <-l.exited:
		return 0, fmt.Errorf("the service ended: %s", l.LogTail())
	case <-time.After(ReadyTime):
		return 0, fmt.Errorf("the service is not ready after %s: %s", ReadyTime, l.LogTail())
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// NewClient is a client that never tries again.
func NewClient(url, secret string) *rds.Client {
	return rds.New(rds.Options{
		Region: Region, BaseEndpoint: aws.String(url), HTTPClient: &http.Client{Transport: newTransport()},
		RetryMaxAttempts: 1, // a retry would hide an error in a latency
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: AccessKey, SecretAccessKey: secret}, nil
		}),
	})
}

// Stop ends the service as SIGTERM does: the databases keep running.
func (l *Lab) Stop() error {
	if l.Cmd == nil {
		return nil
	}
	select {
	case <-l.exited:
		l.Cmd = nil
		return nil
	default:
	}
	if err := l.Cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-l.exited:
		l.Cmd = nil
		return nil
	case <-time.After(StopTime):
		return errors.Join(fmt.Errorf("the service did not end within %s", StopTime), l.Cmd.Process.Kill())
	}
}

// LogTail is the end of the service's log.
func (l *Lab) LogTail() string {
	raw, _ := os.ReadFile(filepath.Join(l.Dir, "service.log"))
	const most = 800
	return strings.TrimSpace(string(raw[max(0, len(raw)-most):]))
}

// Close ends every process of the lab and removes what it left.
func (l *Lab) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), CloseTime)
	defer cancel()
	err := l.Stop()
	for _, t := range l.twins {
		err = errors.Join(err, t.Close(ctx))
	}
	homes, _ := filepath.Glob(filepath.Join(l.Data, "instances", "*"))
	for _, home := range homes {
		err = errors.Join(err, endServer(ctx, home))
	}
	err = errors.Join(err, l.removeGroups(ctx))
	if l.Keep {
		l.Out.Say("kept %s", l.Dir)
		return err
	}
	return errors.Join(err, os.RemoveAll(l.Dir))
}

// host is what the service calls this machine.
func (l *Lab) host() string {
	var h struct {
		ID string `json:"id"`
	}
	raw, err := os.ReadFile(filepath.Join(l.Data, "host.json"))
	if err != nil || json.Unmarshal(raw, &h) != nil {
		return ""
	}
	return h.ID
}

// Levers are what this machine has to enforce limits.
func (l *Lab) Levers() cgroup.Levers { return cgroup.Detect(cgroupRoot, "kurabe-"+l.host()) }

func (l *Lab) removeGroups(ctx context.Context) error {
	if l.host() == "" {
		return nil
	}
	levers := l.Levers()
	names, err := levers.List()
	for _, name := range names {
		if g, ok := levers.Find(name); ok {
			err = errors.Join(err, g.Remove(ctx))
		}
	}
	left, _ := filepath.Glob(filepath.Join(cgroupRoot, "*", "kurabe-"+l.host()))
	for _, dir := range append(left, filepath.Join(cgroupRoot, "kurabe-"+l.host())) {
		if e := syscall.Rmdir(dir); e != nil && !errors.Is(e, syscall.ENOENT) {
			err = errors.Join(err, e)
		}
	}
	return err
}
