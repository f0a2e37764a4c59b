package failover

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"kurabe/test/bench/bed"
)

// peerAddress is outside the pools of endpoints and the address of a twin. Its third part
// is of this process: two runs at a time do not meet.
const peerAddress = "127.78.%d.%d"

// peers are the clusters that Kurabe is compared with. Each has a store of its own, so that
// none waits for what another one writes.
type peers struct {
	r       *comparison
	dir     string
	version string // of PostgreSQL
	user    *syscall.Credential
	binDir  string
	builds  []patroniBuild

	mu       sync.Mutex // guards what follows: clusters may be started at the same time
	used     int        // addresses
	clusters []*patroniCluster
}

// openPeers finds what the machine has. What it has not is said in a row of its own: Kurabe is
// measured in any case.
func (r *comparison) openPeers(ctx context.Context, l *site) *peers {
	p := &peers{r: r, dir: filepath.Join(l.Dir, "peers"), version: l.Engines[bed.Postgres]}
	missing := func(what string, err error) {
		a := about{Name: what, Role: rolePeer, Why: bed.OneLine(err)}
		r.book.side(a)
		r.Out.Sample(recordSide, map[string]any{"about": a})
		r.Out.Say("  %s is left out: %s", what, a.Why)
	}
	builds := patroniBuilds(r)
	switch {
	case r.Only == "": // it is longer than all the rest
		missing("Patroni", errors.New("only with --only failover"))
		return p
	case len(builds) == 0:
		return p // they were not asked for
	}
	if err := p.open(ctx); err != nil {
		missing("Patroni", err)
		return p
	}
	for n, b := range builds {
		if err := b.find(ctx, filepath.Join(p.dir, "python-"+strconv.Itoa(n)), p.user); err != nil {
			missing(b.title, err)
			continue
		}
		p.builds = append(p.builds, b)
	}
	return p
}

// contenders are all forms of the peers.
func (p *peers) contenders() (list []*contender) {
	for _, b := range p.builds {
		for _, pace := range b.paces {
			end := func(ctx context.Context, s side) error { return s.(*patroniCluster).close(ctx) }
			list = append(list, p.r.contender(about{Name: b.title + ", " + pace.title, Role: rolePeer, Note: pace.note()}, p.r.peerLosses(), maker{
				make: func(ctx context.Context, _ int) (side, error) { return p.start(ctx, b, pace) },
				drop: end, leave: end,
			}))
		}
	}
	return list
}

// open finds what all of them need.
func (p *peers) open(ctx context.Context) (err error) {
	if p.user, err = serverUser(); err != nil {
		return err
	}
	if p.binDir, err = serverPrograms(p.version); err != nil {
		return err
	}
	if err := os.Mkdir(p.dir, 0o711); err != nil {
		return err
	}
	return findEtcd(ctx, p.etcdProgram())
}

func (p *peers) etcdProgram() string { return filepath.Join(p.dir, "etcd") }

// own makes a folder that the user of the servers owns.
func (p *peers) own(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil || p.user == nil {
		return err
	}
	return os.Chown(dir, int(p.user.Uid), int(p.user.Gid))
}

// addressesMost is how many there are; pairs that were taken away give theirs back.
const addressesMost = 254

// address is one on which nobody has any of the ports.
func (p *peers) address(ports ...int) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for range addressesMost {
		p.used = p.used%addressesMost + 1
		host, free := fmt.Sprintf(peerAddress, os.Getpid()%256, p.used), true
		for _, port := range ports {
			l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
			if err == nil {
				err = l.Close()
			}
			free = free && err == nil
		}
		if free {
			return host, nil
		}
	}
	return "", errors.New("no address is free")
}

// close ends all of it, whatever state a loss has left it in. The folder goes with the lab's.
func (p *peers) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), bed.CloseTime)
	defer cancel()
	var errs []error
	for _, c := range p.clusters {
		errs = append(errs, c.close(ctx))
	}
	return errors.Join(errs...)
}

// password is that of every account of a peer.
func password() string { return rand.Text() }

// daemon is a program that runs until it is killed, in a process group of its own: Ctrl-C
// at the terminal does not reach it.
type daemon struct {
	name   string
	cmd    *exec.Cmd
	exited chan struct{}
}

func (p *peers) daemon(name, dir string, env []string, argv ...string) (*daemon, error) {
	log, err := os.OpenFile(filepath.Join(p.dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	d := &daemon{name: name, cmd: exec.Command(argv[0], argv[1:]...), exited: make(chan struct{})}
	d.cmd.Env, d.cmd.Dir, d.cmd.Stdout, d.cmd.Stderr = env, dir, log, log
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: p.user}
	if err := d.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		_ = d.cmd.Wait() // the log says what happened
		close(d.exited)
	}()
	return d, nil
}

// send reaches what it has started in its group, too.
func (d *daemon) send(s syscall.Signal) error {
	if err := syscall.Kill(-d.cmd.Process.Pid, s); err != nil {
		return fmt.Errorf("%v to %s: %w", s, d.name, err)
	}
	return nil
}

// kill ends it at once; that is all that is left to do with it.
func (d *daemon) kill(ctx context.Context) error {
	select {
	case <-d.exited:
		return nil
	default:
	}
	err := d.send(syscall.SIGKILL)
	select {
	case <-d.exited:
		return nil
	case <-ctx.Done():
	case <-time.After(bed.KillTime):
	}
	return errors.Join(err, fmt.Errorf("%s does not end", d.name))
}
