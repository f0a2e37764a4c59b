package hostlinktest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"net"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/hostlink"
	"kurabe/internal/pki"
	"kurabe/internal/store"
)

// deadline bounds every wait of the suite.
const deadline = 30 * time.Second

// attemptsMax bounds how often a call is made until it must have worked.
const attemptsMax = 1000

const host = kurabe.HostID("h1")

// Backend makes a Link over a store and an authority.
type Backend func(t *testing.T, kv store.KV, signer hostlink.Signer) hostlink.Link

// Run runs the suite.
func Run(t *testing.T, newLink Backend) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, kv *store.Memory, link hostlink.Link)
	}{
		{"assignments arrive", testAssignments},
		{"assignments after lost history", testCompacted},
		{"assignments of snapshots arrive", testSnapshots},
		{"what outlived its assignment is withdrawn", testOutlived},
		{"reports arrive", testReports},
		{"reports of snapshots arrive", testSnapshotReports},
		{"certificate", testSign},
		{"watch ends with its context", testEnd},
	} {
		t.Run(c.name, func(t *testing.T) {
			ca, err := pki.Open(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			kv := store.NewMemory()
			c.test(t, kv, newLink(t, kv, ca))
		})
	}
}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	t.Cleanup(cancel)
	return ctx
}

func mustCommit(t *testing.T, kv store.KV, c *store.Change) int64 {
	t.Helper()
	rev, err := c.Commit(testContext(t), kv)
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

// eventually calls until it works.
func eventually(t *testing.T, call func() error) {
	t.Helper()
	var err error
	for range attemptsMax {
		if err = call(); err == nil {
			return
		}
	}
	t.Fatalf("still failing: %v", err)
}

// follower is what an agent makes of a watch.
type follower struct {
	in   <-chan hostlink.Update
	have map[string]kurabe.Generation // by id, of instances and snapshots
	full bool
}

// until reads updates until the host has exactly these generations.
func (f *follower) until(t *testing.T, want map[string]kurabe.Generation) {
	t.Helper()
	ctx := testContext(t)
	for !f.full || !maps.Equal(f.have, want) {
		select {
		case u, ok := <-f.in:
			if !ok {
				t.Fatal("the watch ended")
			}
			if !f.full && !u.Full {
				t.Fatal("the first update is not full")
			}
			if u.Full {
				f.have, f.full = map[string]kurabe.Generation{}, true
			}
			for _, a := range u.Orders {
				e := a.Envelope()
				if e.Host != host {
					t.Fatalf("assignment of %s", e.Host)
				}
				f.have[e.ID] = e.Generation
			}
			for _, ref := range u.Withdrawn {
				delete(f.have, ref.ID)
			}
		case <-ctx.Done():
			t.Fatalf("have %v; want %v", f.have, want)
		}
	}
}

func assignment(id string, generation int) kurabe.Assignment {
	return kurabe.Assignment{Host: host, Instance: kurabe.InstanceID(id), Generation: kurabe.Generation(generation),
		Settings: map[string]string{"work_mem": "4MB"}}
}

func testAssignments(t *testing.T, kv *store.Memory, link hostlink.Link) {
	first := mustCommit(t, kv, store.NewChange().PutAssignment(assignment("db-1", 1), 0).
		PutAssignment(kurabe.Assignment{Host: "h2", Instance: "db-9", Generation: 1}, 0))
	f := &follower{in: link.Assignments(testContext(t), host)}
	f.until(t, map[string]kurabe.Generation{"db-1": 1})
	second := mustCommit(t, kv, store.NewChange().PutAssignment(assignment("db-1", 2), first).PutAssignment(assignment("db-2", 1), 0))
	f.until(t, map[string]kurabe.Generation{"db-1": 2, "db-2": 1})
	mustCommit(t, kv, store.NewChange().DeleteAssignment(host, kurabe.InstanceID("db-2").Ref(), second))
	f.until(t, map[string]kurabe.Generation{"db-1": 2})
	// Servers of one instance are told of as any two are: the end of one is not the other's.
	standby := mustCommit(t, kv, store.NewChange().PutAssignment(assignment("db-1~2", 1), 0))
	f.until(t, map[string]kurabe.Generation{"db-1": 2, "db-1~2": 1})
	mustCommit(t, kv, store.NewChange().DeleteAssignment(host, kurabe.InstanceID("db-1~2").Ref(), standby))
	f.until(t, map[string]kurabe.Generation{"db-1": 2})
}

func testCompacted(t *testing.T, kv *store.Memory, link hostlink.Link) {
	f := &follower{in: link.Assignments(testContext(t), host)}
	f.until(t, map[string]kurabe.Generation{})
	want := map[string]kurabe.Generation{}
	for n := range 50 {
		id := fmt.Sprintf("db-%02d", n)
		rev := mustCommit(t, kv, store.NewChange().PutAssignment(assignment(id, n), 0))
		want[id] = kurabe.Generation(n)
		kv.Compact(rev) // while the link may not have read it
		id = fmt.Sprintf("snap-%02d", n)
		kv.Compact(mustCommit(t, kv, store.NewChange().PutAssignment(snapshot(id, n), 0)))
		want[id] = kurabe.Generation(n)
	}
	f.until(t, want)
}

func testReports(t *testing.T, kv *store.Memory, link hostlink.Link) {
	ctx := testContext(t)
	view := store.NewView(kv)
	go view.Run(ctx) // ends with the test's context
	mustCommit(t, kv, store.NewChange().
		PutAssignment(kurabe.Assignment{Host: host, Instance: "db-1"}, 0).PutAssignment(kurabe.Assignment{Host: host, Instance: "db-1~2"}, 0))
	report := kurabe.InstanceReport{Host: host, Instance: "db-1", Generation: 3, Done: true}
	eventually(t, func() error { return link.PutReport(ctx, report) })
	eventually(t, func() error { return link.PutHost(ctx, kurabe.HostReport{Host: host, CPUs: 4}) })
	eventually(t, func() error {
		return link.PutCatalog(ctx, host, kurabe.Catalog{Engine: kurabe.Postgres, Version: "15.18"})
	})
	see(t, kv, view)
	if i, ok := view.Any("db-1"); !ok || len(i.Reports) != 1 || i.Reports[0].Value.Generation != 3 || !i.Reports[0].Value.Done {
		t.Errorf("report: %+v", i)
	}
	if h, ok := view.Host(host); !ok || h.CPUs != 4 {
		t.Errorf("host: %+v", h)
	}
	if view.Catalog(kurabe.Postgres, "15.18") == nil {
		t.Error("no catalog")
	}
	standby := kurabe.InstanceReport{Host: host, Instance: "db-1~2", Role: &kurabe.RoleReport{Epoch: 7, Following: true}}
	eventually(t, func() error { return link.PutReport(ctx, standby) })
	see(t, kv, view)
	if i, ok := view.Any("db-1"); !ok || len(i.Reports) != 2 || i.Reports[1].Value.Role.Epoch != 7 {
		t.Errorf("reports of two servers: %+v", i)
	}
	eventually(t, func() error { return link.DropReport(ctx, host, kurabe.InstanceID("db-1~2").Ref()) })
	eventually(t, func() error { return link.DropReport(ctx, host, kurabe.InstanceID("db-1").Ref()) })
	see(t, kv, view)
	if i, ok := view.Any("db-1"); !ok || len(i.Reports) != 0 {
		t.Errorf("after the drop: %+v", i)
	}
}

// see waits until the view shows everything that was written so far.
func see(t *testing.T, kv store.KV, view *store.View) {
	t.Helper()
	_, rev, err := kv.List(testContext(t), store.Root)
	if err != nil {
		t.Fatal(err)
	}
	if err := view.WaitRevision(testContext(t), rev); err != nil {
		t.Fatal(err)
	}
}

func testSign(t *testing.T, kv *store.Memory, link hostlink.Link) {
	// A host may ask for its own servers only.
	a := assignment("db-1", 1)
	a.Name, a.Address = "db-1", "127.66.0.7"
	mustCommit(t, kv, store.NewChange().PutAssignment(a, 0))
	keyPEM, csrPEM, err := pki.NewKeyAndCSR("db-1")
	if err != nil {
		t.Fatal(err)
	}
	var cert hostlink.Certificate
	eventually(t, func() (err error) {
		cert, err = link.Sign(testContext(t), hostlink.SignRequest{CSRPEM: csrPEM, IPs: []net.IP{net.ParseIP("127.66.0.7")}})
		return err
	})
	if _, err := tls.X509KeyPair(cert.CertPEM, keyPEM); err != nil {
		t.Errorf("key and certificate: %v", err)
	}
	block, _ := pem.Decode(cert.CertPEM)
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cert.CAPEM)
	for _, name := range []string{"127.66.0.7"} {
		if _, err := parsed.Verify(x509.VerifyOptions{Roots: roots, DNSName: name}); err != nil {
			t.Errorf("verify %s: %v", name, err)
		}
	}
}

func testEnd(t *testing.T, _ *store.Memory, link hostlink.Link) {
	ctx, cancel := context.WithCancel(testContext(t))
	in := link.Assignments(ctx, host)
	cancel()
	end := testContext(t)
	for {
		select {
		case _, ok := <-in:
			if !ok {
				return
			}
		case <-end.Done():
			t.Fatal("the watch does not end")
		}
	}
}
