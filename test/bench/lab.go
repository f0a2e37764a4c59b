package main

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
	region     = "us-east-1"
	cgroupRoot = "/sys/fs/cgroup"
	accessKey  = "AKIDBENCH"
	// readyTime bounds a first start, which prepares every engine; stopTime what
	// SIGTERM may take.
	readyTime = 2 * time.Minute
	stopTime  = 30 * time.Second
	// closeTime bounds the cleaning up of a run.
	closeTime = 2 * time.Minute
)

// lab is a running service in a folder of its own.
type lab struct {
	dir, data, bin, secret string
	keep                   bool
	flags                  []string // of the service, beside those that all have
	out                    *report
	hosts                  *hostsBed // its databases are on machines in miniature; nil: here

	api      *rds.Client
	engines  map[string]string // version by name, of the engines that are ready
	families map[string]string // of their parameter groups
	twins    []*twin

	cmd    *exec.Cmd
	exited chan struct{} // closed when cmd has ended
}

// program returns the binary to measure, built if there is none.
func program(ctx context.Context, path string) (string, error) {
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

// service returns the lab, started at first.
func (r *run) service(ctx context.Context) (*lab, error) {
	if r.lab != nil {
		return r.lab, nil
	}
	l, err := r.newLab()
	if err != nil {
		return nil, err
	}
	r.lab = l
	took, err := l.start(ctx)
	if err != nil {
		return nil, err
	}
	r.out.say("  first start of the service: %.1f s", took.Seconds())
	return l, l.findEngines(ctx)
}

// newLab is a service that was not started yet, with a data folder of its own.
func (r *run) newLab() (*lab, error) {
	dir, err := os.MkdirTemp(r.dir, "kurabe-bench-")
	if err != nil {
		return nil, err
	}
	var random [20]byte
	rand.Read(random[:]) // never fails
	// The engines' users pass through to their own folders.
	return &lab{dir: dir, data: filepath.Join(dir, "data"), bin: r.bin, secret: hex.EncodeToString(random[:]), keep: r.keep, out: r.out}, os.Chmod(dir, 0o711)
}

// start starts the service and returns how long it took from exec to the line
// that says ready.
func (l *lab) start(ctx context.Context) (time.Duration, error) {
	log, err := os.OpenFile(filepath.Join(l.dir, "service.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	cmd := exec.Command(l.bin, append([]string{"server", "--data", l.data, "--listen", "127.0.0.1:0", "--region", region}, l.flags...)...)
	cmd.Env = append(os.Environ(), "KURABE_ROOT_ACCESS_KEY="+accessKey, "KURABE_ROOT_SECRET_KEY="+l.secret)
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
	l.cmd, l.exited = cmd, make(chan struct{})
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
		l.api = newClient(url, l.secret)
		return took, nil
	case <-l.exited:
		return 0, fmt.Errorf("the service ended: %s", l.logTail())
	case <-time.After(readyTime):
		return 0, fmt.Errorf("the service is not ready after %s: %s", readyTime, l.logTail())
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func newClient(url, secret string) *rds.Client {
	return rds.New(rds.Options{
		Region: region, BaseEndpoint: aws.String(url), HTTPClient: &http.Client{Transport: newTransport()},
		RetryMaxAttempts: 1, // a retry would hide an error in a latency
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: accessKey, SecretAccessKey: secret}, nil
		}),
	})
}

// stop ends the service as SIGTERM does: the databases keep running.
func (l *lab) stop() error {
	if l.cmd == nil {
		return nil
	}
	select {
	case <-l.exited:
		l.cmd = nil
		return nil
	default:
	}
	if err := l.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-l.exited:
		l.cmd = nil
		return nil
	case <-time.After(stopTime):
		return errors.Join(fmt.Errorf("the service did not end within %s", stopTime), l.cmd.Process.Kill())
	}
}

func (l *lab) logTail() string {
	raw, _ := os.ReadFile(filepath.Join(l.dir, "service.log"))
	const most = 800
	return strings.TrimSpace(string(raw[max(0, len(raw)-most):]))
}

// close ends every process of the lab and removes what it left.
func (l *lab) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	err := l.stop()
	for _, t := range l.twins {
		err = errors.Join(err, t.close(ctx))
	}
	homes, _ := filepath.Glob(filepath.Join(l.data, "instances", "*"))
	for _, home := range homes {
		err = errors.Join(err, endServer(ctx, home))
	}
	err = errors.Join(err, l.removeGroups(ctx))
	if l.keep {
		l.out.say("kept %s", l.dir)
		return err
	}
	return errors.Join(err, os.RemoveAll(l.dir))
}

// host is what the service calls this machine.
func (l *lab) host() string {
	var h struct {
		ID string `json:"id"`
	}
	raw, err := os.ReadFile(filepath.Join(l.data, "host.json"))
	if err != nil || json.Unmarshal(raw, &h) != nil {
		return ""
	}
	return h.ID
}

func (l *lab) levers() cgroup.Levers { return cgroup.Detect(cgroupRoot, "kurabe-"+l.host()) }

func (l *lab) removeGroups(ctx context.Context) error {
	if l.host() == "" {
		return nil
	}
	levers := l.levers()
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
