package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kurabe"
)

// deadline bounds every wait of these tests.
const deadline = 30 * time.Second

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	t.Cleanup(cancel)
	return ctx
}

// mustView runs a view until the test ends.
func mustView(t testing.TB, kv KV) *View {
	t.Helper()
	v := NewView(kv)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { v.Run(ctx) }) // ends with ctx only
	t.Cleanup(func() { cancel(); wg.Wait() })
	if err := v.WaitReady(testContext(t)); err != nil {
		t.Fatal(err)
	}
	return v
}

func mustCommit(t testing.TB, kv KV, c *Change) int64 {
	t.Helper()
	rev, err := c.Commit(testContext(t), kv)
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

func mustSee(t testing.TB, v *View, rev int64) {
	t.Helper()
	if err := v.WaitRevision(testContext(t), rev); err != nil {
		t.Fatal(err)
	}
}

func spec(id, name string) kurabe.InstanceSpec {
	return kurabe.InstanceSpec{ID: kurabe.InstanceID(id), Name: name, Engine: kurabe.Postgres, ParameterGroup: "g"}
}

func names(list []*Instance) string {
	var out []string
	for _, i := range list {
		out = append(out, i.Name())
	}
	return strings.Join(out, " ")
}

func TestViewFollowsAnInstance(t *testing.T) {
	kv := NewMemory()
	v := mustView(t, kv)
	wake, stop := v.Subscribe()
	defer stop()
	if d := v.TakeDirty(); !d.All {
		t.Error("a fresh view is not all dirty")
	}
	mustSee(t, v, mustCommit(t, kv, NewChange().CreateInstance(spec("db-1", "b"))))
	mustSee(t, v, mustCommit(t, kv, NewChange().CreateInstance(spec("db-2", "a"))))
	select {
	case <-wake:
	default:
		t.Error("no wake-up")
	}
	if got := names(v.Instances()); got != "a b" {
		t.Errorf("instances %q", got)
	}
	mustSee(t, v, mustCommit(t, kv, NewChange().
		PutStatus(kurabe.InstanceStatus{ID: "db-1", State: kurabe.StateAvailable}, 0).
		PutAssignment(kurabe.Assignment{Host: "h2", Instance: "db-1", Generation: 2}, 0).
		PutAssignment(kurabe.Assignment{Host: "h1", Instance: "db-1", Generation: 1}, 0).
		PutReport(kurabe.InstanceReport{Host: "h1", Instance: "db-1", Running: true})))
	i, ok := v.InstanceByName("b")
	if !ok || i.ID != "db-1" || i.Status.State != kurabe.StateAvailable || len(i.Assignments) != 2 ||
		i.Assignments[0].Value.Host != "h1" || len(i.Reports) != 1 || !i.Reports[0].Value.Running {
		t.Fatalf("instance %+v", i)
	}
	d := v.TakeDirty()
	if got := slices.Sorted(maps.Keys(d.Instances)); d.All || !slices.Equal(got, []kurabe.InstanceID{"db-1", "db-2"}) {
		t.Errorf("dirty %+v", d)
	}
	mustSee(t, v, mustCommit(t, kv, NewChange().DeleteInstance(i)))
	if _, ok := v.Instance("db-1"); ok {
		t.Error("deleted instance is there")
	}
	if left := v.Leftovers(); len(left) != 1 || len(left[0].Reports) != 1 || len(left[0].Assignments) != 0 {
		t.Errorf("leftovers %+v; want the report", left)
	}
	if _, taken := v.NameOwner("b"); taken {
		t.Error("the name was not given back")
	}
	mustSee(t, v, mustCommit(t, kv, NewChange().DropReport("h1", kurabe.InstanceID("db-1").Ref())))
	if _, ok := v.Any("db-1"); ok {
		t.Error("something is left")
	}
}

// A parameter group of clusters is another one than that of instances with its name.
func TestGroupsMakeTheirUsersDirty(t *testing.T) {
	kv := NewMemory()
	v := mustView(t, kv)
	cluster := spec("db-2", "a")
	cluster.Cluster = true
	mustSee(t, v, mustCommit(t, kv, NewChange().CreateInstance(spec("db-1", "a")).CreateInstance(cluster)))
	for _, c := range []struct {
		cluster bool
		user    kurabe.InstanceID
	}{{false, "db-1"}, {true, "db-2"}} {
		v.TakeDirty()
		mustSee(t, v, mustCommit(t, kv, NewChange().CreateParameterGroup(kurabe.ParameterGroup{Name: "g", Cluster: c.cluster})))
		if got := slices.Sorted(maps.Keys(v.TakeDirty().Instances)); !slices.Equal(got, []kurabe.InstanceID{c.user}) {
			t.Errorf("cluster %v: dirty are %v", c.cluster, got)
		}
	}
}

func TestRenameThatWaits(t *testing.T) {
	kv := NewMemory()
	v := mustView(t, kv)
	mustSee(t, v, mustCommit(t, kv, NewChange().CreateInstance(spec("db-1", "old"))))
	i, _ := v.Instance("db-1")
	s := *i.Spec
	s.NextName, s.NextSeq = "new", 1
	mustSee(t, v, mustCommit(t, kv, NewChange().PutInstance(s, i.SpecMod).TakeName("new", "db-1")))
	if _, ok := v.InstanceByName("new"); ok {
		t.Error("the new name holds too early")
	}
	if id, ok := v.NameOwner("new"); !ok || id != "db-1" {
		t.Error("the new name is not reserved")
	}
	_, err := NewChange().CreateInstance(spec("db-2", "new")).Commit(testContext(t), kv)
	if !errors.Is(err, ErrConflict) {
		t.Errorf("create with a reserved name: %v", err)
	}
	mustSee(t, v, mustCommit(t, kv, NewChange().PutStatus(kurabe.InstanceStatus{ID: "db-1", AppliedNext: 1}, 0)))
	if i, ok := v.InstanceByName("new"); !ok || i.ID != "db-1" || names(v.Instances()) != "new" {
		t.Error("the new name does not hold")
	}
	if _, ok := v.InstanceByName("old"); ok {
		t.Error("the old name still holds")
	}
	i, _ = v.Instance("db-1")
	mustSee(t, v, mustCommit(t, kv, NewChange().DeleteInstance(i)))
	if _, ok := v.Any("db-1"); ok {
		t.Error("a name is left")
	}
}

func TestCorruptRecordIsReported(t *testing.T) {
	kv := NewMemory()
	if err := Open(testContext(t), kv); err != nil {
		t.Fatal(err)
	}
	v := mustView(t, kv)
	mustSee(t, v, mustCommit(t, kv, NewChange().CreateInstance(spec("db-1", "a"))))
	mustSee(t, v, mustCommit(t, kv, NewChange().Put(instanceSpecKey("db-1"), []byte("{"))))
	if i, ok := v.Instance("db-1"); !ok || i.Name() != "a" {
		t.Error("the last readable value is gone")
	}
	for name, err := range map[string]error{"healthy": v.Healthy(), "open": Open(testContext(t), kv)} {
		if c, ok := errors.AsType[*CorruptError](err); !ok || c.Key != instanceSpecKey("db-1") {
			t.Errorf("%s: %v", name, err)
		}
	}
	mustSee(t, v, mustCommit(t, kv, NewChange().Put(instanceSpecKey("db-1"), []byte(`{"id":"db-1","name":"b","fromTheFuture":1}`))))
	if err := v.Healthy(); err != nil || names(v.Instances()) != "b" {
		t.Errorf("after the repair: %v %q", err, names(v.Instances()))
	}
}

func TestViewResyncsAfterALostWatch(t *testing.T) {
	kv := &cutter{KV: NewMemory()}
	v := mustView(t, kv)
	for i := range 20 {
		rev := mustCommit(t, kv, NewChange().CreateInstance(spec(fmt.Sprintf("db-%d", i), fmt.Sprintf("n%02d", i))))
		if i%5 == 2 {
			kv.cut()
		}
		mustSee(t, v, rev)
	}
	if len(v.Instances()) != 20 || v.Healthy() != nil {
		t.Errorf("%d instances, %v", len(v.Instances()), v.Healthy())
	}
	if d := v.TakeDirty(); !d.All {
		t.Error("a resync did not make everything dirty")
	}
}

// cutter is a KV whose watches can be broken.
type cutter struct {
	KV
	mu   sync.Mutex // guards stop
	stop context.CancelFunc
}

func (c *cutter) Watch(ctx context.Context, prefix string, from int64) <-chan Batch {
	ctx, stop := context.WithCancel(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stop = stop
	return c.KV.Watch(ctx, prefix, from)
}

func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stop != nil { // loaded, but not watching yet
		c.stop()
	}
}

// After any transactions, with watches cut in between, the view that followed
// and a view that loads now show the same.
func TestViewEqualsAFreshOne(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		kv := &cutter{KV: NewMemory()}
		followed := mustViewRapid(r, kv)
		var last int64
		r.Repeat(map[string]func(*rapid.T){
			"write": func(r *rapid.T) {
				c := NewChange()
				seen := map[string]bool{}
				for range rapid.IntRange(1, 5).Draw(r, "writes") {
					if key, value := drawRecord(r); !seen[key] {
						seen[key] = true
						if rapid.IntRange(0, 2).Draw(r, "delete") == 0 {
							c.Delete(key)
						} else {
							c.Put(key, value)
						}
					}
				}
				rev, err := c.Commit(context.Background(), kv)
				if err != nil {
					r.Fatal(err)
				}
				last = max(last, rev)
			},
			"cut":  func(*rapid.T) { kv.cut() },
			"list": func(*rapid.T) { followed.Instances() },
			"": func(r *rapid.T) {
				ctx, cancel := context.WithTimeout(context.Background(), deadline)
				defer cancel()
				if err := followed.WaitRevision(ctx, last); err != nil {
					r.Fatal(err)
				}
				compareWithFresh(r, followed, kv)
			},
		})
	})
}

func mustViewRapid(r *rapid.T, kv KV) *View {
	v := NewView(kv)
	v.pauseMin = 100 * time.Microsecond
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { v.Run(ctx) }) // ends with ctx only
	r.Cleanup(func() { cancel(); wg.Wait() })
	if err := v.WaitReady(ctx); err != nil {
		r.Fatal(err)
	}
	return v
}

// drawRecord draws a key of any kind and a value for it, at times a broken one.
func drawRecord(r *rapid.T) (string, []byte) {
	id := kurabe.InstanceID(rapid.SampledFrom([]string{"db-1", "db-2", "db-3"}).Draw(r, "id"))
	host := kurabe.HostID(rapid.SampledFrom([]string{"h1", "h2"}).Draw(r, "host"))
	name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(r, "name")
	seq := rapid.Int64Range(0, 3).Draw(r, "seq")
	c := NewChange()
	snap := kurabe.SnapshotID(rapid.SampledFrom([]string{"snap-1", "snap-2"}).Draw(r, "snapshot"))
	member := id.Member(rapid.IntRange(1, 3).Draw(r, "member"))
	switch rapid.IntRange(0, 25).Draw(r, "kind") {
	case 0:
		s := spec(string(id), name)
		s.NextName, s.NextSeq = name+"2", seq
		if seq > 1 {
			s.Origin = &kurabe.Origin{Snapshot: snap}
		}
		c.PutInstance(s, 0)
	case 1:
		c.PutStatus(kurabe.InstanceStatus{ID: id, AppliedNext: seq, ParameterGroup: name}, 0)
	case 2:
		c.PutAssignment(kurabe.Assignment{Host: host, Instance: member, Generation: kurabe.Generation(seq), Origin: &kurabe.Origin{Snapshot: snap}}, 0)
	case 3:
		c.PutReport(kurabe.InstanceReport{Host: host, Instance: member, Boot: seq})
	case 4:
		c.TakeName(name, id)
	case 5:
		c.PutHost(kurabe.HostReport{Host: host, CPUs: int(seq)})
	case 6:
		c.PutCatalog(host, kurabe.Catalog{Engine: kurabe.Postgres, Version: "15", Family: name})
	case 7:
		c.PutParameterGroup(kurabe.ParameterGroup{Name: name, Revision: seq}, 0)
	case 8:
		e := kurabe.Event{Seq: fmt.Sprintf("%016x-x", seq), At: time.Unix(0, seq), Message: name}
		c.put(eventKey(e.Seq), e)
	case 9:
		s := snapshotSpec(string(snap), name, id)
		if seq > 1 {
			s.CopyOf = "snap-1"
		}
		c.PutSnapshot(s, 0)
	case 10:
		c.PutSnapshotStatus(kurabe.SnapshotStatus{ID: snap, SpecRevision: seq}, 0)
	case 11:
		c.PutAssignment(kurabe.SnapshotAssignment{Host: host, Snapshot: snap, Source: kurabe.SnapshotSource{Instance: id}}, 0)
	case 12:
		c.PutReport(kurabe.SnapshotReport{Host: host, Snapshot: snap, Generation: kurabe.Generation(seq)})
	case 13:
		takeName(c, snapshotNameKey("rds:"+name), "rds:"+name, snap)
	case 15:
		c.PutTopic(kurabe.Topic{ID: kurabe.TopicID(name), Name: name}, 0)
	case 16:
		c.PutSubscription(kurabe.Subscription{ID: kurabe.SubscriptionID(id), Topic: kurabe.TopicID(name)}, 0)
	case 17:
		c.PutDeliveryCursor(kurabe.DeliveryCursor{Topic: kurabe.TopicID(name), Subscription: kurabe.SubscriptionID(id), Revision: seq})
	case 22:
		c.PutEventSubscription(kurabe.EventSubscription{Name: name, TopicARN: fmt.Sprint(seq)}, 0)
	case 23:
		c.PutEventCursor(kurabe.EventCursor{Passed: kurabe.EventPlace{Revision: seq}}, 0)
	case 18:
		c.Put(notificationKey(kurabe.TopicID(name), fmt.Sprintf("%x-3", seq))+fmt.Sprint(rapid.IntRange(0, 2).Draw(r, "part")), []byte(id))
	case 19, 20, 21:
		drawAlarm(r, c, name, seq)
	case 25:
		c.PutSecret(secretOf(name, seq), 0)
	case 24:
		drawProxy(r, c, id, host, name, seq)
	case 14:
		c.PutGroup(kurabe.Group{Instance: id, Epoch: kurabe.Epoch(seq), Primary: member, LastNumber: 3, Members: []kurabe.Member{{ID: member, Host: host}}}, 0)
	}
	return c.ops[0].Key, c.ops[0].Value
}

// secretOf is a secret, at times of a database.
func secretOf(name string, seq int64) kurabe.Secret {
	s := kurabe.Secret{Name: name, Versions: []kurabe.SecretVersion{{Bytes: int(seq)}}}
	if seq > 1 {
		s.Master = &kurabe.MasterSecret{Instance: kurabe.InstanceID(name), Seq: seq}
	}
	return s
}

// drawAlarm draws a record of an alarm.
func drawAlarm(r *rapid.T, c *Change, name string, seq int64) {
	switch rapid.IntRange(0, 2).Draw(r, "record") {
	case 0:
		c.PutAlarm(kurabe.Alarm{Name: name}, 0)
	case 1:
		c.PutAlarmStatus(kurabe.AlarmStatus{Name: name, State: kurabe.AlarmOK}, 0)
	case 2:
		c.AddAlarmEntry(kurabe.AlarmEntry{Alarm: name, At: time.Unix(0, seq)})
	}
}

// drawProxy draws a record of a proxy.
func drawProxy(r *rapid.T, c *Change, id kurabe.InstanceID, host kurabe.HostID, name string, seq int64) {
	proxy := kurabe.ProxyID(rapid.SampledFrom([]string{"prx-1", "prx-2"}).Draw(r, "proxy"))
	switch rapid.IntRange(0, 4).Draw(r, "record") {
	case 0:
		c.PutProxy(kurabe.Proxy{ID: proxy, Name: name, Target: id}, 0)
	case 1:
		c.PutProxyStatus(kurabe.ProxyStatus{ID: proxy, SpecRevision: seq}, 0)
	case 2:
		c.PutAssignment(kurabe.ProxyAssignment{Host: host, Proxy: proxy, Generation: kurabe.Generation(seq)}, 0)
	case 3:
		c.PutReport(kurabe.ProxyReport{Host: host, Proxy: proxy, Done: seq > 1})
	case 4:
		c.TakeProxyName(kurabe.ProxyEndpointKey(name), proxy)
	}
}

func compareWithFresh(r *rapid.T, followed *View, kv KV) {
	entries, _, err := kv.List(context.Background(), Root)
	if err != nil {
		r.Fatal(err)
	}
	fresh := newState()
	for _, e := range entries {
		fresh.put(e)
	}
	fresh.instances.list()
	fresh.snapshots.list()
	fresh.proxies.list()
	// The list is made under the same lock: a resync after a cut may put a new
	// state in place at any moment.
	followed.mu.Lock()
	defer followed.mu.Unlock()
	got := followed.state
	got.instances.list()
	got.snapshots.list()
	got.proxies.list()
	for _, c := range []struct {
		what     string
		got, new any
	}{
		{"instances", got.instances.all, fresh.instances.all},
		{"instances sorted", got.instances.sorted, fresh.instances.sorted},
		{"owners", got.instances.owners, fresh.instances.owners},
		{"snapshots", got.snapshots.all, fresh.snapshots.all},
		{"snapshots sorted", got.snapshots.sorted, fresh.snapshots.sorted},
		{"snapshots' owners", got.snapshots.owners, fresh.snapshots.owners},
		{"proxies", got.proxies.all, fresh.proxies.all},
		{"proxies sorted", got.proxies.sorted, fresh.proxies.sorted},
		{"proxies' owners", got.proxies.owners, fresh.proxies.owners},
		{"taken", got.taken, fresh.taken},
		{"restored", got.restored, fresh.restored},
		{"copies", got.copies, fresh.copies},
		{"hosts", got.hosts, fresh.hosts},
		{"catalogs", got.catalogs, fresh.catalogs},
		{"groups", got.parameterGroups, fresh.parameterGroups},
		{"topics", got.topics, fresh.topics},
		{"secrets", got.secrets, fresh.secrets},
		{"secrets of masters", got.masterSecrets, fresh.masterSecrets},
		{"bytes of secrets", got.secretBytes, fresh.secretBytes},
		{"alarms", got.alarms, fresh.alarms},
		{"states of alarms", got.alarmStatus, fresh.alarmStatus},
		{"history of alarms", append([]moment[kurabe.AlarmEntry]{}, got.alarmHistory.sorted...), append([]moment[kurabe.AlarmEntry]{}, fresh.alarmHistory.sorted...)},
		{"notifications", notifyText(got), notifyText(fresh)},
		{"events", append([]moment[*PlacedEvent]{}, got.events.sorted...), append([]moment[*PlacedEvent]{}, fresh.events.sorted...)},
		{"events by commit", append(commitOrder{}, got.committed...), append(commitOrder{}, fresh.committed...)},
		{"event subscriptions", got.eventSubscriptions, fresh.eventSubscriptions},
		{"event cursor", got.eventCursor, fresh.eventCursor},
	} {
		if !reflect.DeepEqual(c.got, c.new) {
			r.Fatalf("%s: followed %+v, fresh %+v", c.what, c.got, c.new)
		}
	}
	for name, id := range got.instances.byName {
		if i := got.instances.all[id]; i == nil || i.Name() != name {
			r.Fatalf("name %q leads to %+v", name, i)
		}
	}
	for name, id := range got.snapshots.byName {
		if s := got.snapshots.all[id]; s == nil || s.Name() != name {
			r.Fatalf("name %q leads to %+v", name, s)
		}
	}
}

// notifyText writes out what belongs to topics.
func notifyText(s *state) string {
	text := ""
	for _, id := range slices.Sorted(maps.Keys(s.notify)) {
		t := s.notify[id]
		text += fmt.Sprint(id, t.subscriptions, t.cursors, t.bytes, len(t.byKey), ":")
		for _, q := range t.queue {
			text += fmt.Sprintf(" %+v", *q)
		}
	}
	return text
}
