package etcdnode

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"kurabe/internal/pki"
)

// trio is up to three nodes behind the certificates of one authority.
type trio struct {
	ca    *pki.CA
	roots *x509.CertPool
	caPEM string // file
}

func newTrio(t *testing.T) *trio {
	t.Helper()
	ca, err := pki.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &trio{ca: ca, roots: x509.NewCertPool(), caPEM: filepath.Join(t.TempDir(), "ca.pem")}
	r.roots.AppendCertsFromPEM(ca.PEM())
	if err := os.WriteFile(r.caPEM, ca.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	return r
}

// options are those of a node in dir; peer "" chooses an address.
func (r *trio) options(t *testing.T, dir, peer string, several bool) Options {
	t.Helper()
	if peer == "" {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		peer = l.Addr().String()
		l.Close()
	}
	certPEM, keyPEM, err := r.ca.Identity(pki.Party{Kind: pki.PartyServer, ID: "host-1"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	p := &Peers{Address: peer, CAFile: r.caPEM, ServerName: pki.ServerName, CertFile: filepath.Join(t.TempDir(), "cert"), KeyFile: filepath.Join(t.TempDir(), "key"),
		Verify: func(chain []*x509.Certificate) error {
			_, err := pki.VerifyParty(chain, r.roots, pki.PartyServer)
			return err
		}}
	if err := errors.Join(os.WriteFile(p.CertFile, certPEM, 0o600), os.WriteFile(p.KeyFile, keyPEM, 0o600)); err != nil {
		t.Fatal(err)
	}
	return Options{Dir: dir, Log: silent(), Peers: p, MultiNode: several}
}

func begin(t *testing.T, o Options) *Node {
	t.Helper()
	n, err := Start(testContext(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n
}

// invite has a node join, through one that is there.
func (r *trio) invite(t *testing.T, through *Node) (*Node, Options) {
	t.Helper()
	o := r.options(t, t.TempDir(), "", true)
	ctx := testContext(t)
	if err := through.OpenPeers(ctx); err != nil {
		t.Fatal(err)
	}
	for {
		var err error
		if o.Peers.Cluster, err = through.Invite(ctx, o.Peers.Address); err == nil {
			break
		}
		// Members count as heard after five seconds.
		if !errors.Is(err, ErrUnhealthy) || ctx.Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	n := begin(t, o)
	if err := n.Promote(ctx); err != nil {
		t.Fatal(err)
	}
	o.Peers.Cluster = ""
	return n, o
}

// eventuallyPut writes as soon as there is a leader.
func eventuallyPut(t *testing.T, n *Node, value string) time.Duration {
	t.Helper()
	began, ctx := time.Now(), testContext(t)
	for {
		attempt, cancel := context.WithTimeout(ctx, time.Second)
		_, err := n.Client().Put(attempt, "/k", value)
		cancel()
		if err == nil {
			return time.Since(began)
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

func TestThreeNodes(t *testing.T) {
	r := newTrio(t)
	alone := r.options(t, t.TempDir(), "", false)
	before := listeners(t)
	first := begin(t, alone)
	put(t, first, "/k", "alone")
	for socket := range listeners(t) {
		if !before[socket] {
			t.Errorf("a lone node listens: %s", socket)
		}
	}
	leader, err := Elect(testContext(t), first.Client(), "/election", "a")
	if err != nil {
		t.Fatal(err)
	}
	second, _ := r.invite(t, first)
	third, thirdOptions := r.invite(t, second)
	if got := get(t, third, "/k"); got != "alone" {
		t.Errorf("the third has %q", got)
	}
	r.strangers(t, second.peers.Address)
	r.leaderDies(t, leader, first, second, third)

	// It is lost for good, and another one takes its place.
	if err := second.Remove(testContext(t), third.peers.Address); !errors.Is(err, ErrUnhealthy) {
		t.Errorf("one of the two that are left was removed: %v", err)
	}
	if err := second.Remove(testContext(t), alone.Peers.Address); err != nil {
		t.Fatal(err)
	}
	fourth, _ := r.invite(t, third)
	if got := get(t, fourth, "/k"); got != "without the first" {
		t.Errorf("the fourth has %q", got)
	}
	// One that was away comes back with the same folder; the others have gone on.
	third.kill()
	eventuallyPut(t, fourth, "without the third")
	thirdOptions.Dir = copyDir(t, thirdOptions.Dir)
	back := begin(t, thirdOptions)
	if got := get(t, back, "/k"); got != "without the third" {
		t.Errorf("the third has %q when it is back", got)
	}
	// One that is taken out hears of it.
	ctx := testContext(t)
	for {
		err := second.Remove(ctx, fourth.peers.Address)
		if err == nil {
			break
		}
		if !errors.Is(err, ErrUnhealthy) || ctx.Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	select {
	case <-fourth.Failed():
		if !errors.Is(fourth.Err(), ErrRemoved) {
			t.Errorf("%v", fourth.Err())
		}
	case <-ctx.Done():
		t.Error("the removed one was not told")
	}
}

// leaderDies demands that the others elect another leader of both kinds.
func (r *trio) leaderDies(t *testing.T, leader *Leadership, first, second, third *Node) {
	t.Helper()
	if err := first.TransferLeader(testContext(t)); err != nil {
		t.Error(err)
	}
	if first.etcd.Server.Leader() == first.etcd.Server.MemberID() {
		t.Error("the election's holder is etcd's leader still")
	}
	next := make(chan *Leadership, 1)
	go func() {
		for {
			l, err := Elect(context.Background(), second.Client(), "/election", "b")
			if err == nil {
				next <- l
				return
			}
		}
	}()

	// The first dies as a machine does: nothing that it has begun ends in order, nor goes on.
	leader.deafen(testContext(t))
	first.kill()
	cut := time.Now()
	t.Logf("written after %s", eventuallyPut(t, second, "without the first"))
	got := <-next
	if leader.Valid() {
		t.Error("the deposed leader believes in itself when there is another one")
	}
	t.Logf("elected after %s", time.Since(cut))
	if !got.Valid() || fenced(t, third, leader) || !fenced(t, third, got) {
		t.Error("the fence did not move with the leadership")
	}
}

// strangers demands that only servers of the service get in.
func (r *trio) strangers(t *testing.T, peer string) {
	t.Helper()
	other, err := pki.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	key, csr, err := pki.NewKeyAndCSR("kurabe server host-1")
	if err != nil {
		t.Fatal(err)
	}
	cert, err := r.ca.Sign(csr, []net.IP{net.IPv4(127, 0, 0, 1)}, nil, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	database, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	identity := func(ca *pki.CA, kind pki.PartyKind) *tls.Certificate {
		cert, key, err := ca.Identity(pki.Party{Kind: kind, ID: "host-1"}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		c, err := tls.X509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		return &c
	}
	for name, c := range map[string]*tls.Certificate{
		"nobody": nil, "a database": &database, "an agent": identity(r.ca, pki.PartyAgent),
		"another authority's server": identity(other, pki.PartyServer), "": identity(r.ca, pki.PartyServer),
	} {
		config := &tls.Config{RootCAs: r.roots, ServerName: pki.ServerName}
		if c != nil {
			config.Certificates = []tls.Certificate{*c}
		}
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
		a, err := client.Get("https://" + peer + "/members")
		if err == nil {
			a.Body.Close()
		}
		if (err == nil) != (name == "") {
			t.Errorf("%q: %v", name, err)
		}
		client.CloseIdleConnections()
	}
}

// kill cuts a node off from the others and leaves it: it is as good as a machine that lost
// its network, and nothing is handed on.
func (n *Node) kill() {
	n.peersMu.Lock()
	defer n.peersMu.Unlock()
	n.peerServer.Close()
	n.etcd.Server.HardStop()
}

// copyDir is the folder of a node that was killed, without its lock.
func copyDir(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "etcd")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// TestDeposedByItsOwnClock: a leader that no renewal reaches stops to be valid before
// anybody else can be elected, and says so.
func TestDeposedByItsOwnClock(t *testing.T) {
	n := mustStart(t, t.TempDir())
	ctx := testContext(t)
	l, err := Elect(ctx, n.Client(), "/election", "a")
	if err != nil {
		t.Fatal(err)
	}
	if !l.Valid() {
		t.Error("not valid when it was elected")
	}
	won := make(chan time.Duration, 1)
	go func() {
		if _, err := Elect(ctx, n.Client(), "/election", "b"); err != nil {
			t.Error(err)
		}
		won <- bootTime()
	}()
	l.deafen(ctx)
	// It is valid until that moment and not until somebody has noticed that it is over.
	until := l.until.Load()
	for open := true; open; {
		until = max(until, l.until.Load()) // a renewal may have been under way
		select {
		case <-l.Lost():
			open = false
		case <-time.After(time.Millisecond):
		}
	}
	if l.Valid() {
		t.Error("valid when it is lost")
	}
	if gap := <-won - time.Duration(until); gap < 0 {
		t.Errorf("the next was elected %s before", -gap)
	}
}

// deafen has no renewal arrive any more.
func (l *Leadership) deafen(ctx context.Context) {
	deaf := clientv3.NewCtxClient(ctx)
	deaf.Lease = noLease{l.client.Lease}
	l.client = deaf
}

// noLease fails every renewal.
type noLease struct{ clientv3.Lease }

func (noLease) KeepAliveOnce(ctx context.Context, _ clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
