package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"reflect"
	"sync/atomic"
	"time"

	"kurabe"
	"kurabe/internal/agent"
	"kurabe/internal/alarm"
	"kurabe/internal/api/monitoring"
	"kurabe/internal/control/secret"
	"kurabe/internal/control/topic"
	"kurabe/internal/etcdnode"
	"kurabe/internal/hostlink"
	"kurabe/internal/insights"
	"kurabe/internal/logkey"
	"kurabe/internal/notify"
	"kurabe/internal/pki"
	"kurabe/internal/reconcile"
	"kurabe/internal/store"
	"kurabe/internal/volume"
)

// service is a running Kurabe.
type Service struct {
	node
	URL         string
	Credentials Credentials
	etcd        stateStore
	// members are those of the state store where it is the service's own, outside is it where
	// it is in an etcd of others; the other one is nil.
	members  *etcdnode.Node
	external *externalEtcd
	view     *store.View
	http     *http.Server
	queries  *insights.Queries
	// links are those of joined hosts, nil when none can join.
	links       *hostlink.Server
	hostAddress string // where they join

	hostFile hostFile
	servers  *servers  // nil of the only one
	cluster  string    // what the state store of a server that joins starts with
	entrance *entrance // nil when nobody else can come in
	far      *hostlink.Remote
	lead     atomic.Pointer[lead]
	// deliverer delivers the notifications of topics while this server is the elected one.
	deliverer *notify.Deliverer
	topics    topic.Topics
	secrets   secret.Secrets
	shown     atomic.Pointer[store.View] // view, once it can be gone by; then secrets can be opened
}

// startTime bounds how long a start may wait for the state store.
const startTime = time.Minute

// prepareTime bounds the templates of a first start: seconds as a rule, minutes on
// a slow or busy machine, where startTime would end a service that only has to wait.
const prepareTime = 15 * time.Minute

// startService is the story of a start, in order: whoever may be in the way is
// found first, then the state, then the databases, then the API.
func startService(ctx context.Context, f *Config, data string, log *slog.Logger) (*Service, error) {
	lock, err := volume.DirLock(data)
	if err != nil {
		return nil, err
	}
	s := &Service{node: node{flags: &f.HostConfig, log: log, lock: lock, failed: make(chan error, 1)}}
	listener, err := net.Listen("tcp", f.Listen)
	if err != nil {
		s.close()
		return nil, fmt.Errorf("listen for the API: %w; choose another address with --listen", err)
	}
	ctx, s.abort = context.WithCancelCause(ctx)
	defer s.abort(nil)
	s.base, s.pool, err = enterBase(ctx, &f.HostConfig, data, log)
	if err != nil {
		listener.Close()
		s.close()
		return nil, err
	}
	if err := s.start(ctx, f, data, listener); err != nil {
		select {
		case err = <-s.failed: // a part ended: the start failed only because of it
		default:
		}
		listener.Close()
		log.Info("start aborted", logkey.Error, err) // should the end not come to its own words
		s.inTime(s.stopControl)
		s.inTime(s.close)
		return nil, err
	}
	return s, nil
}

func (s *Service) start(ctx context.Context, f *Config, data string, listener net.Listener) error {
	var err error
	if s.hostFile, err = loadHostFile(data, f.AddressPool); err != nil {
		return err
	}
	if err := cmp.Or(s.handleServerReads(), s.enterExternalEtcd(f, data)); err != nil {
		return err
	}
	if err := s.enterServers(ctx, f, data); err != nil {
		return err
	}
	if s.Credentials, err = rootCredentials(data); err != nil {
		return fmt.Errorf("root credentials: %w", err)
	}
	if s.repo, err = newRepository(f.Backups, data, s.log); err != nil {
		return err
	}
	ca, err := openAuthority(data)
	if err != nil {
		return fmt.Errorf("certificate authority: %w", err)
	}
	if err := s.openEntrance(f, data, ca); err != nil {
		return err
	}
	s.say = s.word
	var loopCtx context.Context
	loopCtx, s.cancel = context.WithCancel(context.Background())
	s.loop("repository of backups", func() error { return s.repo.Run(loopCtx) })
	if s.pool != nil {
		s.loop("pool", func() error { return s.pool.watch(loopCtx) })
	}
	if s.servers != nil || s.external != nil {
		return s.startApart(ctx, loopCtx, f, data, ca, listener)
	}
	kv, err := s.startState(ctx, loopCtx, f, data, ca)
	if err != nil {
		return err
	}
	prepareCtx, prepared := context.WithTimeout(ctx, prepareTime)
	defer prepared()
	local := s.localLink(kv, ca)
	link := hostlink.Link(local)
	if s.entrance != nil {
		if err := s.makeHome(ca, local); err != nil {
			return err
		}
		link = s.entrance.home
	}
	if err := s.startHost(prepareCtx, loopCtx, data, standing{f.hostZones(), true}, link); err != nil {
		return err
	}
	s.prepareHost(prepareCtx, loopCtx)
	if err := s.seen(prepareCtx, s.host); err != nil {
		return err
	}
	s.startLinks(loopCtx, f, kv, ca, local)
	startCtx, again := context.WithTimeout(ctx, startTime) // anew: the templates took their own time
	defer again()
	// Before anybody can ask: what the last service wrote of its databases may be
	// stale, so each is looked at and planned once.
	if err := s.agent.WaitLooked(startCtx); err != nil {
		return fmt.Errorf("look at the databases: %w", err)
	}
	s.leases.Looked()
	if err := s.planned(startCtx, s.startPlanner(loopCtx, f, data, kv, ca, listener.Addr())); err != nil {
		return err
	}
	return s.startAPI(loopCtx, f, data, kv, ca, listener)
}

func openAuthority(data string) (*pki.CA, error) {
	ca, err := pki.Open(filepath.Join(data, "pki"))
	if err != nil {
		return nil, err
	}
	// A copy for clients on this machine, which may not read the pki folder.
	return ca, volume.AtomicWrite(filepath.Join(data, "ca.pem"), ca.PEM(), 0o644)
}

// startApart is start where the state needs other machines: the databases of this one are
// looked after first, since the others may be long in coming.
func (s *Service) startApart(ctx, loopCtx context.Context, f *Config, data string, ca *pki.CA, listener net.Listener) error {
	link, err := s.apartLink(ca)
	if err != nil {
		return err
	}
	if err := s.tryExternalEtcd(ctx, loopCtx, ca); err != nil {
		return err
	}
	prepareCtx, prepared := context.WithTimeout(ctx, prepareTime)
	defer prepared()
	if err := s.startHost(prepareCtx, loopCtx, data, standing{f.hostZones(), true}, link); err != nil {
		return err
	}
	lookCtx, looked := context.WithTimeout(ctx, startTime)
	defer looked()
	if err := s.agent.WaitLooked(lookCtx); err != nil && ctx.Err() == nil {
		s.log.Warn("databases not observed yet", logkey.Error, err)
	}
	s.leases.Looked()
	kv, err := s.startState(ctx, loopCtx, f, data, ca)
	if err != nil {
		return err
	}
	if s.servers != nil {
		if err := s.register(ctx, f, kv); err != nil {
			return err
		}
	}
	s.startLinks(loopCtx, f, kv, ca, s.localLink(kv, ca))
	if err := s.planned(ctx, s.startPlanner(loopCtx, f, data, kv, ca, listener.Addr())); err != nil {
		return err
	}
	prepareCtx, again := context.WithTimeout(ctx, prepareTime) // anew: the others took their own time
	defer again()
	s.prepareHost(prepareCtx, loopCtx)
	if err := s.seen(prepareCtx, s.host); err != nil {
		return err
	}
	return s.startAPI(loopCtx, f, data, kv, ca, listener)
}

// startState opens the state store and follows it. Where it needs others it waits for them as
// long as it takes.
func (s *Service) startState(ctx, loopCtx context.Context, f *Config, data string, ca *pki.CA) (store.KV, error) {
	startCtx, done := context.WithTimeout(ctx, startTime)
	if s.servers != nil || s.external != nil {
		startCtx, done = context.WithCancel(ctx)
	}
	defer done()
	kv, err := s.openState(startCtx, loopCtx, data, ca)
	if err != nil {
		return nil, fmt.Errorf("state store: %w", err)
	}
	if s.view == nil {
		s.view = store.NewView(kv)
	}
	s.loop("state view", func() error { return s.view.Run(loopCtx) })
	if err := s.view.WaitReady(startCtx); err != nil {
		return nil, fmt.Errorf("state store: %w", err)
	}
	if err := s.view.Healthy(); err != nil {
		return nil, fmt.Errorf("state store: %w", err)
	}
	if err := s.openSecrets(f, kv, ca); err != nil {
		return nil, err
	}
	s.shown.Store(s.view)
	s.loop("state store", func() error { return s.etcd.Maintain(loopCtx) })
	return kv, nil
}

// openState returns a store that is known to be this service's.
func (s *Service) openState(ctx, loopCtx context.Context, data string, ca *pki.CA) (store.KV, error) {
	if s.external != nil {
		return s.external.gate, s.external.enter(ctx, loopCtx, ca.Digest(), s.loop)
	}
	options := etcdnode.Options{Dir: filepath.Join(data, "etcd"), Backup: filepath.Join(data, "state-backup.db"), Log: s.log, MultiNode: s.servers != nil}
	if s.entrance != nil && s.entrance.link != "" {
		options.Peers = &s.entrance.files
	}
	if options.MultiNode {
		s.log.Info("state store starts, and waits for a majority of the servers", "servers", s.servers.Links)
	}
	node, err := etcdnode.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	s.etcd, s.members = node, node
	if options.MultiNode {
		if err := errors.Join(node.OpenPeers(ctx), node.Promote(ctx)); err != nil {
			return nil, err
		}
	}
	kv := store.Etcd(node.Client())
	return kv, store.Open(ctx, kv)
}

// planned waits until every instance was planned once, or another server does that.
func (s *Service) planned(ctx context.Context, planner *reconcile.Loop) error {
	wake, stop := s.view.Subscribe()
	defer stop()
	for {
		if p := s.view.Planner(); s.servers != nil && p != "" && p != s.hostFile.ID {
			return nil
		}
		select {
		case <-planner.Answered():
			return nil
		case <-wake:
		case <-ctx.Done():
			return fmt.Errorf("no planner was elected: %w", context.Cause(ctx))
		}
	}
}

// seen waits until this process's view shows the host with its versions.
func (s *Service) seen(ctx context.Context, host *agent.Host) error {
	wake, stop := s.view.Subscribe()
	defer stop()
	for {
		if r, ok := s.view.Host(host.ID); ok && reflect.DeepEqual(r, host.Report()) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("state store: %w", context.Cause(ctx))
		case <-wake:
		}
	}
}

// heard is when a host has spoken over the network, if it has to.
func (s *Service) heard(id kurabe.HostID) (time.Time, bool) {
	if s.links == nil {
		return time.Time{}, false
	}
	return s.links.Heard(id)
}

func (s *Service) startPlanner(ctx context.Context, f *Config, data string, kv store.KV, ca *pki.CA, at net.Addr) *reconcile.Loop {
	s.newNotifications(f, data, kv, ca, at)
	c := s.newControl(f, kv, ca)
	alarms := alarm.Loop{
		KV: kv, View: s.view, Place: alarm.Place{Region: f.Region, Account: f.Account}, Log: s.log, Now: time.Now,
		Read: monitoring.NewAlarmReader(c, s.allSeries()).Read,
	}
	loop := reconcile.New(reconcile.Config{
		KV: kv, View: s.view, Log: s.log, Now: time.Now, VerifyEvery: f.VerifyEvery, Elect: s.elect, Heard: s.heard,
		InTerm: []func(context.Context, store.Fence){s.deliverer.Run, alarms.Run, c.EventDispatcher(s.log).Run, c.KeepSecrets(s.log)},
	})
	s.loop("planner", func() error { return loop.Run(ctx) })
	return loop
}

// wait returns when the service is to end: nil when it was asked to.
func (s *Service) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-s.failed:
		return err
	case <-s.etcd.Failed():
		return fmt.Errorf("state store: %w", s.etcd.Err())
	}
}

// stopControl ends API, planner and agent; databases keep running.
func (s *Service) stopControl() {
	if s.http != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		if s.http.Shutdown(ctx) != nil {
			s.http.Close()
		}
		cancel()
	}
	s.stop()
}

func (s *Service) close() {
	s.closeHost()
	if s.entrance != nil {
		s.entrance.listener.Close() // closed already where links were served
	}
	if s.etcd != nil {
		if err := s.etcd.Close(); err != nil {
			s.log.Error("state store not closed cleanly", logkey.Error, err)
		}
	}
	s.leave()
}
