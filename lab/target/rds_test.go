package target

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/lab/dial"
	"kurabe/lab/study"
)

func auditStudy() *study.Study {
	return &study.Study{
		Baseline: "none",
		Variants: []study.Variant{
			{Name: "none"},
			{Name: "none′", TwinOf: "none"},
			{Name: "pgaudit", Parameters: map[string]string{"shared_preload_libraries": "pgaudit", "log_statement": "all"}},
			{Name: "fast", IOPS: 6000},
		},
		Workloads: []study.Workload{{Generator: study.GeneratorPgbench, Scale: 1}},
	}
}

func TestCheckSaysWhyAndLeavesNothing(t *testing.T) {
	cases := map[string]struct {
		variant study.Variant
		why     string // "" for fine
	}{
		"nothing asked":      {},
		"its parameters":     {variant: study.Variant{Parameters: map[string]string{"log_statement": "all"}}},
		"unknown parameter":  {variant: study.Variant{Parameters: map[string]string{"nonsense": "1"}}, why: "knows no parameter nonsense"},
		"refused parameter":  {variant: study.Variant{Parameters: map[string]string{"log_statement": "impossible"}}, why: "InvalidParameterValue"},
		"a class":            {variant: study.Variant{Class: "db.t3.large"}},
		"unknown class":      {variant: study.Variant{Class: "db.x99.huge"}, why: "db.x99.huge is not offered"},
		"IOPS alone":         {variant: study.Variant{IOPS: 6000}},
		"too many IOPS":      {variant: study.Variant{IOPS: 30000}, why: "from 1000 to 20000"},
		"unknown storage":    {variant: study.Variant{StorageType: "tape"}, why: "tape is not offered"},
		"activity stream":    {variant: study.Variant{Needs: "activity-stream"}, why: "no activity streams"},
		"something else":     {variant: study.Variant{Needs: "teleport"}, why: `"teleport"`},
		"an extension":       {variant: study.Variant{Needs: "citext", SQL: map[string][]string{"": {"CREATE EXTENSION IF NOT EXISTS pg_trgm"}}}},
		"a missing one":      {variant: study.Variant{SQL: map[string][]string{"postgres": {"create extension pgaudit"}}}, why: "extension pgaudit: it is in the Debian package postgresql-"},
		"a fixed endpoint":   {variant: study.Variant{Endpoint: "127.0.0.1:6432"}, why: "another server"},
		"a broken endpoint":  {variant: study.Variant{Endpoint: "envoy"}, why: "none of haproxy, pgbouncer, proxy, HOST:PORT"},
		"its own proxy":      {variant: study.Variant{Endpoint: "proxy", Needs: "proxy"}, why: "no proxy of its own"},
		"another engine's":   {variant: study.Variant{Class: "db.x99.huge", Engines: []string{study.MariaDB}}},
		"another's SQL only": {variant: study.Variant{SQL: map[string][]string{"mariadb": {"CREATE EXTENSION pgaudit"}}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			c.variant.Name = "x"
			got, err := newTarget(t, f).Check(t.Context(), &study.Study{Variants: []study.Variant{{Name: "none"}, c.variant}})
			must(t, err)
			if (got["x"] == "") != (c.why == "") || !strings.Contains(got["x"], c.why) {
				t.Errorf("it says %q, want %q", got["x"], c.why)
			}
			demand(t, f.names())
		})
	}
}

func TestTheWholeStory(t *testing.T) {
	f := newFake()
	f.put("production", nil, nil)
	target := newTarget(t, f)
	s := auditStudy()
	refused, err := target.Check(t.Context(), s)
	must(t, err)
	if len(refused) > 0 {
		t.Fatalf("refused %v", refused)
	}
	filled := 0
	must(t, target.Prepare(t.Context(), s, func(_ context.Context, server dial.Server) error {
		filled++
		if server.Database != database || server.User != masterUser || server.Password == "" || server.Port != 5432 {
			t.Errorf("filled %v", server)
		}
		return nil
	}))
	golden := target.name("golden")
	demand(t, f.names(), "production", golden, target.name("v1"), target.name("v2"), target.name("v3"), target.name("v4"))
	if got := fmt.Sprint(f.groups[target.name("v3")].values); filled != 1 || got != "map[log_statement:all immediate shared_preload_libraries:pgaudit pending-reboot]" {
		t.Errorf("filled %d times, group %s", filled, got)
	}
	for _, v := range s.Variants {
		lease, err := target.Lease(t.Context(), v)
		must(t, err)
		if lease.Server != lease.Direct || lease.Settings["work_mem"] != "4MB" {
			t.Errorf("leased %+v", lease)
		}
		if len(f.instances) != 2 {
			t.Errorf("a trial begins beside %v", sortedKeys(f.instances))
		}
		if _, err := target.Lease(t.Context(), v); err == nil {
			t.Error("leased twice")
		}
		must(t, lease.Release(t.Context()))
	}
	last := f.restored[3]
	if aws.ToInt32(last.Iops) != 6000 || aws.ToString(last.StorageType) != "io1" || aws.ToInt32(last.AllocatedStorage) != 120 || aws.ToInt32(last.BackupRetentionPeriod) != 0 {
		t.Errorf("restored with %+v", last)
	}
	if f.rebooted != 4 {
		t.Errorf("%d restarts for parameters", f.rebooted)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	must(t, target.Close(ended))
	demand(t, f.names(), "production")
}

func TestNoRoomForTwo(t *testing.T) {
	f := newFake()
	f.together = 1
	target := newTarget(t, f)
	must(t, target.Prepare(t.Context(), auditStudy(), func(context.Context, dial.Server) error { return nil }))
	for range 3 {
		lease, err := target.Lease(t.Context(), study.Variant{Name: "none"})
		must(t, err)
		must(t, lease.Release(t.Context()))
	}
	if f.mostSeen != 1 {
		t.Errorf("%d instances at one time", f.mostSeen)
	}
}

func TestWhatFailsLeavesNothing(t *testing.T) {
	broken := errors.New("broken")
	cases := map[string]func(*fake, *rdsTarget) error{
		"the data": func(_ *fake, target *rdsTarget) error {
			return target.Prepare(t.Context(), auditStudy(), func(context.Context, dial.Server) error { return broken })
		},
		"a create whose answer is lost": func(f *fake, target *rdsTarget) error {
			f.fail["create"] = broken
			return target.Prepare(t.Context(), auditStudy(), nil)
		},
		"a variant that is not true": func(_ *fake, target *rdsTarget) error {
			must(t, target.Prepare(t.Context(), auditStudy(), func(context.Context, dial.Server) error { return nil }))
			target.enter = func(context.Context, dial.Server, study.Variant) (map[string]setting, error) { return nil, broken }
			_, err := target.Lease(t.Context(), study.Variant{Name: "none"})
			return err
		},
	}
	for name, run := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			target := newTarget(t, f)
			if err := run(f, target); !errors.Is(err, broken) {
				t.Errorf("error %v", err)
			}
			must(t, target.Close(t.Context()))
			demand(t, f.names())
		})
	}
}

func TestNothingOfOthersIsTouched(t *testing.T) {
	f := newFake()
	target := newTarget(t, f)
	must(t, target.Prepare(t.Context(), auditStudy(), func(context.Context, dial.Server) error { return nil }))
	// An instance of somebody else under the name that the next lease would take.
	theirs := target.name("t1")
	f.put(theirs, nil, []types.Tag{{Key: aws.String("owner"), Value: aws.String("ann")}})
	if err := target.deleteInstance(t.Context(), theirs); !errors.Is(err, errNotOurs) {
		t.Errorf("error %v", err)
	}
	other := newTarget(t, f)
	f.put(other.name("t9"), nil, other.tags())
	// A snapshot that somebody copied with its tags to a name of his own.
	f.snapshots["keep-me"] = &types.DBSnapshot{DBSnapshotIdentifier: aws.String("keep-me"), TagList: target.tags()}
	must(t, target.Close(t.Context()))
	for _, name := range []string{theirs, other.name("t9")} {
		if i := f.instances[name]; i == nil || *i.DBInstanceStatus != "available" {
			t.Errorf("%s was touched", name)
		}
	}
	if f.snapshots["keep-me"] == nil {
		t.Error("a copied snapshot was deleted")
	}
}

func TestSweepKeepsTheLiving(t *testing.T) {
	f := newFake()
	living, dead, away := newTarget(t, f), newTarget(t, f), newTarget(t, f)
	dead.owner.Start++
	away.owner.Machine = "00000000"
	for _, target := range []*rdsTarget{living, dead, away} {
		must(t, func() error { _, err := target.version(t.Context()); return err }())
		f.put(target.name("t1"), nil, target.tags())
		_, err := target.createGroup(t.Context(), "v1")
		must(t, err)
	}
	cleaner := newTarget(t, f)
	said, err := cleaner.sweep(t.Context(), func(_, whose string) string { return keep(whose, cleaner.owner, false) })
	must(t, err)
	text := strings.Join(said, "\n")
	for _, words := range []string{
		"removed instance " + dead.name("t1"), "removed parameter group " + dead.name("v1"),
		"kept instance " + living.name("t1") + ": its lab runs", "kept parameter group " + away.name("v1") + ": its lab is or was on another machine",
	} {
		if !strings.Contains(text, words) {
			t.Errorf("%q is not in:\n%s", words, text)
		}
	}
	if f.instances[living.name("t1")] == nil || f.instances[away.name("t1")] == nil || f.instances[dead.name("t1")] != nil {
		t.Errorf("left: %v", f.names())
	}
}

func TestExplain(t *testing.T) {
	cases := map[string]struct {
		err  error
		want string
	}{
		"fine":         {},
		"a refusal":    {refused("InvalidParameterValue", "no"), "try: InvalidParameterValue: no"},
		"credentials":  {refused("SignatureDoesNotMatch", "no"), "does not accept the credentials"},
		"nobody there": {&url.Error{Op: "Post", URL: "http://127.0.0.1:1/", Err: errors.New("refused")}, "no service answers at http://127.0.0.1:1/"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := explain("try", c.err)
			if (got == nil) != (c.want == "") || got != nil && !strings.Contains(got.Error(), c.want) {
				t.Errorf("it says %v", got)
			}
			if c.err != nil && !errors.Is(got, c.err) && name == "a refusal" && !hasCode(got, "InvalidParameterValue") {
				t.Error("the code is lost")
			}
		})
	}
}

func TestNothingMadeNothingToClose(t *testing.T) {
	target := newTarget(t, nil) // a call would panic
	must(t, target.Close(t.Context()))
}
