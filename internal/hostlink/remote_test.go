package hostlink_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/hostlink"
	"kurabe/internal/hostlink/hostlinktest"
	"kurabe/internal/hostread"
	"kurabe/internal/pki"
	"kurabe/internal/store"
)

// far is a service and what a host needs to reach it.
type far struct {
	ca     *pki.CA
	roots  *x509.CertPool
	kv     store.KV
	view   *store.View
	server *hostlink.Server
	addr   string
	now    atomic.Int64 // ns that the server's clock is ahead
	stop   func()       // ends the server
	log    *logText
}

// logText is what the server has said.
type logText struct {
	mu   sync.Mutex // guards text
	text strings.Builder
}

// Write implements io.Writer.
func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func newFar(t *testing.T, kv store.KV, ca *pki.CA) *far {
	t.Helper()
	f := &far{ca: ca, roots: x509.NewCertPool(), kv: kv, view: store.NewView(kv), log: &logText{}}
	f.roots.AppendCertsFromPEM(ca.PEM())
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go f.view.Run(ctx)
	if err := f.view.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	identity, err := ca.ServerIdentity("host-s", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	f.server = hostlink.NewServer(hostlink.ServerConfig{
		Link: hostlink.NewLocal(kv, ca, quiet()), KV: kv, View: f.view, Identity: identity, Roots: f.roots, Log: slog.New(slog.NewTextHandler(f.log, nil)),
		Now: func() time.Time { return time.Now().Add(time.Duration(f.now.Load())) },
		Admit: func(_ context.Context, q hostlink.JoinRequest) (hostlink.JoinAnswer, error) {
			if q.Secret != "right" {
				return hostlink.JoinAnswer{}, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "no")
			}
			return hostlink.JoinAnswer{CertPEM: []byte("cert")}, nil
		},
		Renew: func(_ context.Context, host kurabe.HostID, csr []byte) ([]byte, error) {
			return ca.SignParty(csr, pki.Party{Kind: pki.PartyAgent, ID: string(host)}, time.Hour)
		},
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.addr = l.Addr().String()
	serving, stop := context.WithCancel(ctx)
	f.stop = stop
	go f.server.Serve(serving, l)
	return f
}

// joined notes that a host was let in.
func (f *far) joined(t *testing.T, id kurabe.HostID) int64 {
	t.Helper()
	revision, err := store.NewChange().PutJoinedHost(kurabe.JoinedHost{ID: id}, 0).Commit(t.Context(), f.kv)
	if err == nil {
		err = f.view.WaitRevision(t.Context(), revision)
	}
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

// party makes the certificate of one end.
func (f *far) party(t *testing.T, p pki.Party) *tls.Certificate {
	t.Helper()
	key, csr, err := pki.NewKeyAndCSR("x")
	if err != nil {
		t.Fatal(err)
	}
	cert, err := f.ca.SignParty(csr, p, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	c, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return &c
}

func (f *far) link(identity *tls.Certificate, reads *hostread.Handlers) *hostlink.Remote {
	return hostlink.NewRemote(hostlink.RemoteConfig{
		Server: f.addr, Roots: f.roots, Identity: func() *tls.Certificate { return identity }, Reads: reads, Log: quiet(),
	})
}

func (f *far) agent(t *testing.T, id kurabe.HostID) *hostlink.Remote {
	t.Helper()
	return f.link(f.party(t, pki.Party{Kind: pki.PartyAgent, ID: string(id)}), nil)
}

func remote(t *testing.T, kv store.KV, signer hostlink.Signer) hostlink.Link {
	f := newFar(t, kv, signer.(*pki.CA))
	f.joined(t, "h1")
	return f.agent(t, "h1")
}

func TestRemote(t *testing.T) { hostlinktest.Run(t, remote) }

func TestFaultyRemote(t *testing.T) {
	hostlinktest.Run(t, func(t *testing.T, kv store.KV, signer hostlink.Signer) hostlink.Link {
		return hostlinktest.NewFaulty(remote(t, kv, signer), hostlinktest.Faults{DropRequest: 0.3, DropAnswer: 0.3, Duplicate: 0.3, Cut: 0.5}, 1)
	})
}

func fresh(t *testing.T) *far {
	t.Helper()
	ca, err := pki.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := newFar(t, store.NewMemory(), ca)
	f.joined(t, "h1")
	return f
}

func TestStrangersAreRefused(t *testing.T) {
	f := fresh(t)
	other, err := pki.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	foreign := (&far{ca: other}).party(t, pki.Party{Kind: pki.PartyAgent, ID: "h1"})
	// A database server has a certificate of the same authority, with a name of its choice.
	key, csr, err := pki.NewKeyAndCSR("kurabe agent h1")
	if err != nil {
		t.Fatal(err)
	}
	cert, err := f.ca.Sign(csr, []net.IP{net.IPv4(127, 0, 0, 1)}, []string{"h1"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	database, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]*tls.Certificate{
		"no certificate": nil, "another authority": foreign, "a database": &database,
		"a server": f.party(t, pki.Party{Kind: pki.PartyServer, ID: "h1"}), "a host that was never let in": f.party(t, pki.Party{Kind: pki.PartyAgent, ID: "h2"}),
	} {
		if err := f.link(c, nil).PutHost(t.Context(), kurabe.HostReport{Host: "h1"}); !errors.Is(err, hostlink.ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := f.agent(t, "h1").PutHost(t.Context(), kurabe.HostReport{Host: "h1"}); err != nil {
		t.Errorf("the host itself: %v", err)
	}
}

func TestHostSpeaksForItselfOnly(t *testing.T) {
	f := fresh(t)
	f.joined(t, "h2")
	h1 := f.agent(t, "h1")
	ctx := t.Context()
	for name, err := range map[string]error{
		"report":          h1.PutReport(ctx, kurabe.InstanceReport{Host: "h2", Instance: "db-1"}),
		"snapshot report": h1.PutReport(ctx, kurabe.SnapshotReport{Host: "h2", Snapshot: "s"}),
		"logs":            h1.PutLogs(ctx, kurabe.LogReport{Host: "h2"}),
		"host":            h1.PutHost(ctx, kurabe.HostReport{Host: "h2"}),
		"zones":           h1.PutHost(ctx, kurabe.HostReport{Host: "h1", Zones: []string{"b"}}),
		"server":          h1.PutHost(ctx, kurabe.HostReport{Host: "h1", Server: true}),
	} {
		if !errors.Is(err, hostlink.ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := store.NewChange().PutReport(kurabe.InstanceReport{Host: "h2", Instance: "db-1"}).Commit(ctx, f.kv); err != nil {
		t.Fatal(err)
	}
	if err := h1.DropReport(ctx, "h2", kurabe.InstanceID("db-1").Ref()); err != nil { // its own, which is not there
		t.Fatal(err)
	}
	if entries, _, err := f.kv.List(ctx, store.ThingReportPrefix("h2", kurabe.KindServer)); err != nil || len(entries) != 1 {
		t.Errorf("h1 has dropped a report of h2 (%v)", err)
	}
}

func TestCertificatesOfOwnServersOnly(t *testing.T) {
	f := fresh(t)
	ctx := t.Context()
	single := kurabe.Assignment{Host: "h1", Instance: "db-1", Name: "shop", Address: "10.0.0.7", Names: []string{"shop.c0.db.test"}}
	member := kurabe.Assignment{Host: "h1", Instance: "db-2~2", Name: "pair", Address: "10.0.0.8", ListensAt: "10.0.0.9", ReaderAddress: "10.0.0.11", Role: &kurabe.Role{}}
	other := kurabe.Assignment{Host: "h2", Instance: "db-3", Name: "theirs", Address: "10.0.0.10"}
	if _, err := store.NewChange().PutAssignment(single, 0).PutAssignment(member, 0).PutAssignment(other, 0).Commit(ctx, f.kv); err != nil {
		t.Fatal(err)
	}
	h1 := f.agent(t, "h1")
	for _, c := range []struct {
		name string
		ips  []string
		ok   bool
	}{
		{"shop", []string{"10.0.0.7"}, true}, {"db-2~2", []string{"10.0.0.8", "10.0.0.9"}, true},
		{"db-2~2", []string{"10.0.0.8", "10.0.0.9", "10.0.0.11"}, true}, {"shop", []string{"10.0.0.7", "10.0.0.11"}, false},
		{"shop", []string{"10.0.0.8"}, false}, {"shop", []string{"10.0.0.7", "10.0.0.10"}, false},
		{"db-1", []string{"10.0.0.7"}, false}, {"pair", []string{"10.0.0.8"}, false}, {"db-2", []string{"10.0.0.8"}, false},
		{"theirs", []string{"10.0.0.10"}, false}, {"theirs", []string{"10.0.0.7"}, false}, {"kurabe server h1", []string{"10.0.0.7"}, false},
	} {
		_, csr, err := pki.NewKeyAndCSR(c.name)
		if err != nil {
			t.Fatal(err)
		}
		q := hostlink.SignRequest{CSRPEM: csr}
		for _, ip := range c.ips {
			q.IPs = append(q.IPs, net.ParseIP(ip))
		}
		if _, err := h1.Sign(ctx, q); (err == nil) != c.ok || err != nil && !errors.Is(err, hostlink.ErrRefused) {
			t.Errorf("%s at %v: %v", c.name, c.ips, err)
		}
		q.DNSNames = []string{"shop.c0.db.test"}
		if _, err := h1.Sign(ctx, q); (err == nil) != (c.ok && c.name == "shop") {
			t.Errorf("%s with shop's name: %v", c.name, err)
		}
		q.DNSNames = []string{"x"}
		if _, err := h1.Sign(ctx, q); !errors.Is(err, hostlink.ErrRefused) {
			t.Errorf("%s with a DNS name: %v", c.name, err)
		}
	}
}

func TestRemovedHostHearsNothingMore(t *testing.T) {
	f := fresh(t)
	h1 := f.agent(t, "h1")
	updates := h1.Assignments(t.Context(), "h1")
	<-updates
	joined, _ := f.view.JoinedHost("h1")
	revision, err := store.NewChange().DeleteJoinedHost("h1", joined.ModRevision).Commit(t.Context(), f.kv)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.view.WaitRevision(t.Context(), revision); err != nil {
		t.Fatal(err)
	}
	if err := h1.PutHost(t.Context(), kurabe.HostReport{Host: "h1"}); !errors.Is(err, hostlink.ErrRefused) && !errors.Is(err, hostlink.ErrNoLink) {
		t.Errorf("a removed host speaks: %v", err)
	}
	if _, err := store.NewChange().PutAssignment(kurabe.Assignment{Host: "h1", Instance: "db-1"}, 0).Commit(t.Context(), f.kv); err != nil {
		t.Fatal(err)
	}
	select {
	case u := <-updates:
		t.Errorf("a removed host is told %+v", u)
	case <-time.After(time.Second):
	}
}

// TestNobodyWaitsForALostLink: a call while nobody is heard fails without a try, and one
// under way ends when that is noticed.
func TestNobodyWaitsForALostLink(t *testing.T) {
	f := fresh(t)
	if _, err := store.NewChange().PutAssignment(kurabe.Assignment{Host: "h1", Instance: "db-1"}, 0).Commit(t.Context(), f.kv); err != nil {
		t.Fatal(err)
	}
	h1 := f.agent(t, "h1")
	<-h1.Assignments(t.Context(), "h1")
	report := kurabe.InstanceReport{Host: "h1", Instance: "db-1"}
	if err := h1.PutReport(t.Context(), report); err != nil {
		t.Fatal(err)
	}
	f.stop()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for !errors.Is(h1.PutReport(ctx, report), hostlink.ErrNoLink) {
		if ctx.Err() != nil {
			t.Fatal("a report is tried on, though nobody is heard")
		}
	}
	// From now on it needs no network to know.
	for range 1000 {
		if err := h1.PutReport(ctx, report); !errors.Is(err, hostlink.ErrNoLink) {
			t.Fatal(err)
		}
	}
}

func lookedLeases() *hostlink.Leases {
	l := hostlink.NewLeases(hostlink.Boottime)
	l.Looked()
	return l
}

func TestPresence(t *testing.T) {
	f := fresh(t)
	go f.server.Watch(t.Context())
	h1 := f.agent(t, "h1")
	beating, stop := context.WithCancel(t.Context())
	go lookedLeases().Beat(beating, h1.Alive)
	wait := func(what string, lost bool) kurabe.Presence {
		t.Helper()
		wake, done := f.view.Subscribe()
		defer done()
		deadline := time.After(30 * time.Second)
		for {
			if p, ok := f.view.Presence("h1"); ok && p.Lost == lost {
				return p
			}
			select {
			case <-wake:
			case <-deadline:
				t.Fatal(what)
			}
		}
	}
	wait("a host that beats is not present", false)
	stop()
	since := time.Now()
	if p := wait("a silent host is not lost", true); p.Since.Before(since.Add(-5*time.Second)) || p.Since.After(time.Now()) {
		t.Errorf("lost since %s; its last word was about %s", p.Since, since)
	}
	go lookedLeases().Beat(t.Context(), h1.Alive)
	wait("a host that is back is not present", false)
}

func TestJoin(t *testing.T) {
	f := fresh(t)
	token := hostlink.NewToken(f.ca.Digest())
	parsed, err := hostlink.ParseToken(token.Text())
	if err != nil || parsed != token {
		t.Fatalf("%v, %v", parsed, err)
	}
	if _, _, err := hostlink.Join(t.Context(), f.addr, token, hostlink.JoinRequest{}); !errors.Is(err, hostlink.ErrRefused) {
		t.Errorf("a wrong secret: %v", err)
	}
	token.Secret = "right"
	answer, root, err := hostlink.Join(t.Context(), f.addr, token, hostlink.JoinRequest{})
	if err != nil || string(answer.CertPEM) != "cert" || string(root) != string(f.ca.PEM()) {
		t.Errorf("%+v, %v", answer, err)
	}
	// An impostor gets no secret.
	heard := make(chan string, 1)
	impostor := newImpostor(t, heard)
	if _, _, err := hostlink.Join(t.Context(), impostor, token, hostlink.JoinRequest{}); err == nil || !strings.Contains(err.Error(), "authority") {
		t.Errorf("an impostor: %v", err)
	}
	select {
	case secret := <-heard:
		t.Errorf("the impostor has heard %q", secret)
	default:
	}
}

// newImpostor is a server of another authority.
func newImpostor(t *testing.T, heard chan string) string {
	t.Helper()
	ca, err := pki.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	identity, err := ca.ServerIdentity("host-s", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{identity}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go http.Serve(l, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		heard <- string(body)
	}))
	return l.Addr().String()
}

func FuzzParseToken(f *testing.F) {
	f.Add(hostlink.NewToken(strings.Repeat("0", 64)).Text())
	f.Add("kurabe-join...")
	f.Fuzz(func(t *testing.T, text string) {
		token, err := hostlink.ParseToken(text)
		if err == nil && token.Text() != strings.TrimSpace(text) {
			t.Errorf("%q became %q", text, token.Text())
		}
	})
}
