package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/etcdnode"
	"kurabe/internal/hostlink"
	"kurabe/internal/logkey"
	"kurabe/internal/pki"
	"kurabe/internal/store"
)

// stateStore is where the state is kept: a node of our own, or an etcd of others.
type stateStore interface {
	Elect(ctx context.Context, key, id string) (*etcdnode.Leadership, error)
	// Failed closes when the service must end, for the reason in Err.
	Failed() <-chan struct{}
	Err() error
	Maintain(ctx context.Context) error
	BackupTo(ctx context.Context, w io.Writer) error
	Close() error
}

// outside is the state in an etcd of others.
type externalEtcd struct {
	*etcdnode.External
	gate   *store.Gate
	kv     store.KV // behind the gate, nil until it is known to be ours
	prefix string
	place  string // the election that says that a server with this host's name runs
	self   string // us in it
	backup string // file of the daily copy
	known  bool   // it was opened before
	once   sync.Once
	held   chan struct{} // closed when this server has its place
	log    *slog.Logger
}

const (
	// firstTime is how long a start waits for etcd before it looks after the databases.
	firstTime = 5 * time.Second
	// placeTime is longer than the lease of a server that was killed on another machine.
	placeTime = 10 * time.Second
	// copyEvery is how often it is looked how old the daily copy is.
	copyEvery = 10 * time.Minute
)

var errNotReached = errors.New("etcd was not reached yet")

// newOutside is not connected yet; kept is what DATA says of it.
func newExternalEtcd(data string, f *EtcdConfig, kept *externalEtcdRecord, host kurabe.HostID, log *slog.Logger) (*externalEtcd, error) {
	access, err := f.access()
	if err != nil {
		return nil, err
	}
	f.forget()
	seen, err := kept.seen()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(data, externalEtcdFile), err)
	}
	o := &externalEtcd{gate: store.NewGate(errNotReached), prefix: f.Prefix, held: make(chan struct{}), backup: filepath.Join(data, "state-backup.db"), log: log, place: store.ServerElectionKey(host)}
	if o.self, err = machineID(data); err != nil {
		return nil, err
	}
	o.External = etcdnode.NewExternal(etcdnode.ExternalOptions{
		Access: access, Prefix: f.Prefix, Key: func(key string) string { return store.KeyAt(f.Prefix, key) }, Mark: store.FormatKey,
		Seen: seen, Keep: func(s etcdnode.Seen) error { return keepExternalEtcd(data, f.Prefix, s) },
		Away: o.gate.Shut, Back: o.gate.Open, Log: log,
	})
	return o, nil
}

// id tells this state from every other one.
func (o *externalEtcd) id() string { return fmt.Sprintf("%x%s", o.Seen().Cluster, o.prefix) }

// reach is id, as soon as etcd has answered.
func (o *externalEtcd) reach(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	if err := o.Connect(ctx); err != nil {
		return "", err
	}
	return o.id(), o.CheckVersion(ctx)
}

// open makes sure that what is in etcd is the service's. It may be called again.
func (o *externalEtcd) open(ctx context.Context, service string) error {
	if o.kv != nil {
		return nil
	}
	err := o.Connect(ctx)
	if errors.Is(err, etcdnode.ErrOther) {
		return fmt.Errorf("%w. Hosts obey no order that is older than their last, so these records are not gone on with as they are. If they are the ones to go on with, back them up (kurabe state backup FILE --etcd-endpoints …), remove them, and restore the file (kurabe state restore FILE --etcd-endpoints …)", err)
	}
	if err != nil {
		return err
	}
	if err := o.Apart(ctx); err != nil {
		return err
	}
	kv, err := store.OpenAt(ctx, o.Client(), o.prefix, service)
	if errors.Is(err, store.ErrForeign) {
		return fmt.Errorf("prefix %s: %w; to become a server of that service, join it (--join); else choose another --etcd-prefix", o.prefix, err)
	}
	if err != nil {
		return err
	}
	if err := o.CheckVersion(ctx); err != nil {
		o.log.Warn("no other server can join", logkey.Error, err)
	}
	o.kv = kv
	return o.Adopt(ctx)
}

// hold keeps the place of this server, until ctx ends, and calls held when it has it for the
// first time. It ends when somebody else has it.
func (o *externalEtcd) hold(ctx context.Context, held func()) error {
	for ctx.Err() == nil {
		attempt, cancel := context.WithCancel(ctx)
		late := time.AfterFunc(placeTime, cancel)
		l, err := o.External.Elect(attempt, o.place, o.self)
		if err == nil && late.Stop() {
			held()
			held = func() {}
			<-l.Lost() // with ctx at the latest
		}
		if err == nil {
			_ = l.Resign() // its lease ends it too
		}
		cancel()
		if err == nil || ctx.Err() != nil {
			continue
		}
		other, herr := o.Holder(ctx, o.place)
		if herr == nil && other != "" && other != o.self {
			return errors.New("another server runs with the name of this one (host.json), on a copy of the data folder or in its place: two of them would both do what one is told. End one of them")
		}
	}
	return ctx.Err()
}

// enter opens the gate as soon as the state is known to be ours and this server has its
// place. It may be called again.
func (o *externalEtcd) enter(ctx, loopCtx context.Context, service string, loop func(string, func() error)) error {
	if err := o.open(ctx, service); err != nil {
		return err
	}
	o.once.Do(func() {
		loop("place of this server", func() error {
			return o.hold(loopCtx, func() {
				o.gate.Through(o.kv)
				close(o.held)
			})
		})
		loop("copy of the state", func() error { return o.keepCopy(loopCtx) })
	})
	select {
	case <-o.held:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("take the place of this server: %w", context.Cause(ctx))
	}
}

// Elect waits until etcd answers, and then to be elected.
func (o *externalEtcd) Elect(ctx context.Context, key, id string) (*etcdnode.Leadership, error) {
	if err := o.gate.Wait(ctx); err != nil {
		return nil, err
	}
	return o.External.Elect(ctx, key, id)
}

// BackupTo implements stateStore: all records below the prefix, as of one revision.
func (o *externalEtcd) BackupTo(ctx context.Context, w io.Writer) error {
	if err := o.gate.Healthy(); err != nil {
		return &kurabe.Error{Code: kurabe.CodeUnavailable, Message: "the state store is not reached at this moment", Err: err}
	}
	entries, _, err := o.gate.List(ctx, store.Family)
	if err != nil {
		return err
	}
	return writeBackup(w, entries)
}

func writeBackup(w io.Writer, entries []store.Entry) error {
	var records []etcdnode.Record
	for _, e := range entries {
		records = append(records, etcdnode.Record{Key: e.Key, Value: e.Value})
	}
	return etcdnode.WriteBackup(w, records)
}

// keepCopy keeps a copy of the state that is at most a day old, until ctx ends.
func (o *externalEtcd) keepCopy(ctx context.Context) error {
	ticker := time.NewTicker(copyEvery)
	defer ticker.Stop()
	for {
		if o.gate.Healthy() == nil {
			err := etcdnode.BackupDaily(o.backup, func(w io.Writer) error { return o.BackupTo(ctx, w) })
			if err != nil && ctx.Err() == nil {
				o.log.Warn("daily copy of the state not made", logkey.Error, err)
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// healthy returns nil while etcd answers, and where there is none.
func (o *externalEtcd) healthy() error {
	if o == nil {
		return nil
	}
	return o.gate.Healthy()
}

// enterOutside finds out where the state is, and refuses a folder that says otherwise.
func (s *Service) enterExternalEtcd(f *Config, data string) error {
	kept, err := loadExternalEtcd(data)
	if err != nil {
		return err
	}
	if err := checkExternalEtcd(data, &f.Etcd, kept); err != nil || !f.Etcd.Given() {
		return err
	}
	if s.external, err = newExternalEtcd(data, &f.Etcd, kept, s.hostFile.ID, s.log); err != nil {
		return err
	}
	s.etcd, s.external.known = s.external, kept != nil
	s.view = store.NewView(s.external.gate) // who asks before it is read finds nothing
	return nil
}

// tryOutside looks who has the state before anything is done with the databases of this
// folder, if etcd answers soon. At a first start there are none, and it has to.
func (s *Service) tryExternalEtcd(ctx, loopCtx context.Context, ca *pki.CA) error {
	if s.external == nil {
		return nil
	}
	within := firstTime
	if !s.external.known {
		within = startTime
	}
	attempt, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	err := s.external.open(attempt, ca.Digest())
	late := attempt.Err() != nil
	if err == nil {
		attempt, cancel := context.WithTimeout(ctx, 2*placeTime)
		defer cancel()
		err = s.external.enter(attempt, loopCtx, ca.Digest(), s.loop)
		late = attempt.Err() != nil
	}
	if err != nil && late && s.external.known && ctx.Err() == nil {
		s.log.Warn("state store not reachable; the agent keeps running the databases", logkey.Error, err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("state store: %w", err)
	}
	return nil
}

// apartLink is the link of this machine's own agent, where the state needs other machines.
func (s *Service) apartLink(ca *pki.CA) (hostlink.Link, error) {
	if s.servers != nil {
		return s.homeLink(ca, nil)
	}
	local := s.localLink(s.external.gate, ca)
	if s.entrance == nil {
		return local, nil
	}
	return s.homeLink(ca, local)
}

func (s *Service) homeLink(ca *pki.CA, local hostlink.Link) (hostlink.Link, error) {
	if err := s.makeHome(ca, local); err != nil {
		return nil, err
	}
	return s.entrance.home, nil
}

// flags are those that another server needs too, without what lets it in.
func (o *externalEtcd) flags() string {
	if o == nil {
		return ""
	}
	return " \\\n  --etcd-endpoints " + strings.Join(o.Endpoints, ",") + " --etcd-prefix " + o.prefix
}
