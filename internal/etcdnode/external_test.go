package etcdnode_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"kurabe/internal/etcdnode"
	"kurabe/internal/harness"
)

func TestMain(m *testing.M) {
	harness.EtcdMain()
	os.Exit(m.Run())
}

const (
	prefix = "/ours/"
	mark   = "mark"
	// patience bounds a wait for what takes seconds.
	patience = 40 * time.Second
)

// watched is an External, and what it has told.
type watched struct {
	*etcdnode.External
	mu   sync.Mutex // guards the rest
	away int
	back int
	kept etcdnode.Seen
}

func accessTo(e *harness.Etcd) etcdnode.Access {
	return etcdnode.Access{Endpoints: e.Endpoints(), CAFile: e.CAFile, CertFile: e.CertFile, KeyFile: e.KeyFile}
}

func newExternal(t *testing.T, a etcdnode.Access, seen etcdnode.Seen) *watched {
	t.Helper()
	w := &watched{}
	w.External = etcdnode.NewExternal(etcdnode.ExternalOptions{
		Access: a, Prefix: prefix, Key: func(key string) string { return prefix + key }, Mark: mark, Seen: seen,
		Keep: func(s etcdnode.Seen) error { w.note(func() { w.kept = s }); return nil },
		Away: func(error) { w.note(func() { w.away++ }) },
		Back: func() { w.note(func() { w.back++ }) },
		Log:  slog.New(slog.DiscardHandler),
	})
	t.Cleanup(func() { w.Close() })
	return w
}

func (w *watched) note(what func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	what()
}

func (w *watched) told() (away, back int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.away, w.back
}

// adopted is an External whose mark is there, and which is watched over.
func adopted(t *testing.T, e *harness.Etcd) *watched {
	t.Helper()
	if _, err := e.Client(t).Put(t.Context(), prefix+mark, "ours"); err != nil {
		t.Fatal(err)
	}
	w := newExternal(t, accessTo(e), etcdnode.Seen{})
	if err := errors.Join(w.Connect(t.Context()), w.Adopt(t.Context())); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { w.Maintain(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	return w
}

// put writes as soon as that is possible.
func (w *watched) put(t *testing.T, value string) time.Duration {
	t.Helper()
	return harness.Wait(t, patience, "a write of "+value, func() string {
		ctx, cancel := context.WithTimeout(clientv3.WithRequireLeader(t.Context()), time.Second)
		defer cancel()
		if _, err := w.Client().Put(ctx, prefix+"k", value); err != nil {
			return err.Error()
		}
		return ""
	})
}

// elected has somebody be elected for as long as the test takes.
func (w *watched) elected(t *testing.T, id string) *etcdnode.Leadership {
	t.Helper()
	l, err := w.Elect(t.Context(), "election", id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Resign() })
	return l
}

// TestExternalLosesMembers loses each kind of member, and then all of them.
func TestExternalLosesMembers(t *testing.T) {
	t.Parallel()
	e := harness.StartEtcd(t, 3, "127.0.0.1")
	w := adopted(t, e)
	l := w.elected(t, "a")
	if !strings.HasPrefix(l.Key, prefix) {
		t.Errorf("elected by %s", l.Key)
	}
	watch := w.Client().Watch(t.Context(), prefix+"k")
	w.loseOne(t, e, "a follower", func(m, leader *harness.EtcdMember) bool { return m != leader })
	w.loseOne(t, e, "the leader", func(m, leader *harness.EtcdMember) bool { return m == leader })
	if away, _ := w.told(); away != 0 || !l.Valid() {
		t.Errorf("away %d times, elected: %v", away, l.Valid())
	}
	w.loseAll(t, e, l)
	if again := w.elected(t, "b"); again.Revision <= l.Revision {
		t.Errorf("elected at %d, then at %d", l.Revision, again.Revision)
	}
	w.put(t, "last")
	var got []string
	for len(got) == 0 || got[len(got)-1] != "last" {
		r, ok := <-watch
		if !ok || r.Err() != nil {
			t.Fatalf("the watch has ended after %v: %v", got, r.Err())
		}
		for _, ev := range r.Events {
			got = append(got, string(ev.Kv.Value))
		}
	}
	for _, want := range []string{"a follower", "the leader", "last"} {
		if !slices.Contains(got, want) {
			t.Errorf("the watch has %q", got)
		}
	}
}

// loseOne kills a member, and demands that writes go on.
func (w *watched) loseOne(t *testing.T, e *harness.Etcd, name string, is func(m, leader *harness.EtcdMember) bool) {
	t.Helper()
	leader := e.Leader(t)
	m := e.Members[slices.IndexFunc(e.Members, func(m *harness.EtcdMember) bool { return is(m, leader) })]
	m.Kill(t)
	t.Logf("%s is killed: a write after %s", name, w.put(t, name))
	if e.Leader(t) == m {
		t.Error("the dead one leads")
	}
	m.Start(t)
	e.WaitHealthy(t)
}

// loseAll kills all members, and starts them again when that was noticed.
func (w *watched) loseAll(t *testing.T, e *harness.Etcd, l *etcdnode.Leadership) {
	t.Helper()
	for _, m := range e.Members {
		m.Kill(t)
	}
	w.waitTold(t, 1, 0)
	select {
	case <-l.Lost():
	case <-time.After(patience):
		t.Error("still elected")
	}
	for _, m := range e.Members {
		m.Start(t)
	}
	w.waitTold(t, 1, 1)
}

// waitTold waits until it was told so often that etcd is away, and that it is back.
func (w *watched) waitTold(t *testing.T, away, back int) {
	t.Helper()
	harness.Wait(t, patience, "it is told", func() string {
		if a, b := w.told(); a != away || b != back {
			return fmt.Sprintf("away %d times, back %d times", a, b)
		}
		return ""
	})
}

// TestExternalFreezes: a member that is frozen holds nobody up for long.
func TestExternalFreezes(t *testing.T) {
	t.Parallel()
	e := harness.StartEtcd(t, 3, "127.0.0.1")
	w := adopted(t, e)
	m := e.Leader(t)
	m.Freeze(t, true)
	t.Logf("the leader is frozen: a write after %s", w.put(t, "frozen"))
	m.Freeze(t, false)
	w.put(t, "thawed")
}

// TestExternalIsAnother: what was restored, replaced or emptied is not gone on with.
func TestExternalIsAnother(t *testing.T) {
	t.Parallel()
	e := harness.StartEtcd(t, 1, "127.0.0.1")
	w := adopted(t, e)
	seen := w.Seen()
	if seen.Cluster == 0 || seen.Revision < 2 || w.kept != seen {
		t.Errorf("seen %+v, kept %+v", seen, w.kept)
	}
	for name, s := range map[string]etcdnode.Seen{
		"an older copy":   {Cluster: seen.Cluster, Revision: seen.Revision + 100},
		"another cluster": {Cluster: seen.Cluster + 1, Revision: 1},
	} {
		if err := newExternal(t, accessTo(e), s).Connect(t.Context()); !errors.Is(err, etcdnode.ErrOther) {
			t.Errorf("%s: %v", name, err)
		}
	}
	again := newExternal(t, accessTo(e), seen)
	if err := again.Connect(t.Context()); err != nil {
		t.Error(err)
	}
	if err := again.CheckVersion(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := e.Client(t).Delete(t.Context(), prefix, clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-w.Failed():
	case <-time.After(patience):
		t.Fatal("the service goes on without a state")
	}
	if !errors.Is(w.Err(), etcdnode.ErrOther) {
		t.Error(w.Err())
	}
	if away, _ := w.told(); away != 1 {
		t.Errorf("away %d times", away)
	}
	if err := w.Adopt(t.Context()); !errors.Is(err, etcdnode.ErrOther) {
		t.Error(err)
	}
}

// TestExternalSaysWhy: whoever is not let in, or cannot trust etcd, hears the reason.
func TestExternalSaysWhy(t *testing.T) {
	t.Parallel()
	e := harness.StartEtcd(t, 1, "127.0.0.1")
	other := harness.StartEtcd(t, 1, "127.0.0.1")
	c := e.Client(t)
	for _, err := range []error{
		second(c.UserAdd(t.Context(), "root", "root-secret")), second(c.UserGrantRole(t.Context(), "root", "root")),
		second(c.RoleAdd(t.Context(), "ours")), second(c.RoleGrantPermission(t.Context(), "ours", prefix, clientv3.GetPrefixRangeEnd(prefix), clientv3.PermissionType(clientv3.PermReadWrite))),
		second(c.UserAdd(t.Context(), "us", "our-secret")), second(c.UserGrantRole(t.Context(), "us", "ours")),
		second(c.UserAdd(t.Context(), "them", "their-secret")),
		second(c.Put(t.Context(), prefix+mark, "ours")), second(c.AuthEnable(t.Context())),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, try := range map[string]struct {
		change func(*etcdnode.Access)
		says   string
	}{
		"let in":               {func(*etcdnode.Access) {}, ""},
		"no certificate":       {func(a *etcdnode.Access) { a.CertFile, a.KeyFile = "", "" }, "certificate required"},
		"another authority":    {func(a *etcdnode.Access) { a.CAFile = other.CAFile }, "unknown authority"},
		"nobody trusted":       {func(a *etcdnode.Access) { a.CAFile = "" }, "unknown authority"},
		"no such file":         {func(a *etcdnode.Access) { a.CAFile = filepath.Join(t.TempDir(), "none") }, "no such file"},
		"no authority in it":   {func(a *etcdnode.Access) { a.CAFile = e.KeyFile }, "no certificate in it"},
		"nobody there":         {func(a *etcdnode.Access) { a.Endpoints = []string{"https://127.0.0.1:1"} }, "refused"},
		"no user":              {func(a *etcdnode.Access) { a.User, a.Password = "", "" }, "permission denied"}, // it is who its certificate says
		"a wrong password":     {func(a *etcdnode.Access) { a.Password = "guessed" }, "authentication failed"},
		"a user without right": {func(a *etcdnode.Access) { a.User, a.Password = "them", "their-secret" }, "permission denied"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := accessTo(e)
			a.User, a.Password = "us", "our-secret"
			try.change(&a)
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			x := newExternal(t, a, etcdnode.Seen{})
			err := x.Connect(ctx)
			cancel()
			if (err == nil) != (try.says == "") || err != nil && !strings.Contains(err.Error(), try.says) {
				t.Error(err)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("it tells a password: %v", err)
			}
			if try.says == "" {
				l := x.elected(t, "us")
				if err := errors.Join(x.Adopt(t.Context()), x.Apart(t.Context()), l.Resign()); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func second(_ any, err error) error { return err }

// TestExternalApart: a prefix within another service's is refused, one beside it is not.
func TestExternalApart(t *testing.T) {
	t.Parallel()
	e := harness.StartEtcd(t, 1, "127.0.0.1")
	for at, refused := range map[string]bool{"/": true, "/ours/": false, "/ou": false, "/others/": false} {
		c := e.Client(t)
		if _, err := c.Put(t.Context(), at+mark, "theirs"); err != nil {
			t.Fatal(err)
		}
		deep := etcdnode.NewExternal(etcdnode.ExternalOptions{Access: accessTo(e), Prefix: prefix, Key: func(key string) string { return prefix + key }, Mark: mark, Log: slog.New(slog.DiscardHandler)})
		err := deep.Connect(t.Context())
		if err == nil {
			err = deep.Apart(t.Context())
		}
		if (err != nil) != refused {
			t.Errorf("beside %s: %v", at, err)
		}
		if _, err := c.Delete(t.Context(), at+mark); err != nil {
			t.Fatal(err)
		}
		deep.Close()
	}
}

func TestAccess(t *testing.T) {
	for name, c := range map[string]struct {
		a    etcdnode.Access
		says string
	}{
		"three":            {etcdnode.Access{Endpoints: []string{"https://a:1", "https://b:1", "https://10.0.0.1:1"}}, ""},
		"this machine":     {etcdnode.Access{Endpoints: []string{"http://127.0.0.1:1", "http://localhost:2", "http://[::1]:3"}}, ""},
		"no TLS":           {etcdnode.Access{Endpoints: []string{"http://10.0.0.1:2379"}}, "no TLS"},
		"some without TLS": {etcdnode.Access{Endpoints: []string{"https://a:1", "http://127.0.0.1:1"}}, "all https or all http"},
		"no scheme":        {etcdnode.Access{Endpoints: []string{"a:2379"}}, "example: https://HOST:PORT"},
		"no port":          {etcdnode.Access{Endpoints: []string{"https://a"}}, "example: https://HOST:PORT"},
		"a path":           {etcdnode.Access{Endpoints: []string{"https://a:1/v3"}}, "example: https://HOST:PORT"},
		"a socket":         {etcdnode.Access{Endpoints: []string{"unix:///run/etcd"}}, "example: https://HOST:PORT"},
		"a password":       {etcdnode.Access{Endpoints: []string{"https://u:p@a:1"}}, "every user"},
		"a lone key":       {etcdnode.Access{Endpoints: []string{"https://a:1"}, KeyFile: "k"}, "needs its key"},
		"a lone user":      {etcdnode.Access{Endpoints: []string{"https://a:1"}, User: "u"}, "needs a password"},
		"keys for nothing": {etcdnode.Access{Endpoints: []string{"http://127.0.0.1:1"}, CAFile: "c"}, "need https"},
	} {
		if err := c.a.Check(); (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
