//go:build fault

package fault

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe/internal/harness"
)

// TestKillAtEveryStep kills the service before and after every named step (see places) of
// every operation. The list of steps is learned by doing each operation once
// undisturbed.
func TestKillAtEveryStep(t *testing.T) {
	probe := harness.Start(t, harness.Options{Fault: true})
	offered := probe.Engines(t)
	for _, engine := range []string{"postgres", "mariadb"} {
		t.Run(engine, func(t *testing.T) {
			probe.NeedEngine(t, engine, offered)
			t.Parallel() // each engine on a service of its own
			s := harness.Start(t, harness.Options{Fault: true})
			k := &killer{s: s, watcher: watch(t, s), places: newPlaces(t)}
			k.living(t, engine)
			k.lives(t, engine)
		})
	}
}

type killer struct {
	s       *harness.Service
	watcher *watcher
	places  places
	serial  int
}

func (k *killer) world(engine string) *world {
	k.serial++
	return &world{
		s: k.s, engine: engine, password: "First-password-1", class: harness.Class("micro"), setting: settings[engine].a, port: 7001,
		i: &harness.Instance{Service: k.s, Name: fmt.Sprintf("step-%s-%d", engine, k.serial), Engine: engine, User: "master", Password: "First-password-1", Database: "shop"},
	}
}

// living takes one instance through every change.
func (k *killer) living(t *testing.T, engine string) {
	w := k.world(engine)
	w.group = "steps-" + engine
	versions, err := k.s.DescribeDBEngineVersions(t.Context(), &rds.DescribeDBEngineVersionsInput{Engine: aws.String(engine), DefaultOnly: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.s.CreateDBParameterGroup(t.Context(), &rds.CreateDBParameterGroupInput{
		DBParameterGroupName: aws.String(w.group), DBParameterGroupFamily: versions.DBEngineVersions[0].DBParameterGroupFamily, Description: aws.String("for a test"),
	}); err != nil {
		t.Fatal(err)
	}
	in := harness.Request(w.i.Name, engine)
	in.DBParameterGroupName, in.MasterUserPassword, in.Port = aws.String(w.group), aws.String(w.password), aws.Int32(7001)
	w.i = k.s.MustCreate(t, in)
	w.ledger = harness.NewLedger(t, w.i)
	for _, o := range changes {
		t.Run(o.name, func(t *testing.T) { k.everyStep(t, w, o) })
		if t.Failed() {
			t.FailNow()
		}
	}
	w.i.Delete(t)
	noOrphans(t, k.s)
}

// everyStep does an operation once undisturbed, then once for each place to die.
func (k *killer) everyStep(t *testing.T, w *world, o operation) {
	start := time.Now()
	prepare := func() {
		if o.prepare != nil {
			o.prepare(t, w)
		}
	}
	prepare()
	steps := k.record(t, w, o)
	if len(steps) == 0 {
		t.Fatal("no step is passed")
	}
	places := k.places.of(steps)
	for _, point := range places {
		if _, status := w.status(t); status == "available" {
			w.i.Password = w.password
			w.ledger.Follow(t)
			w.ledger.Write(t, 5)
		}
		prepare()
		k.kill(t, w, o, point)
	}
	t.Logf("%s passes %v; killed %v in %v", o.name, steps, places, time.Since(start).Round(time.Millisecond))
}

// record does an operation undisturbed and returns its steps.
func (k *killer) record(t *testing.T, w *world, o operation) []string {
	t.Helper()
	mark := k.s.Log.Mark()
	if err := o.ask(t, w); err != nil {
		t.Fatalf("%s: %v", o.name, err)
	}
	harness.Wait(t, settleTime, o.name, func() string { return o.missing(t, w) })
	w.i.Password = w.password
	var steps []string
	for _, step := range k.s.Log.Steps(mark, w.i.ID) {
		if !slices.Contains(steps, step) {
			steps = append(steps, step)
		}
	}
	return steps
}

// kill does an operation while the service dies at a point of it, starts the
// service again and demands that the operation comes to its end.
func (k *killer) kill(t *testing.T, w *world, o operation, point string) {
	t.Helper()
	k.s.Arm(t, point)
	asked := o.ask(t, w)
	if asked != nil && k.s.Running() {
		harness.Wait(t, time.Second, "the service dies", func() string {
			if k.s.Running() {
				return asked.Error()
			}
			return ""
		})
	}
	harness.Wait(t, settleTime, o.name+" comes to "+point, func() string {
		if k.s.Running() {
			return "it does not"
		}
		return ""
	})
	k.s.Start(t)
	if asked != nil {
		// It may have been stored and not answered: ask again, as clients do.
		if err := o.ask(t, w); err != nil {
			t.Logf("%s, asked again after %v: %v", point, asked, err)
		}
	}
	harness.Wait(t, settleTime, o.name+" after a death "+point, func() string { return o.missing(t, w) })
	w.i.Password = w.password
	if _, status := w.status(t); status == "available" && w.ledger != nil {
		w.ledger.Verify(t)
	}
	k.watcher.check(t)
	noOrphans(t, k.s)
	if t.Failed() {
		t.Fatalf("%s: after a death %s", o.name, point)
	}
}

// lives makes and removes instances: one for each place to die in a creation,
// whose removals are those with the places to die in a removal.
func (k *killer) lives(t *testing.T, engine string) {
	start := time.Now()
	first := k.world(engine)
	create := k.places.of(k.record(t, first, creation))
	remove := k.places.of(k.record(t, first, deletion))
	for n := range max(len(create), len(remove)) {
		w := k.world(engine)
		if n < len(create) {
			k.kill(t, w, creation, create[n])
		} else {
			k.record(t, w, creation)
		}
		w.ledger = harness.NewLedger(t, w.i)
		w.ledger.Write(t, 5)
		w.ledger.Verify(t)
		if n < len(remove) {
			k.kill(t, w, deletion, remove[n])
		} else {
			k.record(t, w, deletion)
		}
	}
	noOrphans(t, k.s)
	t.Logf("create: %v; delete: %v; %v", create, remove, time.Since(start).Round(time.Millisecond))
}

// points are all places to die.
func points(steps []string) []string {
	var list []string
	for _, step := range steps {
		list = append(list, "before:"+step, "after:"+step)
	}
	return list
}

// places chooses where to die. After a step and before the next one the same is on the disk and
// in the server; what differs is whether the service was told of it. So where time is short
// one of the two is chosen for each step, by chance.
type places struct{ random *rand.Rand }

func newPlaces(t *testing.T) places {
	t.Helper()
	return places{rand.New(rand.NewPCG(seed(t), 0))}
}

func (p places) of(steps []string) []string {
	list := points(steps)
	if harness.Whole() {
		return list
	}
	var chosen []string
	for n := range steps {
		chosen = append(chosen, list[2*n+p.random.IntN(2)])
	}
	return chosen
}
