package service

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/control"
	"kurabe/internal/control/scope"
	"kurabe/internal/etcdnode"
	"kurabe/internal/hostlink"
	"kurabe/internal/pki"
	"kurabe/internal/store"
)

// door is where hosts join, over a store in memory.
type door struct {
	ca      *pki.CA
	control *control.Control
	address string
	losing  bool // answers get lost
}

func newDoor(t *testing.T) *door {
	t.Helper()
	ca, err := pki.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	kv := store.NewMemory()
	view := store.NewView(kv)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go view.Run(ctx)
	if err := view.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	d := &door{ca: ca, control: control.New(scope.Scope{KV: kv, View: view, Zones: []string{"a", "b"}, Now: time.Now}, control.Config{})}
	identity, err := ca.ServerIdentity("host-s", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.PEM())
	g := gate{ca: ca, control: d.control}
	server := hostlink.NewServer(hostlink.ServerConfig{
		Link: hostlink.NewLocal(kv, ca, log), KV: kv, View: view, Identity: identity, Roots: roots, Renew: g.renew, Log: log, Now: time.Now,
		Admit: func(ctx context.Context, q hostlink.JoinRequest) (hostlink.JoinAnswer, error) {
			a, err := g.admit(ctx, q)
			if d.losing {
				return hostlink.JoinAnswer{}, errors.New("lost")
			}
			return a, err
		},
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d.address = l.Addr().String()
	go server.Serve(ctx, l)
	return d
}

func (d *door) token(t *testing.T) string {
	t.Helper()
	token := hostlink.NewToken(d.ca.Digest())
	if _, err := d.control.AddJoinToken(t.Context(), token.ID, hostlink.SecretHash(token.Secret.Reveal()), time.Hour); err != nil {
		t.Fatal(err)
	}
	return token.Text()
}

func enter(t *testing.T, data string, f AgentConfig) (*identity, error) {
	t.Helper()
	return enterService(t.Context(), &f, data, hostFile{ID: "host-1"}, slog.New(slog.NewTextHandler(io.Discard, nil)))
}

func TestJoinOutlivesALostAnswer(t *testing.T) {
	d := newDoor(t)
	data := t.TempDir()
	t.Setenv(JoinTokenVariable, d.token(t))
	flags := AgentConfig{Join: d.address, Zone: "b"}
	d.losing = true
	if _, err := enter(t, data, flags); err == nil {
		t.Fatal("joined without an answer")
	}
	d.losing = false
	first, err := enter(t, data, flags)
	if err != nil {
		t.Fatalf("once more: %v", err)
	}
	if err := os.Unsetenv(JoinTokenVariable); err != nil {
		t.Fatal(err)
	}
	second, err := enter(t, data, AgentConfig{})
	if err != nil || second.saved.Server != d.address || second.saved.Zones[0] != "b" {
		t.Fatalf("without a token: %+v, %v", second, err)
	}
	if string(first.certificate().Leaf.Raw) != string(second.certificate().Leaf.Raw) {
		t.Error("another certificate after a start")
	}
	if _, err := enter(t, data, AgentConfig{Zone: "a"}); err == nil || !strings.Contains(err.Error(), "has joined with b") {
		t.Errorf("another zone: %v", err)
	}
	moved, err := enter(t, data, AgentConfig{Join: "10.0.0.9:1"})
	if err != nil || moved.saved.Server != "10.0.0.9:1" {
		t.Errorf("another address: %v", err)
	}
	if kept, err := enter(t, data, AgentConfig{}); err != nil || kept.saved.Server != "10.0.0.9:1" {
		t.Errorf("the new address is not kept: %v", err)
	}
}

func TestCertificateIsRenewedOrJoinedForAnew(t *testing.T) {
	d := newDoor(t)
	data := t.TempDir()
	t.Setenv(JoinTokenVariable, d.token(t))
	i, err := enter(t, data, AgentConfig{Join: d.address, Zone: "b"})
	if err != nil {
		t.Fatal(err)
	}
	link := hostlink.NewRemote(hostlink.RemoteConfig{Server: d.address, Roots: i.roots, Identity: i.certificate, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	old := i.certificate()
	if err := i.renew(t.Context(), link); err != nil || i.certificate() == old {
		t.Fatalf("not renewed: %v", err)
	}
	if err := link.PutHost(t.Context(), kurabe.HostReport{Host: "host-1", Zones: []string{"b"}}); err != nil {
		t.Errorf("with the new certificate: %v", err)
	}

	keyPEM, csrPEM, err := pki.NewKeyAndCSR("x")
	if err != nil {
		t.Fatal(err)
	}
	ended, err := d.ca.SignParty(csrPEM, pki.Party{Kind: pki.PartyAgent, ID: "host-1"}, time.Nanosecond)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "link", identityFile), append(ended, keyPEM...), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Unsetenv(JoinTokenVariable); err != nil {
		t.Fatal(err)
	}
	if _, err := enter(t, data, AgentConfig{}); err == nil || !strings.Contains(err.Error(), "kurabe hosts token") {
		t.Errorf("with an ended certificate and no token: %v", err)
	}
	t.Setenv(JoinTokenVariable, d.token(t))
	again, err := enter(t, data, AgentConfig{})
	if err != nil || time.Now().After(again.certificate().Leaf.NotAfter) {
		t.Errorf("not joined anew: %v", err)
	}
}

func TestServerOfAnotherFormatIsRefused(t *testing.T) {
	place := kurabe.ServerPlace{Link: "10.0.0.2:7381", Peer: "10.0.0.2:7382"}
	for name, c := range map[string]struct {
		q    hostlink.ServerRequest
		says string
	}{
		"":               {hostlink.ServerRequest{ServerPlace: place, Layout: store.Layout}, ""},
		"a newer format": {hostlink.ServerRequest{ServerPlace: place, Layout: store.Layout + 1}, "version 2 of the state's format"},
		"every address":  {hostlink.ServerRequest{ServerPlace: kurabe.ServerPlace{Link: "0.0.0.0:1", Peer: place.Peer}, Layout: store.Layout}, "all of its own"},
		"no address":     {hostlink.ServerRequest{ServerPlace: kurabe.ServerPlace{Link: place.Link}, Layout: store.Layout}, "HOST:PORT"},
	} {
		err := (&Service{}).checkServer(c.q)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestServerOfAnotherStateIsRefused(t *testing.T) {
	place := kurabe.ServerPlace{Link: "10.0.0.2:7381"}
	own := &Service{}
	etcd := &Service{external: &externalEtcd{External: etcdnode.NewExternal(etcdnode.ExternalOptions{Seen: etcdnode.Seen{Cluster: 0xab}}), prefix: "/shop/"}}
	for name, c := range map[string]struct {
		s     *Service
		state string
		says  string
	}{
		"the same etcd":  {etcd, "ab/shop/", ""},
		"another prefix": {etcd, "ab/kurabe/", "with the prefix /shop/"},
		"another etcd":   {etcd, "cd/shop/", "with the prefix /shop/"},
		"no etcd":        {etcd, "", "with --etcd-endpoints"},
		"an etcd":        {own, "ab/shop/", "without --etcd-endpoints"},
	} {
		err := c.s.checkServer(hostlink.ServerRequest{ServerPlace: place, Layout: store.Layout, State: c.state})
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
