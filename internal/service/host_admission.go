package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"kurabe"
	"kurabe/internal/control"
	"kurabe/internal/etcdnode"
	"kurabe/internal/hostlink"
	"kurabe/internal/logkey"
	"kurabe/internal/pki"
	"kurabe/internal/store"
)

// hostCertificateValidity is how long a joined host may be away before it has to join
// anew; it renews its certificate when half of that is over.
const hostCertificateValidity = 180 * 24 * time.Hour

// localLink is a link inside this process. It opens secrets for hosts as soon as the state is
// loaded.
func (s *Service) localLink(kv store.KV, ca *pki.CA) *hostlink.Local {
	return hostlink.NewLocal(kv, ca, s.log).RevealBy(func(ctx context.Context, arn string, version kurabe.SecretVersionID) (logkey.Secret, error) {
		if s.shown.Load() == nil {
			return "", errors.New("the state is not loaded yet")
		}
		o, err := s.secrets.Reveal(ctx, arn, version, "")
		return o.Value.Secret, err
	})
}

// startLinks answers at the door for other hosts, if there is one.
func (s *Service) startLinks(ctx context.Context, f *Config, kv store.KV, ca *pki.CA, link hostlink.Link) {
	if s.entrance == nil {
		return
	}
	g := gate{ca: ca, control: s.newControl(f, kv, ca), s: s, f: f, kv: kv}
	s.links = hostlink.NewServer(hostlink.ServerConfig{
		Link: link, KV: kv, View: s.view, Identity: s.entrance.identity, Roots: s.entrance.roots, Admit: g.admit, Renew: g.renew, Enter: g.enter,
		Elected: s.elected, Log: s.log, Now: time.Now,
	})
	s.hostAddress = joinAddress(s.entrance.listener.Addr())
	s.loop("links of hosts", func() error { return s.links.Serve(ctx, s.entrance.listener) })
	s.loop("presence of hosts", func() error { return s.links.Watch(ctx) })
	if s.members != nil {
		s.loop("leader of the state store", func() error { return s.keepApart(ctx) })
	}
	s.loop("list of servers", func() error { return s.followServers(ctx) })
}

// joinAddress is what a host can be told to connect to. A service that listens everywhere
// does not know by which of its addresses others reach it.
func joinAddress(a net.Addr) string {
	if tcp, ok := a.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("ADDRESS_OF_THE_SERVICE:%d", tcp.Port)
	}
	return a.String()
}

// gate lets hosts in.
type gate struct {
	ca      *pki.CA
	control *control.Control
	s       *Service
	f       *Config
	kv      store.KV
}

func (g gate) admit(ctx context.Context, q hostlink.JoinRequest) (hostlink.JoinAnswer, error) {
	if err := g.control.CheckJoinToken(q.TokenID, hostlink.SecretHash(q.Secret)); err != nil {
		return hostlink.JoinAnswer{}, err
	}
	key, err := pki.KeyDigest(q.CSRPEM)
	if err != nil {
		return hostlink.JoinAnswer{}, fmt.Errorf("%w: %w", hostlink.ErrRefused, err)
	}
	// Signed before the token is spent: what cannot be signed uses up nothing.
	h, sign := kurabe.JoinedHost{ID: q.Host, Zones: q.Zones, Key: key}, g.renew
	if q.Server != nil {
		if err := g.s.checkServer(*q.Server); err != nil {
			return hostlink.JoinAnswer{}, err
		}
		h.Server, sign = &q.Server.ServerPlace, g.signServer
	}
	cert, err := sign(ctx, q.Host, q.CSRPEM)
	if err != nil {
		return hostlink.JoinAnswer{}, err
	}
	err = g.control.AdmitHost(ctx, q.TokenID, hostlink.SecretHash(q.Secret), h)
	if err != nil {
		return hostlink.JoinAnswer{}, err
	}
	return hostlink.JoinAnswer{CertPEM: cert}, nil
}

func (g gate) renew(_ context.Context, host kurabe.HostID, csrPEM []byte) ([]byte, error) {
	cert, err := g.ca.SignParty(csrPEM, pki.Party{Kind: pki.PartyAgent, ID: string(host)}, hostCertificateValidity)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", hostlink.ErrRefused, err)
	}
	return cert, nil
}

// serverJoinValidity is how long the certificate is good that a server joins with: it makes
// its own as soon as it has the authority.
const serverJoinValidity = time.Hour

func (g gate) signServer(_ context.Context, host kurabe.HostID, csrPEM []byte) ([]byte, error) {
	cert, err := g.ca.SignParty(csrPEM, pki.Party{Kind: pki.PartyServer, ID: string(host)}, serverJoinValidity)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", hostlink.ErrRefused, err)
	}
	return cert, nil
}

// checkServer refuses a server that could not work with this one.
func (s *Service) checkServer(q hostlink.ServerRequest) error {
	own, addresses := "", []string{q.Link, q.Peer}
	if s.external != nil {
		own, addresses = s.external.id(), []string{q.Link}
	}
	switch {
	case q.Layout != store.Layout:
		return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "that server knows version %d of the state's format, this one %d: install the same version of kurabe on both", q.Layout, store.Layout)
	case own == "" && q.State != "":
		return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "the servers of this service keep the state themselves: start that one without --etcd-endpoints")
	case own != q.State:
		return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "the state of this service is in an etcd, with the prefix %s: start that one with --etcd-endpoints and --etcd-prefix of the same", s.external.prefix)
	}
	for _, address := range addresses {
		if _, err := reachable("its address", address); err != nil {
			return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "%v", err)
		}
	}
	return nil
}

// enter makes a server of the service of a machine that was let in as one.
func (g gate) enter(ctx context.Context, host kurabe.HostID) (hostlink.EnterAnswer, error) {
	h, ok := g.s.view.JoinedHost(host)
	if !ok || h.Value.Server == nil {
		return hostlink.EnterAnswer{}, fmt.Errorf("%w: host %s was not let in as a server", hostlink.ErrRefused, host)
	}
	if err := g.s.canHaveServers(ctx); err != nil {
		return hostlink.EnterAnswer{}, err
	}
	if err := g.s.becomeOneOfSeveral(ctx, g.f, g.kv); err != nil {
		return hostlink.EnterAnswer{}, err
	}
	cluster := ""
	if g.s.members != nil {
		var err error
		cluster, err = g.s.members.Invite(ctx, h.Value.Server.Peer)
		if errors.Is(err, etcdnode.ErrMember) {
			err = fmt.Errorf("%w: %w; remove that server first", hostlink.ErrRefused, err)
		}
		if err != nil {
			return hostlink.EnterAnswer{}, err
		}
	}
	key, err := g.ca.KeyPEM()
	a := hostlink.EnterAnswer{
		CAKeyPEM: key, CAPEM: g.ca.PEM(), AccessKey: g.s.Credentials.AccessKey, SecretKey: g.s.Credentials.Secret.Reveal(),
		Region: g.f.Region, Account: g.f.Account, ScopeRegion: g.f.scopeRegion(), Zones: g.f.zoneList(), Cluster: cluster,
	}
	for _, server := range g.s.view.Servers() {
		a.Servers = append(a.Servers, server.Value.Server.Link)
	}
	return a, err
}

// canHaveServers says why no other server can join, nil when one can.
func (s *Service) canHaveServers(ctx context.Context) error {
	if s.entrance == nil || s.entrance.link == "" {
		return kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "no server can join: start this one with --host-listen ADDRESS:PORT, an address by which the other machines reach it")
	}
	if s.external == nil {
		return nil
	}
	err := s.external.CheckVersion(ctx)
	if errors.Is(err, etcdnode.ErrOld) {
		return kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "no server can join: %v", err)
	}
	return err
}
