package service

import (
	"context"
	"errors"
	"fmt"
	"kurabe"
	"kurabe/internal/account"
	"kurabe/internal/hostlink"
	"kurabe/internal/logkey"
	"kurabe/internal/volume"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// agentFlags are the flags of an agent on a machine beside the service's.
type AgentConfig struct {
	HostConfig
	Join, TokenFile, Zone string
}

// joinTokenVariable may hold the token; as an argument everybody would see it.
const JoinTokenVariable = "KURABE_JOIN_TOKEN"

func (f *AgentConfig) check() error {
	if err := checkJoin(f.Join); err != nil {
		return err
	}
	return f.HostConfig.check()
}

func checkJoin(join string) error {
	if join == "" {
		return nil
	}
	if host, port, err := net.SplitHostPort(join); err != nil || host == "" || port == "" {
		return fmt.Errorf("--join %q is not HOST:PORT", join)
	}
	return nil
}

// agentNode is a running agent.
type Agent struct {
	node
	link *hostlink.Remote
	self *identity
}

// RunAgent runs an agent until ctx ends or a part of it fails; ready is called once it looks after
// the databases of its host.
func RunAgent(ctx context.Context, f *AgentConfig, ready func(kurabe.HostID)) error {
	if err := f.check(); err != nil {
		return err
	}
	log, err := f.logger()
	if err != nil {
		return err
	}
	data, err := f.enter()
	if err != nil {
		return err
	}
	lock, err := volume.DirLock(data)
	if err != nil {
		return err
	}
	n := &Agent{node: node{flags: &f.HostConfig, log: log, lock: lock, failed: make(chan error, 1)}}
	startCtx, abort := context.WithCancelCause(ctx)
	n.abort = abort
	defer abort(nil)
	failure := n.start(startCtx, f, data)
	if failure == nil {
		ready(n.host.ID)
		select {
		case <-ctx.Done():
		case failure = <-n.failed:
		}
	}
	if n.agent == nil || failure != nil && ctx.Err() == nil {
		n.inTime(n.stop)
		n.inTime(func() { n.closeHost(); n.leave() })
		return failure
	}
	return n.end(nil, n.stop, func() { n.closeHost(); n.leave() })
}

// start is the story of a start: who we are, then the databases, then the rest.
func (n *Agent) start(ctx context.Context, f *AgentConfig, data string) error {
	// Before the token is spent: what is wrong here would have to be put right first.
	var err error
	if exists(filepath.Join(data, "etcd")) || exists(filepath.Join(data, externalEtcdFile)) {
		return fmt.Errorf("%s is the data folder of a service: an agent needs one of its own", data)
	}
	h, err := loadHostFile(data, f.AddressPool)
	if err != nil {
		return err
	}
	if _, err := h.addresses(); err != nil {
		return err
	}
	if n.base, n.pool, err = enterBase(ctx, &f.HostConfig, data, n.log); err != nil {
		return err
	}
	if n.repo, err = newRepository(f.Backups, data, n.log); err != nil {
		return err
	}
	if n.self, err = enterService(ctx, f, data, h, n.log); err != nil {
		return err
	}
	os.Unsetenv(JoinTokenVariable) // servers need not inherit it
	if err := volume.AtomicWrite(filepath.Join(data, "ca.pem"), n.self.rootPEM, 0o644); err != nil {
		return fmt.Errorf("certificate authority: %w", err)
	}
	var loopCtx context.Context
	loopCtx, n.cancel = context.WithCancel(context.Background())
	n.loop("repository of backups", func() error { return n.repo.Run(loopCtx) })
	if n.pool != nil {
		n.loop("pool", func() error { return n.pool.watch(loopCtx) })
	}
	life, err := machineID(data)
	if err != nil {
		return err
	}
	if err := n.handleReads(h.ID); err != nil {
		return err
	}
	n.link = hostlink.NewRemote(hostlink.RemoteConfig{
		Life: life, Server: n.self.saved.Server, Servers: n.self.saved.Servers, Learned: n.self.learned(n.log), Roots: n.self.roots, Identity: n.self.certificate,
		Reads: n.reads, Log: n.log,
	})
	n.say = n.link.Alive
	if err := n.takePlace(ctx, life, firstTime); err != nil {
		return err
	}
	prepareCtx, prepared := context.WithTimeout(ctx, prepareTime)
	defer prepared()
	n.loop("certificate", func() error { return n.self.keepFresh(loopCtx, n.link, n.log) })
	if err := n.startHost(prepareCtx, loopCtx, data, standing{zones: n.self.saved.Zones}, n.link); err != nil {
		return err
	}
	// Not before the databases were looked at: what is known of them may be stale.
	lookCtx, looked := context.WithTimeout(ctx, startTime)
	defer looked()
	if err := n.agent.WaitLooked(lookCtx); err != nil && ctx.Err() == nil {
		n.log.Warn("databases not observed yet", logkey.Error, err)
	}
	n.leases.Looked()
	n.prepareHost(prepareCtx, loopCtx)
	return nil
}

// zones splits --zone.
func (f *AgentConfig) zones() []string {
	if f.Zone == "" {
		return nil
	}
	zones := strings.Split(f.Zone, ",")
	slices.Sort(zones)
	return slices.Compact(zones)
}

// token reads the join token.
func (f *AgentConfig) token() (hostlink.Token, error) { return readToken(f.TokenFile) }

func readToken(file string) (hostlink.Token, error) {
	text := os.Getenv(JoinTokenVariable)
	if file != "" {
		raw, err := os.ReadFile(file)
		if err != nil {
			return hostlink.Token{}, fmt.Errorf("--token-file: %w", err)
		}
		text = string(raw)
	}
	if text == "" {
		return hostlink.Token{}, errors.New("this machine has not joined yet: run kurabe hosts token where the service is, and give the token in " + JoinTokenVariable + " or --token-file")
	}
	return hostlink.ParseToken(text)
}

// noAccounts is the value of --account-ids that gives no instance a user of its own.
const NoAccounts = "none"

// openAccounts opens the book of user ids below the service's folder; nil without root, where all is one user's.
func openAccounts(seen, ids string) (*account.Book, error) {
	if os.Getuid() != 0 {
		if ids != "" && ids != NoAccounts {
			return nil, errors.New("--account-ids needs root, which alone may run programs as other users")
		}
		return nil, nil
	}
	o := account.Options{Off: ids == NoAccounts, Etc: "/etc"}
	if ids != "" && !o.Off {
		var err error
		if o.Span, err = account.ParseSpan(ids); err != nil {
			return nil, fmt.Errorf("--account-ids %w", err)
		}
	}
	book, err := account.Open(filepath.Join(seen, "accounts.json"), o)
	if err != nil {
		return nil, fmt.Errorf("--account-ids: %w", err)
	}
	return book, nil
}
