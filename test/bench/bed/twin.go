package bed

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

// Twin is a server that is started by hand: the same programs, a copy of the
// same folder with the same settings, another address, and no control group.
type Twin struct {
	Target
	Dir    string
	cmd    *exec.Cmd
	exited chan struct{}
}

// NewTwin copies a running instance. It is stopped in between, so that both have
// the same clean data.
func (l *Lab) NewTwin(ctx context.Context, i *Instance) (*Twin, error) {
	pid, err := l.Pid(i)
	if err != nil {
		return nil, err
	}
	argv, env, user, err := commandOf(pid)
	if err != nil {
		return nil, err
	}
	t := &Twin{Target: Target{Engine: i.Engine, Port: i.Port}, Dir: filepath.Join(l.Dir, "twin-"+i.Engine), exited: make(chan struct{})}
	if t.Host, err = freeAddress(i.Port); err != nil {
		return nil, err
	}
	if err := l.copyStopped(ctx, i, t.Dir); err != nil {
		return nil, err
	}
	seen := homeIn(argv, i.Id)
	if err := t.rewrite(seen, i.Host); err != nil {
		return nil, err
	}
	for n := range argv {
		argv[n] = strings.ReplaceAll(argv[n], seen, t.Dir)
	}
	t.cmd = exec.Command(argv[0], argv[1:]...)
	t.cmd.Env, t.cmd.Dir = env, filepath.Join(t.Dir, "data")
	t.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Getuid() == 0 {
		t.cmd.SysProcAttr.Credential = user
	}
	log, err := os.Create(filepath.Join(l.Dir, filepath.Base(t.Dir)+".log"))
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
func (l *Lab) copyStopped(ctx context.Context, i *Instance, to string) error {
	if _, err := l.Api.StopDBInstance(ctx, &rds.StopDBInstanceInput{DBInstanceIdentifier: aws.String(i.Name)}); err != nil {
		return err
	}
	if _, err := l.WaitStatus(ctx, i.Name, "stopped"); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, "cp", "-a", "--reflink=auto", l.Home(i), to).CombinedOutput(); err != nil {
		return fmt.Errorf("copy the instance: %w: %s", err, out)
	}
	// The copy is on disk before anything is measured beside it.
	if err := exec.CommandContext(ctx, "sync", "-f", to).Run(); err != nil {
		return err
	}
	if _, err := l.Api.StartDBInstance(ctx, &rds.StartDBInstanceInput{DBInstanceIdentifier: aws.String(i.Name)}); err != nil {
		return err
	}
	_, err := l.WaitStatus(ctx, i.Name, "available")
	return err
}

// rewrite makes the copied settings those of the copy: every path below the home
// and the address change, nothing else.
func (t *Twin) rewrite(home, address string) error {
	files, err := filepath.Glob(filepath.Join(t.Dir, "conf", "*"))
	if err != nil {
		return err
	}
	whole := regexp.MustCompile(`\b` + regexp.QuoteMeta(address) + `\b`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		text = bytes.ReplaceAll(text, []byte(home), []byte(t.Dir))
		if err := os.WriteFile(file, whole.ReplaceAll(text, []byte(t.Host)), 0o640); err != nil {
			return err
		}
	}
	return nil
}

func (t *Twin) waitReady(ctx context.Context, log string) error {
	deadline := time.Now().Add(twinReadyTime)
	for {
		err := t.Login(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-t.exited:
			text, _ := os.ReadFile(log)
			return fmt.Errorf("the server started by hand ended: %s", text)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(PollPause):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the server started by hand is not ready: %w", err)
		}
	}
}

// Close ends the server.
func (t *Twin) Close(ctx context.Context) error {
	select {
	case <-t.exited:
		return nil
	default:
	}
	err := t.cmd.Process.Signal(syscall.SIGQUIT)
	select {
	case <-t.exited:
		return nil
	case <-time.After(KillTime):
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
