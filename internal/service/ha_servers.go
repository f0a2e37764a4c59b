package service

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/etcdnode"
	"kurabe/internal/hostlink"
	"kurabe/internal/logkey"
	"kurabe/internal/pki"
	"kurabe/internal/reconcile"
	"kurabe/internal/store"
	"kurabe/internal/volume"
)

// entrance is where other machines reach this server: hosts, and other servers.
type entrance struct {
	listener net.Listener
	data     string // the folder of this server
	link     string // HOST:PORT, as others are told; "" when it listens at every address
	peer     string // of the member of the state store
	files    etcdnode.Peers
	identity tls.Certificate
	roots    *x509.CertPool
	home     *hostlink.Home // the link of this machine's own agent

	opening sync.Mutex // held while the first server becomes one of several
}

// openEntrance listens for hosts, if there is to be an entrance. Nobody is answered yet.
func (s *Service) openEntrance(f *Config, data string, ca *pki.CA) error {
	if f.HostListen == "" {
		return nil
	}
	d := &entrance{data: data, roots: x509.NewCertPool()}
	d.roots.AppendCertsFromPEM(ca.PEM())
	var err error
	if d.listener, err = net.Listen("tcp", f.HostListen); err != nil {
		return fmt.Errorf("listen for hosts: %w; choose another address with --host-listen", err)
	}
	s.entrance = d
	// With port 0 the real one is known only now.
	listens := *f
	listens.HostListen = d.listener.Addr().String()
	d.link, d.peer, err = listens.places()
	if err != nil && s.servers != nil {
		return err
	}
	certPEM, keyPEM, err := ca.Identity(pki.Party{Kind: pki.PartyServer, ID: string(s.hostFile.ID)}, pki.ValidityMax)
	if err != nil {
		return fmt.Errorf("certificate for hosts: %w", err)
	}
	if d.identity, err = tls.X509KeyPair(certPEM, keyPEM); err != nil {
		return fmt.Errorf("certificate for hosts: %w", err)
	}
	dir := filepath.Join(data, "pki")
	d.files = etcdnode.Peers{
		Address: d.peer, CertFile: filepath.Join(dir, "server.pem"), KeyFile: filepath.Join(dir, "server.key"), CAFile: filepath.Join(dir, "ca.pem"),
		ServerName: pki.ServerName, Cluster: s.cluster,
		Verify: func(chain []*x509.Certificate) error {
			party, err := pki.VerifyParty(chain, d.roots, pki.PartyServer)
			if err != nil {
				return err
			}
			return s.knows(kurabe.HostID(party.ID))
		},
	}
	if err := volume.AtomicWrite(d.files.KeyFile, keyPEM, 0o600); err != nil {
		return fmt.Errorf("certificate for servers: %w", err)
	}
	return volume.AtomicWrite(d.files.CertFile, certPEM, 0o600)
}

// knows says whether a server may speak to the state store: one that has a record, and was not
// given up. What a server of which this one has not heard yet is for, is known in a moment.
func (s *Service) knows(id kurabe.HostID) error {
	view := s.shown.Load()
	if view == nil || id == s.hostFile.ID {
		return nil // it has to hear the others to know anything
	}
	if h, ok := view.JoinedHost(id); !ok || h.Value.Server == nil || h.Value.Gone {
		return fmt.Errorf("server %s was removed, or never let in", id)
	}
	return nil
}

// reachable refuses an address that others cannot be told.
func reachable(flag, address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("%s %q is not HOST:PORT: %w", flag, address, err)
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		return "", fmt.Errorf("%s %s: of several servers each needs an address there by which the others reach it, not all of its own", flag, address)
	}
	return net.JoinHostPort(host, port), nil
}

// nextPort is where the state store listens unless it is told.
func nextPort(link string) (string, error) {
	host, text, err := net.SplitHostPort(link)
	if err != nil {
		return "", err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 65535 {
		return "", fmt.Errorf("--host-listen %s: no port follows it for other servers; name one with --peer-listen", link)
	}
	return net.JoinHostPort(host, strconv.Itoa(int(port)+1)), nil
}

// makeHome makes the link of this machine's own agent. local is nil of one of several.
func (s *Service) makeHome(ca *pki.CA, local hostlink.Link) error {
	party := pki.Party{Kind: pki.PartyAgent, ID: string(s.hostFile.ID)}
	certPEM, keyPEM, err := ca.Identity(party, pki.ValidityMax)
	if err != nil {
		return err
	}
	own, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return err
	}
	life, err := machineID(s.entrance.data)
	if err != nil {
		return err
	}
	c := hostlink.RemoteConfig{
		Life: life, Server: s.entrance.link, Roots: s.entrance.roots, Identity: func() *tls.Certificate { return &own },
		Reads: s.reads, Log: s.log,
	}
	if s.servers != nil {
		c.Servers = s.servers.Links
		// Nobody answers at this one's own entrance yet.
		if n := slices.IndexFunc(c.Servers, func(link string) bool { return link != s.entrance.link }); n >= 0 {
			c.Server = c.Servers[n]
		}
	}
	s.far = hostlink.NewRemote(c)
	s.entrance.home = hostlink.NewHome(local, s.far)
	return nil
}

// word tells whoever decides that this host is there: this process, while the service has no
// other server, and the planner's server from then on.
func (s *Service) word(ctx context.Context, q hostlink.Alive) (hostlink.AliveAnswer, error) {
	if s.entrance != nil {
		select {
		case <-s.entrance.home.Far():
			return s.far.Alive(ctx, q)
		default:
		}
	}
	return hostlink.OwnLeases(s.view)(ctx, q)
}

// lead is an election that this server has won.
type lead struct {
	*etcdnode.Leadership
	since time.Time
}

// elect waits until this server is the planner.
func (s *Service) elect(ctx context.Context) (reconcile.Term, error) {
	l, err := s.etcd.Elect(ctx, store.PlannerElectionKey, string(s.hostFile.ID))
	if err != nil {
		return reconcile.Term{}, err
	}
	s.lead.Store(&lead{l, time.Now()})
	return reconcile.Term{Fence: fence(l), Lost: l.Lost(), Resign: l.Resign}, nil
}

func fence(l *etcdnode.Leadership) store.Fence {
	return store.Fence{Key: store.PlannerElectionKey, ModRevision: l.Revision}
}

// elected says whether this server is the planner at this moment.
func (s *Service) elected() (hostlink.Election, bool) {
	l := s.lead.Load()
	if l == nil || !l.Valid() {
		return hostlink.Election{}, false
	}
	return hostlink.Election{Since: l.since, Fence: fence(l.Leadership)}, true
}

// yieldEvery is how often a planner looks whether its machine is also that of etcd's leader.
const yieldEvery = 2 * time.Second

// keepApart keeps etcd's leader on another machine than the planner.
func (s *Service) keepApart(ctx context.Context) error {
	ticker := time.NewTicker(yieldEvery)
	defer ticker.Stop()
	for {
		if _, elected := s.elected(); elected {
			if err := s.members.TransferLeader(ctx); err != nil && ctx.Err() == nil {
				s.log.Debug("leader of the state store not moved, tried again", logkey.Error, err)
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// becomeSeveral is what the first server does before a second one can be: it opens its
// state store for others, and becomes a host like any other. It may be done again.
func (s *Service) becomeOneOfSeveral(ctx context.Context, f *Config, kv store.KV) error {
	s.entrance.opening.Lock()
	defer s.entrance.opening.Unlock()
	if s.members != nil {
		if err := s.members.OpenPeers(ctx); err != nil {
			return err
		}
	}
	if s.servers == nil {
		list := &servers{path: filepath.Join(s.entrance.data, serversFile), Links: []string{s.entrance.link}}
		if err := list.save(); err != nil {
			return err
		}
		s.servers = list
	}
	if err := s.register(ctx, f, kv); err != nil {
		return err
	}
	s.entrance.home.GoFar()
	return nil
}

// register keeps the record of this server true.
func (s *Service) register(ctx context.Context, f *Config, kv store.KV) error {
	place := kurabe.ServerPlace{Link: s.entrance.link, Peer: s.entrance.peer}
	h, known := s.view.JoinedHost(s.hostFile.ID)
	if h.Value.Gone {
		return fmt.Errorf("server %s was declared lost; to join again, use an empty folder", s.hostFile.ID)
	}
	if known && h.Value.Server != nil && *h.Value.Server == place && slices.Equal(h.Value.Zones, f.hostZones()) {
		return nil
	}
	if !known {
		if s.servers.Joined {
			return fmt.Errorf("server %s was removed from the service; to join again, use an empty folder", s.hostFile.ID)
		}
		h.Value = kurabe.JoinedHost{ID: s.hostFile.ID, JoinedAt: time.Now().UTC()}
	}
	h.Value.Zones, h.Value.Server = f.hostZones(), &place
	revision, err := store.NewChange().PutJoinedHost(h.Value, h.ModRevision).Commit(ctx, kv)
	if err != nil {
		return fmt.Errorf("tell the others of this server: %w", err)
	}
	return s.view.WaitRevision(ctx, revision)
}

// followServers keeps the list of servers beside the state, until ctx ends.
func (s *Service) followServers(ctx context.Context) error {
	wake, stop := s.view.Subscribe()
	defer stop()
	counted := false
	for {
		// A member of the service's own store is told by that; a server that has none knows by
		// its record, which it has from when there are several.
		h, ok := s.view.JoinedHost(s.hostFile.ID)
		if s.external != nil && (counted && !ok || h.Value.Gone) {
			return etcdnode.ErrRemoved
		}
		counted = ok
		var links []string
		for _, h := range s.view.Servers() {
			links = append(links, h.Value.Server.Link)
		}
		s.entrance.opening.Lock()
		if s.servers != nil && len(links) > 0 && !sameServers(links, s.servers.Links) {
			s.servers.Links = links
			if err := s.servers.save(); err != nil {
				s.log.Warn("list of servers not kept, tried again", logkey.Error, err)
				s.servers.Links = nil
			}
		}
		s.entrance.opening.Unlock()
		select {
		case <-wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// removeMember takes another server out of the state store.
func (s *Service) removeMember(ctx context.Context, h kurabe.JoinedHost) error {
	if h.ID == s.hostFile.ID {
		return kurabe.Errorf(kurabe.CodeInvalidInstanceState, "server %s was asked to remove itself: ask another one, with --endpoint", h.ID)
	}
	if s.members == nil {
		return nil // it ends by itself when its record is gone
	}
	err := s.members.Remove(ctx, h.Server.Peer)
	if errors.Is(err, etcdnode.ErrUnhealthy) {
		return &kurabe.Error{Code: kurabe.CodeInvalidInstanceState, Err: err,
			Message: fmt.Sprintf("without server %s the servers that are heard would be too few to decide anything; start the others, and wait five seconds", h.ID)}
	}
	return err
}
