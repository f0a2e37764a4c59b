package store

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"kurabe"
)

func TestKeysComeApartAgain(t *testing.T) {
	for key, want := range map[string]keyParts{
		instanceSpecKey("db-1"):                               {kind: KindInstanceSpec, instance: "db-1"},
		instanceStatusKey("db-1"):                             {kind: KindInstanceStatus, instance: "db-1"},
		instanceNameKey("n"):                                  {kind: KindInstanceName, name: "n"},
		groupKey("db-1"):                                      {kind: KindGroup, instance: "db-1"},
		assignmentKey("h", kurabe.InstanceID("db-1").Ref()):   {kind: KindAssignment, host: "h", instance: "db-1"},
		assignmentKey("h", kurabe.InstanceID("db-1~2").Ref()): {kind: KindAssignment, host: "h", instance: "db-1~2"},
		reportKey("h", kurabe.InstanceID("db-1").Ref()):       {kind: KindInstanceReport, host: "h", instance: "db-1"},
		reportKey("h", kurabe.InstanceID("db-1~12").Ref()):    {kind: KindInstanceReport, host: "h", instance: "db-1~12"},
		snapshotSpecKey("snap-1"):                             {kind: KindSnapshotSpec, snapshot: "snap-1"},
		snapshotStatusKey("snap-1"):                           {kind: KindSnapshotStatus, snapshot: "snap-1"},
		snapshotNameKey("rds:n-2026-11-21"):                   {kind: KindSnapshotName, name: "rds:n-2026-11-21"},
		assignmentKey("h", kurabe.Task{Kind: kurabe.KindLogCheck, Instance: "db-1"}.Envelope().Ref): {kind: KindTask, host: "h", instance: "db-1", task: kurabe.KindLogCheck},
		reportKey("h", kurabe.Task{Kind: kurabe.KindLogCheck, Instance: "db-1"}.Envelope().Ref):     {kind: KindTaskReport, host: "h", instance: "db-1", task: kurabe.KindLogCheck},
		assignmentKey("h", kurabe.SnapshotID("snap-1").Ref()):                                       {kind: KindSnapshotAssignment, host: "h", snapshot: "snap-1"},
		reportKey("h", kurabe.SnapshotID("snap-1").Ref()):                                           {kind: KindSnapshotReport, host: "h", snapshot: "snap-1"},
		proxyKey("prx-1"):                                 {kind: KindProxy, proxy: "prx-1"},
		proxyStatusKey("prx-1"):                           {kind: KindProxyStatus, proxy: "prx-1"},
		proxyNameKey(kurabe.ProxyEndpointKey("r")):        {kind: KindProxyName, name: "endpoint:r"},
		assignmentKey("h", kurabe.ProxyID("prx-1").Ref()): {kind: KindProxyAssignment, host: "h", proxy: "prx-1"},
		reportKey("h", kurabe.ProxyID("prx-1").Ref()):     {kind: KindProxyReport, host: "h", proxy: "prx-1"},
		hostReportKey("h"):                                {kind: KindHostReport, host: "h"},
		catalogKey("h", kurabe.MariaDB, "10"):             {kind: KindCatalog, host: "h", engine: kurabe.MariaDB, version: "10"},
		parameterGroupKey("g"):                            {kind: KindParameterGroup, name: "g"},
		endpointDomain:                                    {kind: KindEndpointDomain},
		subnetGroupKey("g"):                               {kind: KindSubnetGroup, name: "g"},
		eventKey("0-1"):                                   {kind: KindEvent, name: "0-1"},
		certificateKey("c.pem"):                           {kind: KindSigningCertificate, name: "c.pem"},
		alarmKey("a/b c"):                                 {kind: KindAlarm, name: kurabe.AlarmKey("a/b c")},
		alarmStatusKey("a/b c"):                           {kind: KindAlarmStatus, name: kurabe.AlarmKey("a/b c")},
		alarmHistory + "0-1":                              {kind: KindAlarmEntry, name: "0-1"},
		topicKey("t"):                                     {kind: KindTopic, name: "t"},
		subscriptionKey("t-1", "s"):                       {kind: KindSubscription, topic: "t-1", name: "s"},
		deliveryCursorKey("t-1", "s"):                     {kind: KindDeliveryCursor, topic: "t-1", name: "s"},
		notificationKey("t-1", "0-1") + "0":               {kind: KindNotification, topic: "t-1", name: "0-1", part: "0"},
		eventSubscriptionKey("s"):                         {kind: KindEventSubscription, name: "s"},
		secretKey("a/b"):                                  {kind: KindSecret, name: "a:b"},
		secretValueKey("s-1", "v"):                        {kind: KindSecretValue, name: "s-1", part: "v"},
		eventCursor:                                       {kind: KindEventCursor},
		PlannerElectionKey:                                {kind: KindElection, name: "planner"},
		formatKey:                                         {kind: KindFormat},
		Root + "report/h/else":                            {},
		Root + "spec/instance/":                           {},
		Root + "spec/instance/a/b":                        {},
		Root + "group/":                                   {},
		Root + "group/db-1/b":                             {},
		Root + "snapshot-assignment/h":                    {},
		"/kurabe/v2/spec/instance/db-1":                   {},
	} {
		if got := parseKey(key); got != want {
			t.Errorf("%s: %+v; want %+v", key, got, want)
		}
	}
}

func TestTwoCreatesOfOneName(t *testing.T) {
	kv := NewMemory()
	const racers = 8
	var wg sync.WaitGroup
	results := make([]error, racers)
	for n := range racers {
		wg.Go(func() {
			_, results[n] = NewChange().CreateInstance(spec(fmt.Sprintf("db-%d", n), "same")).Commit(testContext(t), kv)
		})
	}
	wg.Wait()
	won := 0
	for _, err := range results {
		switch {
		case err == nil:
			won++
		case !errors.Is(err, ErrConflict):
			t.Error(err)
		}
	}
	list, _, err := kv.List(testContext(t), instanceSpecs)
	if won != 1 || len(list) != 1 || err != nil {
		t.Errorf("%d creates won, %d specs, %v", won, len(list), err)
	}
}

func TestDeposedPlannerCannotCommit(t *testing.T) {
	kv := NewMemory()
	rev := mustCommit(t, kv, NewChange().Put(PlannerElectionKey, []byte("a")))
	fence := Fence{Key: PlannerElectionKey, ModRevision: rev}
	mustCommit(t, kv, NewChange().RequireElected(fence).PutStatus(kurabe.InstanceStatus{ID: "db-1"}, 0))
	mustCommit(t, kv, NewChange().Put(PlannerElectionKey, []byte("b")))
	_, err := NewChange().RequireElected(fence).PutStatus(kurabe.InstanceStatus{ID: "db-2"}, 0).Commit(testContext(t), kv)
	if !errors.Is(err, ErrConflict) {
		t.Errorf("a deposed planner committed: %v", err)
	}
	if _, err := NewChange().RequireElected(Fence{}).Commit(testContext(t), kv); err == nil {
		t.Error("a fence of nothing holds")
	}
}

func TestGroupInUseIsNotDeleted(t *testing.T) {
	kv := NewMemory()
	v := mustView(t, kv)
	group := mustCommit(t, kv, NewChange().CreateParameterGroup(kurabe.ParameterGroup{Name: "g"}))
	mustSee(t, v, group)
	seen := v.Revision()
	mustCommit(t, kv, NewChange().RequireParameterGroup("g", group).CreateInstance(spec("db-1", "a")))
	_, err := NewChange().RequireInstancesUnwritten(seen).DeleteParameterGroup("g", group).Commit(testContext(t), kv)
	if !errors.Is(err, ErrConflict) {
		t.Errorf("the group went away under a new instance: %v", err)
	}
}

func TestBadRecordsAreNamed(t *testing.T) {
	long := spec("db-1", "a")
	for range 3000 {
		long.Tags = append(long.Tags, kurabe.Tag{Key: strings.Repeat("k", 20), Value: strings.Repeat("v", 20)})
	}
	for _, c := range []struct {
		name, words string
		change      *Change
	}{
		{"too long", instanceSpecKey("db-1"), NewChange().CreateInstance(long)},
		{"slash in a name", "a/b", NewChange().CreateInstance(spec("db-1", "a/b"))},
		{"slash in a snapshot's name", "a/b", NewChange().CreateSnapshot(snapshotSpec("snap-1", "a/b", "db-1"))},
		{"empty id", `""`, NewChange().PutStatus(kurabe.InstanceStatus{}, 0)},
		{"slash in a server's id", "db-1~2/x", NewChange().PutAssignment(kurabe.Assignment{Host: "h", Instance: "db-1~2/x"}, 0)},
		{"slash in a version", "1/2", NewChange().PutCatalog("h", kurabe.Catalog{Engine: "e", Version: "1/2"})},
	} {
		_, err := c.change.Commit(testContext(t), NewMemory())
		if err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v; want an error that says %q", c.name, err, c.words)
		}
	}
}

func TestCatalogIsPacked(t *testing.T) {
	kv := NewMemory()
	v := mustView(t, kv)
	cat := kurabe.Catalog{Engine: kurabe.Postgres, Version: "15.18", Family: "postgres15"}
	for i := range 1000 {
		cat.Parameters = append(cat.Parameters, kurabe.Parameter{Name: fmt.Sprintf("p%04d", i), Description: strings.Repeat("long text ", 30)})
	}
	mustSee(t, v, mustCommit(t, kv, NewChange().PutCatalog("h2", cat).PutCatalog("h1", cat)))
	got := v.Catalog(kurabe.Postgres, "15.18")
	if _, ok := got.Find("p0999"); !ok || len(v.Catalogs()) != 1 {
		t.Errorf("catalog %+v of %d", got, len(v.Catalogs()))
	}
	if v.Catalog(kurabe.MariaDB, "1") != nil {
		t.Error("a catalog of nothing")
	}
}

func TestEventsInTimeOrderAndPruned(t *testing.T) {
	kv := NewMemory()
	v := mustView(t, kv)
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	for day := 20; day > 0; day-- { // written newest day last
		c := NewChange()
		for n := range 20 {
			c.AddEvent(kurabe.Event{At: now.Add(-time.Duration(day) * 24 * time.Hour), Message: fmt.Sprintf("%d/%d", day, n)})
		}
		mustSee(t, v, mustCommit(t, kv, c))
	}
	day := v.Events(now.Add(-2*24*time.Hour), now.Add(-24*time.Hour))
	if len(day) != 20 || day[0].Message != "2/0" || day[19].Message != "2/19" {
		t.Errorf("events of one day: %v", day)
	}
	total := 0
	for {
		n, err := PruneEvents(testContext(t), kv, v, now)
		if err != nil {
			t.Fatal(err)
		}
		if total += n; n < TxnOpsMax {
			break
		}
	}
	if left := len(v.Events(time.Time{}, now)); total != 6*20 || left != 14*20 {
		t.Errorf("pruned %d, left %d", total, left)
	}
}

func TestOpenRefusesForeignStores(t *testing.T) {
	for _, c := range []struct {
		name, words string
		put         map[string]string
	}{
		{"another layout", "another layout", map[string]string{"/kurabe/v2/format": "{}"}},
		{"no mark", "no " + formatKey, map[string]string{instanceNameKey("a"): `{"id":"db-1"}`}},
		{"newer layout in the mark", "layout 7", map[string]string{formatKey: `{"layout":7}`}},
		{"mark is not JSON", formatKey, map[string]string{formatKey: "garbage"}},
		{"record is not JSON", instanceSpecKey("db-1"), map[string]string{formatKey: `{"layout":1}`, instanceSpecKey("db-1"): "garbage"}},
	} {
		kv := NewMemory()
		for key, value := range c.put {
			kv.entries[key] = Entry{Key: key, Value: []byte(value), ModRevision: 2}
		}
		if err := Open(testContext(t), kv); err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v; want an error that says %q", c.name, err, c.words)
		}
	}
	kv := NewMemory()
	for range 2 {
		if err := Open(testContext(t), kv); err != nil {
			t.Error(err)
		}
	}
}
