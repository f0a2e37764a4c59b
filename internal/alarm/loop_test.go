package alarm

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kurabe"
	"kurabe/internal/store"
)

const topicARN = "arn:aws:sns:us-east-1:000000000000:pages"

// fleet is a store with servers that may evaluate, in a bubble.
type fleet struct {
	t    *testing.T
	ctx  context.Context
	kv   *store.Memory
	view *store.View

	mu    sync.Mutex // guards the rest
	value func(at time.Time) (float64, bool)
	err   error
	reads int
}

// inBubble runs a test in virtual time, which begins at midnight.
func inBubble(t *testing.T, do func(*fleet)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		f := &fleet{t: t, ctx: ctx, kv: store.NewMemory(), value: func(time.Time) (float64, bool) { return 0, true }}
		f.view = store.NewView(f.kv)
		var run sync.WaitGroup
		run.Go(func() { _ = f.view.Run(ctx) }) // ends with ctx only
		defer run.Wait()
		defer cancel()
		f.commit(store.NewChange().PutTopic(kurabe.Topic{ID: "t", Name: "pages", ARN: topicARN}, 0).
			PutSubscription(kurabe.Subscription{ID: "s", Topic: "t", Protocol: "http", ConfirmedAt: time.Now()}, 0))
		do(f)
	})
}

func (f *fleet) commit(c *store.Change) {
	f.t.Helper()
	revision, err := c.Commit(f.ctx, f.kv)
	if err == nil {
		err = f.view.WaitRevision(f.ctx, revision)
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// put stores an alarm of one period of a minute.
func (f *fleet) put(name string, edit func(*kurabe.Alarm)) {
	a := watch(0, 1, "").Alarm
	a.Name, a.CreatedAt, a.UpdatedAt = name, time.Now(), time.Now()
	a.Actions = map[kurabe.AlarmState][]string{kurabe.AlarmAlarm: {topicARN}, kurabe.AlarmOK: {topicARN}}
	if edit != nil {
		edit(&a)
	}
	have, _ := f.view.Alarm(name)
	f.commit(store.NewChange().PutAlarm(a, have.ModRevision))
}

// elect returns the fence of a new term.
func (f *fleet) elect() store.Fence {
	revision, err := store.NewChange().Put(store.PlannerElectionKey, []byte("h")).Commit(f.ctx, f.kv)
	if err != nil {
		f.t.Fatal(err)
	}
	return store.Fence{Key: store.PlannerElectionKey, ModRevision: revision}
}

// serve evaluates under a fence until it is told to stop.
func (f *fleet) serve(fence store.Fence) (stop func()) {
	ctx, cancel := context.WithCancel(f.ctx)
	var run sync.WaitGroup
	l := Loop{KV: f.kv, View: f.view, Place: Place{"us-east-1", "000000000000"}, Log: slog.New(slog.DiscardHandler), Now: time.Now, Read: f.read}
	run.Go(func() { l.Run(ctx, fence) })
	return func() { cancel(); run.Wait() }
}

func (f *fleet) read(_ context.Context, due []Due) ([]Points, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	out := make([]Points, len(due))
	for n, d := range due {
		for at := d.Begin(); at < d.End; at += d.Period {
			if v, ok := f.value(time.Unix(at, 0)); ok {
				out[n].Points = append(out[n].Points, Point{at, v, 60})
			}
		}
	}
	return out, f.err
}

func (f *fleet) measure(value func(at time.Time) (float64, bool)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.value = value
}

func (f *fleet) state(name string) kurabe.AlarmState {
	a, _ := f.view.Alarm(name)
	return a.Status.Value.State
}

// told lists the notifications that wait, by subject.
func (f *fleet) told() (list []string) {
	for _, q := range f.view.FirstQueued("t", 10_000) {
		n, err := q.Notification()
		if err != nil {
			f.t.Fatal(err)
		}
		list = append(list, n.Subject)
	}
	return list
}

func (f *fleet) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// from is high from a time on.
func from(begin time.Time) func(time.Time) (float64, bool) {
	return func(at time.Time) (float64, bool) {
		if at.Before(begin) {
			return 0, true
		}
		return 1, true
	}
}

func TestLoopTellsOnce(t *testing.T) {
	inBubble(t, func(f *fleet) {
		f.put("busy", nil)
		f.put("silent", func(a *kurabe.Alarm) { a.Muted = true })
		defer f.serve(f.elect())()
		f.after(2 * time.Minute)
		if f.state("busy") != kurabe.AlarmOK {
			t.Fatalf("state %s", f.state("busy"))
		}
		begin := time.Now().Truncate(time.Minute).Add(time.Minute)
		f.measure(from(begin))
		f.after(time.Until(begin.Add(59 * time.Second)))
		if f.state("busy") != kurabe.AlarmOK {
			t.Errorf("state %s before the period has ended", f.state("busy"))
		}
		f.after(settle + normally/2 + time.Second) // the latest place of an alarm
		if f.state("busy") != kurabe.AlarmAlarm || f.state("silent") != kurabe.AlarmAlarm {
			t.Errorf("states %s and %s", f.state("busy"), f.state("silent"))
		}
		f.after(30 * time.Minute)
		f.measure(from(time.Now().Add(time.Hour)))
		f.after(5 * time.Minute)
		want := []string{`OK: "busy" in US East (N. Virginia)`, `ALARM: "busy" in US East (N. Virginia)`, `OK: "busy" in US East (N. Virginia)`}
		if got := f.told(); !slices.Equal(got, want) {
			t.Errorf("told %q", got)
		}
		var entries []string
		for _, e := range f.view.AlarmHistory(time.Time{}, time.Now().Add(time.Hour)) {
			entries = append(entries, e.Alarm+" "+string(e.Kind)+" "+e.Summary)
		}
		if n := len(entries); n != 9 { // three changes of both, three actions of one
			t.Errorf("%d entries: %s", n, strings.Join(entries, "\n"))
		}
	})
}

// The elected server changes at random moments, and two believe to be it: each change of state is
// told once, whatever they do.
func TestLoopOverElections(t *testing.T) {
	inBubble(t, func(f *fleet) {
		const alarms = 40
		for n := range alarms {
			f.put(fmt.Sprintf("a%d", n), nil)
		}
		begin := time.Now().Truncate(time.Minute)
		f.measure(func(at time.Time) (float64, bool) { return float64(int(at.Sub(begin)/(4*time.Minute)) % 2), true })
		var stops []func()
		for n := range 60 {
			stops = append(stops, f.serve(f.elect()))
			if len(stops) > 2 { // the one before goes on, and does not know it
				stops[0]()
				stops = stops[1:]
			}
			f.after(time.Duration(7+(n*13)%60) * time.Second)
		}
		f.after(time.Until(time.Now().Truncate(4 * time.Minute).Add(7 * time.Minute)))
		for _, stop := range stops {
			stop()
		}
		last := map[string]string{}
		count := 0
		for _, subject := range f.told() {
			state, name, _ := strings.Cut(subject, ": ")
			if last[name] == state {
				t.Errorf("%s was told twice of %s", state, name)
			}
			last[name] = state
			count++
		}
		updates := 0
		for _, e := range f.view.AlarmHistory(time.Time{}, time.Now().Add(time.Hour)) {
			if e.Kind == kurabe.AlarmUpdated {
				updates++
			}
		}
		phases := int(time.Since(begin) / (4 * time.Minute))
		if count != updates || count < alarms*(phases-1) {
			t.Errorf("%d notifications, %d changes in %d phases", count, updates, phases)
		}
	})
}

// What is set by hand is told, and lasts until the next evaluation.
func TestLoopCorrectsASetState(t *testing.T) {
	inBubble(t, func(f *fleet) {
		f.put("busy", nil)
		defer f.serve(f.elect())()
		f.after(2 * time.Minute)
		a, _ := f.view.Alarm("busy")
		f.commit(Place{"us-east-1", "0"}.Enter(store.NewChange(), f.view, a, Verdict{State: kurabe.AlarmAlarm, Reason: "a test"}, time.Now()))
		if f.state("busy") != kurabe.AlarmAlarm {
			t.Fatal("not set")
		}
		f.after(2 * time.Minute)
		if got := f.told(); f.state("busy") != kurabe.AlarmOK || len(got) != 3 {
			t.Errorf("state %s, told %q", f.state("busy"), got)
		}
	})
}

// Without any metric nothing is known, and nothing changes; what fails for one alarm is told as
// its reason.
func TestLoopWithoutMetrics(t *testing.T) {
	inBubble(t, func(f *fleet) {
		f.put("busy", func(a *kurabe.Alarm) { a.MissingData = kurabe.MissingIsBreaching })
		f.err = fmt.Errorf("no host answers")
		defer f.serve(f.elect())()
		f.after(5 * time.Minute)
		if f.state("busy") != kurabe.AlarmInsufficientData || f.reads == 0 {
			t.Errorf("state %s after %d reads", f.state("busy"), f.reads)
		}
		f.mu.Lock()
		f.err = nil
		f.mu.Unlock()
		f.measure(func(time.Time) (float64, bool) { return 0, false })
		f.after(2 * time.Minute)
		if f.state("busy") != kurabe.AlarmAlarm {
			t.Errorf("state %s without data", f.state("busy"))
		}
	})
}

// The work is spread, and each alarm has its turn once in its time.
func TestLoopSpreads(t *testing.T) {
	inBubble(t, func(f *fleet) {
		for n := range 60 {
			f.put(fmt.Sprintf("a%d", n), func(a *kurabe.Alarm) {
				if n == 0 {
					a.Period = 10
				}
				if n == 1 {
					a.Period, a.EvaluationPeriods = 86400, 2
				}
			})
		}
		begin, turns, at := time.Now(), map[string]int{}, map[time.Duration]int{}
		alarms := f.view.Alarms()
		for now := begin; now.Before(begin.Add(time.Hour)); now = now.Add(tick) {
			for _, a := range alarms {
				a.Status.ModRevision = 1
				if when, ok := dueIn(a, now, now.Add(tick)); ok {
					turns[a.Value.Name]++
					at[when.Sub(when.Truncate(time.Minute))]++
					if when.After(now.Add(tick)) || !when.After(now) {
						t.Fatalf("%s is due at %s, not in the %s after %s", a.Value.Name, when, tick, now)
					}
				}
			}
		}
		if turns["a0"] != 360 || turns["a1"] != 1 || turns["a2"] != 60 || len(at) < 6 {
			t.Errorf("turns %v of a0, a1 and a2, at %v", []int{turns["a0"], turns["a1"], turns["a2"]}, at)
		}
	})
}

// The message is CloudWatch's, to the last member.
func TestMessage(t *testing.T) {
	a := watch(0, 1, "").Alarm
	a.Name, a.Description, a.UpdatedAt = "busy", "the shop", noon
	a.Queries[0] = kurabe.MetricQuery{Namespace: "AWS/RDS", Name: "CPUUtilization", Stat: "Average", Dimensions: []kurabe.MetricDimension{{Name: "DBInstanceIdentifier", Value: "shop"}}}
	a.Actions = map[kurabe.AlarmState][]string{kurabe.AlarmAlarm: {topicARN}}
	got := Place{"eu-west-1", "000000000000"}.message(a, kurabe.AlarmOK, Verdict{State: kurabe.AlarmAlarm, Reason: "why > not"}, noon.Add(time.Second))
	want := `{"AlarmName":"busy","AlarmDescription":"the shop","AWSAccountId":"000000000000","AlarmConfigurationUpdatedTimestamp":"2026-11-28T12:00:00.000+0000",` +
		`"NewStateValue":"ALARM","NewStateReason":"why > not","StateChangeTime":"2026-11-28T12:00:01.000+0000","Region":"EU (Ireland)","AlarmArn":"arn:aws:cloudwatch:eu-west-1:000000000000:alarm:busy",` +
		`"OldStateValue":"OK","OKActions":[],"AlarmActions":["` + topicARN + `"],"InsufficientDataActions":[],"Trigger":{"MetricName":"CPUUtilization","Namespace":"AWS/RDS",` +
		`"StatisticType":"Statistic","Statistic":"AVERAGE","Unit":null,"Dimensions":[{"value":"shop","name":"DBInstanceIdentifier"}],"Period":60,"EvaluationPeriods":1,` +
		`"ComparisonOperator":"GreaterThanThreshold","Threshold":0.5,"TreatMissingData":"","EvaluateLowSampleCountPercentile":""}}`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	a.Queries = []kurabe.MetricQuery{{ID: "m1", Namespace: "n", Name: "m", Stat: "p99", Period: 60}, {ID: "e1", Expression: "m1 * 2"}}
	a.Watched = 1
	var m struct{ Trigger map[string]any }
	if err := json.Unmarshal([]byte(Place{}.message(a, kurabe.AlarmOK, Verdict{State: kurabe.AlarmAlarm}, noon)), &m); err != nil || m.Trigger["Metrics"] == nil || m.Trigger["MetricName"] != nil {
		t.Errorf("%v, %v", m, err)
	}
	long := Place{Region: "eu-south-1"}.subject("SharedInfra-Alpha-Database-DatabaseInstanceObservabilityHighDatabaseConnectionsAlarm5CD1334F-FetIEoRn5hgP", kurabe.AlarmAlarm)
	if long != `ALARM: "SharedInfra-Alpha-Database-DatabaseInstanceObservabilityHighDatabaseConnec..." in EU (Milan)` {
		t.Errorf("subject %s", long)
	}
}
