package main

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"time"

	"kurabe"
	"kurabe/internal/control"
	"kurabe/internal/hostlink"
	"kurabe/internal/pki"
	"kurabe/internal/store"
)

// hostCertificateValidity is how long a joined host may be away before it has to join
// anew; it renews its certificate when half of that is over.
const hostCertificateValidity = 180 * 24 * time.Hour

// startLinks opens the door for other hosts, if there is to be one.
func (s *service) startLinks(ctx context.Context, f *serverFlags, kv store.KV, ca *pki.CA, link hostlink.Link) error {
	if f.hostListen == "" {
		return nil
	}
	listener, err := net.Listen("tcp", f.hostListen)
	if err != nil {
		return fmt.Errorf("listen for hosts: %w; choose another address with --host-listen", err)
	}
	identity, err := ca.ServerIdentity(string(s.host.ID), pki.ValidityMax)
	if err != nil {
		return fmt.Errorf("certificate for hosts: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.PEM())
	g := gate{ca: ca, control: s.newControl(f, kv, ca)}
	s.links = hostlink.NewServer(hostlink.ServerConfig{
		Link: link, KV: kv, View: s.view, Identity: identity, Roots: roots, Admit: g.admit, Renew: g.renew, Log: s.log, Now: time.Now,
	})
	s.hostAddress = joinAddress(listener.Addr())
	s.loop("links of hosts", func() error { return s.links.Serve(ctx, listener) })
	s.loop("presence of hosts", func() error { return s.links.Watch(ctx) })
	return nil
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
}

func (g gate) admit(ctx context.Context, q hostlink.JoinRequest) (hostlink.JoinAnswer, error) {
	key, err := pki.KeyDigest(q.CSRPEM)
	if err != nil {
		return hostlink.JoinAnswer{}, fmt.Errorf("%w: %w", hostlink.ErrRefused, err)
	}
	// Signed before the token is spent: what cannot be signed uses up nothing.
	cert, err := g.renew(ctx, q.Host, q.CSRPEM)
	if err != nil {
		return hostlink.JoinAnswer{}, err
	}
	err = g.control.AdmitHost(ctx, q.TokenID, hashOf(q.Secret), kurabe.JoinedHost{ID: q.Host, Zones: q.Zones, Key: key})
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

func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// hostRequests answers /kurabe/hosts.
type hostRequests struct {
	control   *control.Control
	authority string
	address   string // "" when no host can join
}

func (h hostRequests) list(*http.Request) (any, error) { return h.control.Hosts(), nil }

// joinInvitation is what lets a host in.
type joinInvitation struct {
	Token     string
	Address   string
	ExpiresAt time.Time
}

func (h hostRequests) token(r *http.Request) (any, error) {
	if h.address == "" {
		return nil, kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "no host can join: start the service with --host-listen ADDRESS:PORT")
	}
	validity, err := time.ParseDuration(r.URL.Query().Get("validity"))
	if err != nil {
		return nil, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "validity %.40q is no duration", r.URL.Query().Get("validity"))
	}
	t := hostlink.NewToken(h.authority)
	stored, err := h.control.AddJoinToken(r.Context(), t.ID, hashOf(t.Secret.Reveal()), validity)
	return joinInvitation{t.Text(), h.address, stored.ExpiresAt}, err
}

func (h hostRequests) drain(r *http.Request) (any, error) {
	query := r.URL.Query()
	return h.after(h.control.DrainHost(r.Context(), kurabe.HostID(query.Get("host")), query.Get("undo") == ""))
}

func (h hostRequests) remove(r *http.Request) (any, error) {
	return h.after(h.control.RemoveHost(r.Context(), kurabe.HostID(r.URL.Query().Get("host"))))
}

func (h hostRequests) giveUp(r *http.Request) (any, error) {
	return h.after(h.control.GiveUpHost(r.Context(), kurabe.HostID(r.URL.Query().Get("host"))))
}

// after answers with the hosts as they are after a change.
func (h hostRequests) after(err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return h.control.Hosts(), nil
}
