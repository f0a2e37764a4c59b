package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
)

// twinAddress is outside the pools that the service draws endpoints from.
const twinAddress = "127.77.0.%d"

// twinReadyTime bounds its start; its data was shut down cleanly.
const twinReadyTime = 30 * time.Second

// twin is a server that is started by hand: the same programs, a copy of the
// same folder with the same settings, another address, and no control group.
type twin struct {
	target
	dir    string
	cmd    *exec.Cmd
	exited chan struct{}
}

// newTwin copies a running instance. It is stopped in between, so that both have
// the same clean data.
func (l *lab) newTwin(ctx context.Context, i *instance) (*twin, error) {
	pid, err := l.pid(i)
	if err != nil {
		return nil, err
	}
	argv, env, user, err := commandOf(pid)
	if err != nil {
		return nil, err
	}
	t := &twin{target: target{engine: i.engine, port: i.port}, dir: filepath.Join(l.dir, "twin-"+i.engine), exited: make(chan struct{})}
	if t.host, err = freeAddress(i.port); err != nil {
		return nil, err
	}
	if err := l.copyStopped(ctx, i, t.dir); err != nil {
		return nil, err
	}
	seen := homeIn(argv, i.id)
	if err := t.rewrite(seen, i.host); err != nil {
		return nil, err
	}
	for n := range argv {
		argv[n] = strings.ReplaceAll(argv[n], seen, t.dir)
	}
	t.cmd = exec.Command(argv[0], argv[1:]...)
	t.cmd.Env, t.cmd.Dir = env, filepath.Join(t.dir, "data")
	t.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Getuid() == 0 {
		t.cmd.SysProcAttr.Credential = user
	}
	log, err := os.Create(filepath.Join(l.dir, filepath.Base(t.dir)+".log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	t.cmd.Stdout, t.cmd.Stderr = log, log
	if err := t.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start by hand: %w", err)
	}
	go func() {
		_ = t.cmd.Wait() // waitReady and the log say what happened
		close(t.exited)
	}()
	l.twins = append(l.twins, t)
	return t, t.waitReady(ctx, log.Name())
}

// copyStopped stops an instance, copies its folder and starts it again.
func (l *lab) copyStopped(ctx context.Context, i *instance, to string) error {
	if _, err := l.api.StopDBInstance(ctx, &rds.StopDBInstanceInput{DBInstanceIdentifier: aws.String(i.name)}); err != nil {
		return err
	}
	if _, err := l.waitStatus(ctx, i.name, "stopped"); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, "cp", "-a", "--reflink=auto", l.home(i), to).CombinedOutput(); err != nil {
		return fmt.Errorf("copy the instance: %w: %s", err, out)
	}
	// The copy is on disk before anything is measured beside it.
	if err := exec.CommandContext(ctx, "sync", "-f", to).Run(); err != nil {
		return err
	}
	if _, err := l.api.StartDBInstance(ctx, &rds.StartDBInstanceInput{DBInstanceIdentifier: aws.String(i.name)}); err != nil {
		return err
	}
	_, err := l.waitStatus(ctx, i.name, "available")
	return err
}

// rewrite makes the copied settings those of the copy: every path below the home
// and the address change, nothing else.
func (t *twin) rewrite(home, address string) error {
	files, err := filepath.Glob(filepath.Join(t.dir, "conf", "*"))
	if err != nil {
		return err
	}
	whole := regexp.MustCompile(`\b` + regexp.QuoteMeta(address) + `\b`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		text = bytes.ReplaceAll(text, []byte(home), []byte(t.dir))
		if err := os.WriteFile(file, whole.ReplaceAll(text, []byte(t.host)), 0o640); err != nil {
			return err
		}
	}
	return nil
}

func (t *twin) waitReady(ctx context.Context, log string) error {
	deadline := time.Now().Add(twinReadyTime)
	for {
		err := t.login(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-t.exited:
			text, _ := os.ReadFile(log)
			return fmt.Errorf("the server started by hand ended: %s", text)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollPause):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the server started by hand is not ready: %w", err)
		}
	}
}

func (t *twin) close(ctx context.Context) error {
	select {
	case <-t.exited:
		return nil
	default:
	}
	err := t.cmd.Process.Signal(syscall.SIGQUIT)
	select {
	case <-t.exited:
		return nil
	case <-time.After(killTime):
	case <-ctx.Done():
	}
	return errors.Join(err, t.cmd.Process.Kill())
}

// commandOf is how a running server was started: its arguments, environment and
// account.
func commandOf(pid int) (argv, env []string, user *syscall.Credential, err error) {
	read := func(name string) []string {
		var raw []byte
		if err == nil {
			raw, err = os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), name))
		}
		return strings.Split(strings.TrimRight(string(raw), "\x00"), "\x00")
	}
	argv, env = read("cmdline"), read("environ")
	if err != nil {
		return nil, nil, nil, err
	}
	info, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid)))
	if err != nil {
		return nil, nil, nil, err
	}
	owner := info.Sys().(*syscall.Stat_t)
	return argv, env, &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}, nil
}

// homeIn is the instance's folder as its server sees it: the path in its
// arguments that ends with its id.
func homeIn(argv []string, id string) string {
	for _, a := range argv {
		if end := strings.Index(a, id); end >= 0 {
			if start := strings.Index(a, "/"); start >= 0 && start < end {
				return a[start : end+len(id)]
			}
		}
	}
	return ""
}

// freeAddress is a loopback address on which nobody has the port.
func freeAddress(port int) (string, error) {
	for n := 1; n < 255; n++ {
		host := fmt.Sprintf(twinAddress, n)
		if l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port))); err == nil {
			return host, l.Close()
		}
	}
	return "", fmt.Errorf("no address is free for port %d", port)
}
