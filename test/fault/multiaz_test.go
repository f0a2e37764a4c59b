//go:build fault

package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe"
	"kurabe/internal/harness"
)

// pairKillTime is how long the places to die of some operations are gone through, by engine.
// They come in a random order, so that those for which there is no time come in another run.
// What the planner and the agent do is the same for both, so one of them takes longer.
// Each operation is died in once at least, however short the time is.
var pairKillTime = map[bool]map[string]time.Duration{
	true:  {"postgres": 3 * time.Minute, "mariadb": 30 * time.Second},
	false: {"postgres": 40 * time.Second, "mariadb": 20 * time.Second},
}[harness.Whole()]

// pairBeats are the rows that are written between any two faults.
const pairBeats = 10

// TestKillAtEveryStepOfTwoServers kills the service before and after the steps of
// conversions and of failovers, of either server, while a client writes.
func TestKillAtEveryStepOfTwoServers(t *testing.T) {
	eachPair(t, "steps", func(t *testing.T, b *pairBed) {
		for _, group := range [][]pairOperation{conversions, deaths} {
			b.everyStep(t, group)
		}
		b.pulse.Stop()
		b.pulse.Verify(t)
		b.Delete(t)
		noOrphans(t, b.s)
	})
}

// eachPair runs a test with each engine, on a service of its own.
func eachPair(t *testing.T, name string, test func(t *testing.T, b *pairBed)) {
	t.Helper()
	for _, engine := range []string{"postgres", "mariadb"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel() // each engine on a service of its own
			test(t, newPairBed(t, name, engine))
		})
	}
}

// pairBed is an instance that has two servers, or is to have.
type pairBed struct {
	*harness.Instance
	s       *harness.Service
	pulse   *harness.Pulse
	watcher *watcher
	random  *rand.Rand

	writer, standby harness.Member // as they were before the operation
}

func newPairBed(t *testing.T, name, engine string) *pairBed {
	t.Helper()
	n := seed(t)
	s := harness.Start(t, harness.Options{Fault: true})
	s.NeedEngine(t, engine, s.Engines(t))
	b := &pairBed{s: s, watcher: watch(t, s), random: rand.New(rand.NewPCG(n, 0))}
	in := harness.MultiAZRequest(name, engine)
	in.DBParameterGroupName = aws.String("of-" + name)
	b.makeGroup(t, engine, in.DBParameterGroupName)
	b.Instance = s.MustCreate(t, in)
	b.WaitWhole(t)
	b.pulse = b.Pulse(t)
	return b
}

// makeGroup is of its parameters, which are the defaults.
func (b *pairBed) makeGroup(t *testing.T, engine string, name *string) {
	t.Helper()
	if _, err := b.s.CreateDBParameterGroup(t.Context(), &rds.CreateDBParameterGroupInput{
		DBParameterGroupName: name, DBParameterGroupFamily: familyOf(t, b.s, engine), Description: aws.String("for a test"),
	}); err != nil {
		t.Fatal(err)
	}
}

func familyOf(t *testing.T, s *harness.Service, engine string) *string {
	t.Helper()
	versions, err := s.DescribeDBEngineVersions(t.Context(), &rds.DescribeDBEngineVersionsInput{Engine: aws.String(engine), DefaultOnly: aws.Bool(true)})
	if err != nil || len(versions.DBEngineVersions) != 1 {
		t.Fatal(versions, err)
	}
	return versions.DBEngineVersions[0].DBParameterGroupFamily
}

func standbyLost(value string) []types.Parameter {
	return []types.Parameter{{ParameterName: aws.String(kurabe.ParameterStandbyLost), ParameterValue: aws.String(value), ApplyMethod: types.ApplyMethodImmediate}}
}

// mayGoOn says what becomes of commits when the standby is lost.
func (b *pairBed) mayGoOn(value string) error {
	_, err := b.s.ModifyDBParameterGroup(context.Background(), &rds.ModifyDBParameterGroupInput{DBParameterGroupName: aws.String("of-" + b.Name), Parameters: standbyLost(value)})
	return err
}

// pairOperation is something that happens to two servers in steps. prepare brings the
// instance to where it can happen, missing says what is not true yet.
type pairOperation struct {
	name    string
	prepare func(t *testing.T, b *pairBed)
	ask     func(t *testing.T, b *pairBed) error
	missing func(s *harness.Service, d types.DBInstance) string
	// again: who got no answer asks once more. A failover would be another one.
	again bool
}

// conversions lead to each other's beginning.
var conversions = []pairOperation{
	{"to one zone", becomeWhole, askZones(false), (*harness.Service).NotSingle, true},
	{"to two zones", becomeSingle, askZones(true), (*harness.Service).NotWhole, true},
}

var deaths = []pairOperation{
	{"failover by a death", becomeWhole, func(_ *testing.T, b *pairBed) error { return harness.KillServers(b.writer) }, (*harness.Service).NotWhole, false},
	{"failover in order", becomeWhole, func(t *testing.T, b *pairBed) error { return b.AskFailover(t) }, (*harness.Service).NotWhole, false},
	{"death of the standby", becomeWhole, func(_ *testing.T, b *pairBed) error { return harness.KillServers(b.standby) }, (*harness.Service).NotWhole, false},
	{"death of both", becomeWhole, func(_ *testing.T, b *pairBed) error { return harness.KillServers(b.writer, b.standby) }, (*harness.Service).NotWhole, false},
}

func askZones(multi bool) func(*testing.T, *pairBed) error {
	return func(t *testing.T, b *pairBed) error {
		_, err := b.s.ModifyDBInstance(t.Context(), &rds.ModifyDBInstanceInput{
			DBInstanceIdentifier: aws.String(b.Name), MultiAZ: aws.Bool(multi), ApplyImmediately: aws.Bool(true),
		})
		return err
	}
}

func becomeWhole(t *testing.T, b *pairBed) {
	t.Helper()
	if d := b.Describe(t); !aws.ToBool(d.MultiAZ) {
		b.SetMultiAZ(t, true)
	}
	b.WaitWhole(t)
	b.writer, b.standby = b.Pair(t)
}

func becomeSingle(t *testing.T, b *pairBed) {
	t.Helper()
	if d := b.Describe(t); aws.ToBool(d.MultiAZ) {
		b.SetMultiAZ(t, false)
	}
	b.WaitSingle(t)
}

// everyStep does each operation once undisturbed to learn its steps, and then once for each
// place to die, the operations in turn.
func (b *pairBed) everyStep(t *testing.T, operations []pairOperation) {
	t.Helper()
	began := time.Now()
	left := make([][]string, len(operations))
	for n, o := range operations {
		left[n] = points(b.record(t, o))
		b.random.Shuffle(len(left[n]), func(i, j int) { left[n][i], left[n][j] = left[n][j], left[n][i] })
	}
	done := map[string][]string{}
	late := func() bool { return time.Since(began) > pairKillTime[b.Engine] }
	for goesOn := true; goesOn; {
		goesOn = false
		for n, o := range operations {
			if len(left[n]) == 0 || late() && len(done[o.name]) > 0 {
				continue
			}
			goesOn = true
			point := left[n][0]
			left[n] = left[n][1:]
			if b.kill(t, o, point) {
				done[o.name] = append(done[o.name], point)
			}
		}
	}
	for n, o := range operations {
		t.Logf("%s: died at %v; no time for %v", o.name, done[o.name], left[n])
		if len(done[o.name]) == 0 {
			t.Errorf("%s: the service never died in it", o.name)
		}
	}
}

// record does an operation undisturbed and returns the steps of both servers.
func (b *pairBed) record(t *testing.T, o pairOperation) []string {
	t.Helper()
	o.prepare(t, b)
	mark := b.s.Log.Mark()
	if err := o.ask(t, b); err != nil {
		t.Fatalf("%s: %v", o.name, err)
	}
	b.WaitLike(t, "has come through: "+o.name, func(d types.DBInstance) string {
		if len(b.steps(mark)) == 0 {
			return notBegun
		}
		return o.missing(b.s, d)
	})
	return b.steps(mark)
}

// notBegun is missing while nobody has noticed yet what happened: all looks as before.
const notBegun = "no step was done"

// steps are those of both servers since a mark in the log, each once.
func (b *pairBed) steps(mark int) []string {
	var steps []string
	for _, step := range b.s.Log.GroupSteps(mark, b.ID) {
		if !slices.Contains(steps, step) {
			steps = append(steps, step)
		}
	}
	return steps
}

// kill has the service die at a point of an operation, and demands that all comes to its
// end. It says whether the point was passed: not every failover needs every step.
func (b *pairBed) kill(t *testing.T, o pairOperation, point string) (passed bool) {
	t.Helper()
	o.prepare(t, b)
	b.pulse.WaitMore(t, pairBeats)
	b.s.Arm(t, point)
	mark := b.s.Log.Mark()
	asked := o.ask(t, b)
	if asked != nil {
		// Only a service that died may have refused.
		b.waitFor(t, fmt.Sprintf("the service dies, which answered %v", asked), b.lives)
	}
	if !b.died(t, o, mark) {
		return false
	}
	b.s.Start(t)
	if asked != nil && o.again {
		if err := o.ask(t, b); err != nil {
			t.Logf("%s, asked again after %v: %v", point, asked, err)
		}
	}
	b.WaitLike(t, fmt.Sprintf("has come through: %s, with a death %s", o.name, point), func(d types.DBInstance) string { return o.missing(b.s, d) })
	b.check(t)
	if t.Failed() {
		t.Fatalf("%s: after a death %s", o.name, point)
	}
	return true
}

// died waits until the service has died, or the operation has come to its end without
// passing the point that was armed, which is taken back then.
func (b *pairBed) died(t *testing.T, o pairOperation, mark int) bool {
	t.Helper()
	b.waitFor(t, o.name+" ends", func() string {
		if !b.s.Running() {
			return ""
		}
		if len(b.steps(mark)) == 0 {
			return notBegun
		}
		out, err := b.s.DescribeDBInstances(t.Context(), &rds.DescribeDBInstancesInput{DBInstanceIdentifier: aws.String(b.Name)})
		if err != nil {
			return err.Error()
		}
		return o.missing(b.s, out.DBInstances[0])
	})
	if b.s.Disarm() {
		return false
	}
	b.waitFor(t, "the service dies", b.lives)
	return true
}

// lives is what is missing from the service's death.
func (b *pairBed) lives() string {
	if b.s.Running() {
		return "it lives"
	}
	return ""
}

// pairSettleTime is how long an operation on two servers may take on a busy machine: a
// standby may have to be cloned.
const pairSettleTime = 2 * time.Minute

func (b *pairBed) waitFor(t *testing.T, what string, missing func() string) {
	t.Helper()
	harness.Wait(t, pairSettleTime, what, missing)
}

// check demands what must be true between any two faults.
func (b *pairBed) check(t *testing.T) {
	t.Helper()
	b.pulse.WaitMore(t, pairBeats)
	b.pulse.Verify(t)
	b.watcher.check(t)
	b.waitFor(t, "no orphans", func() string {
		for what, have := range map[string][]string{"folders": b.s.Homes(), "assignments": b.s.Assignments(), "control groups": b.s.Groups()} {
			if what == "control groups" && !harness.Root() {
				continue
			}
			if owners := harness.Owners(have); !slices.Equal(owners, []string{b.ID}) {
				return fmt.Sprintf("%s of %v, want %s alone", what, owners, b.ID)
			}
		}
		return strings.Join(strays(b.s, b.s.Homes()), ", ")
	})
}
