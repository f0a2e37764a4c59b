package replication

import (
	"reflect"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/engine"
)

const (
	second = kurabe.InstanceID("db-1~2")
	third  = kurabe.InstanceID("db-1~3")
)

// glance is one look at a server, some time after the one before.
type glance struct {
	after   time.Duration
	view    *engine.RoleView    // nil: it failed
	hangs   bool                // without an answer in time
	settled []kurabe.InstanceID // for whom it was made to wait
}

func (g glance) take(s *State, now time.Time) {
	switch {
	case g.view != nil:
		s.Answered(now, *g.view, InForce{WaitsFor: g.settled})
	case g.hangs:
		s.Unanswered(now)
	default:
		s.Refused(now)
	}
}

// reported is what a sequence of looks comes to.
func reported(followers []kurabe.InstanceID, looks []glance) kurabe.RoleReport {
	var s State
	now := time.Unix(1000, 0)
	for _, g := range looks {
		now = now.Add(g.after)
		g.take(&s, now)
	}
	return s.Report(now, followers)
}

// writes is a writer's answer; each follower is streaming and has all up to flushed.
func writes(inserted int64, waits []kurabe.InstanceID, flushed map[kurabe.InstanceID]int64) *engine.RoleView {
	v := &engine.RoleView{Writing: true, Position: inserted, Inserted: inserted, WaitsFor: waits, Followers: map[kurabe.InstanceID]engine.FollowerView{}}
	for id, at := range flushed {
		v.Followers[id] = engine.FollowerView{Streaming: true, Flushed: at}
	}
	return v
}

func ids(list ...kurabe.InstanceID) []kurabe.InstanceID { return list }

type upTo = map[kurabe.InstanceID]int64

// A follower is covered when it has all that was written before commits waited for it.
func TestCovered(t *testing.T) {
	const look = LookEvery
	two := ids(second)
	for _, c := range []struct {
		name  string
		looks []glance
		want  []kurabe.InstanceID
	}{
		{"nobody is waited for", []glance{{look, writes(100, nil, upTo{second: 100}), false, nil}}, nil},
		{"it has all at once", []glance{{look, writes(100, two, upTo{second: 100}), false, two}}, two},
		{"it lacks some", []glance{{look, writes(100, two, upTo{second: 99}), false, two}}, nil},
		{"it has caught up with the mark", []glance{
			{look, writes(100, two, upTo{second: 50}), false, two}, {look, writes(900, two, upTo{second: 100}), false, two}}, two},
		{"the mark stays while more is written", []glance{
			{look, writes(100, two, upTo{second: 50}), false, two}, {look, writes(900, two, upTo{second: 99}), false, two}}, nil},
		{"it is gone", []glance{
			{look, writes(100, two, upTo{second: 100}), false, two}, {look, writes(900, two, nil), false, two}}, nil},
		{"it is waited for in name only", []glance{{look, writes(100, two, upTo{second: 100}), false, nil}}, nil},
		{"a mark is not taken before every commit waits", []glance{
			{look, writes(100, two, upTo{second: 100}), false, nil}, {look, writes(900, two, upTo{second: 100}), false, two}}, nil},
		{"the server waits for others than it was made to", []glance{{look, writes(100, ids(third), upTo{second: 100}), false, two}}, nil},
		{"for nobody in between", []glance{
			{look, writes(100, two, upTo{second: 100}), false, two}, {look, writes(500, nil, upTo{second: 400}), false, nil},
			{look, writes(900, two, upTo{second: 800}), false, two}}, nil},
		{"for another one in between", []glance{
			{look, writes(100, two, upTo{second: 100}), false, two}, {look, writes(500, ids(third), upTo{second: 400}), false, ids(third)},
			{look, writes(900, two, upTo{second: 800}), false, two}}, nil},
		{"a look that fails forgets nothing", []glance{
			{look, writes(100, two, upTo{second: 50}), false, two}, {look, nil, false, two}, {look, writes(900, two, upTo{second: 100}), false, two}}, two},
		{"one of two", []glance{{look, writes(100, ids(third, second), upTo{second: 100, third: 7}), false, ids(second, third)}}, two},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := reported(ids(second, third), c.looks).CaughtUp; !reflect.DeepEqual(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// withFollower is a writer's answer with one follower as it is given.
func withFollower(f engine.FollowerView) *engine.RoleView {
	return &engine.RoleView{Writing: true, Followers: map[kurabe.InstanceID]engine.FollowerView{second: f}}
}

func TestSilent(t *testing.T) {
	const look = LookEvery
	streams, catchesUp := engine.FollowerView{Streaming: true}, engine.FollowerView{}
	for _, c := range []struct {
		name  string
		looks []glance
		want  bool
	}{
		{"it streams", []glance{{look, withFollower(streams), false, nil}}, false},
		{"it spoke just now", []glance{{look, withFollower(engine.FollowerView{Streaming: true, HeardAgo: SilentMost - 1}), false, nil}}, false},
		{"it has not spoken for long", []glance{{look, withFollower(engine.FollowerView{Streaming: true, HeardAgo: SilentMost}), false, nil}}, true},
		{"it is gone", []glance{{look, withFollower(streams), false, nil}, {look, writes(1, nil, nil), false, nil}}, true},
		{"it streams no more", []glance{{look, withFollower(streams), false, nil}, {look, withFollower(catchesUp), false, nil}}, true},
		{"it is back", []glance{{look, withFollower(streams), false, nil}, {look, withFollower(catchesUp), false, nil}, {look, withFollower(streams), false, nil}}, false},
		{"the writer has only begun", []glance{{look, writes(1, nil, nil), false, nil}, {SilentMost - 1, writes(1, nil, nil), false, nil}}, false},
		{"it never came", []glance{{look, writes(1, nil, nil), false, nil}, {SilentMost, writes(1, nil, nil), false, nil}}, true},
		{"the writer followed until now", []glance{
			{look, &engine.RoleView{Following: true}, false, nil}, {time.Hour, writes(1, nil, nil), false, nil}}, false},
		{"the writer does not answer", []glance{{look, withFollower(streams), false, nil}, {time.Minute, nil, true, nil}}, false},
		{"nothing was seen", []glance{{look, nil, false, nil}}, false},
		{"this one follows itself", []glance{{look, &engine.RoleView{Following: true}, false, nil}, {time.Hour, &engine.RoleView{Following: true}, false, nil}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := reported(ids(second), c.looks)
			if got := len(r.SilentFollowers) == 1 && r.SilentFollowers[0] == second; got != c.want || !got && r.SilentFollowers != nil {
				t.Errorf("%v", r.SilentFollowers)
			}
		})
	}
	if r := reported(nil, []glance{{look, withFollower(engine.FollowerView{HeardAgo: time.Hour}), false, nil}, {time.Hour, writes(1, nil, nil), false, nil}}); r.SilentFollowers != nil {
		t.Errorf("%v is not to follow", r.SilentFollowers)
	}
}

func TestNear(t *testing.T) {
	const look = LookEvery
	lacks := func(bytes int64) glance {
		return glance{look, writes(1<<40, nil, upTo{second: 1<<40 - bytes}), false, nil}
	}
	gone := glance{look, writes(1<<40, nil, nil), false, nil}
	for _, c := range []struct {
		name  string
		looks []glance
		want  bool
	}{
		{"it has all", []glance{lacks(0)}, true},
		{"it lacks little", []glance{lacks(nearBytes)}, true},
		{"it lacks much", []glance{lacks(nearBytes + 1)}, false},
		{"a little more than before", []glance{lacks(0), lacks(nearBytes + 1)}, true},
		{"much more than before", []glance{lacks(0), lacks(2*nearBytes + 1)}, false},
		{"it was away", []glance{lacks(0), gone, lacks(nearBytes + 1)}, false},
		{"it is away", []glance{lacks(0), gone}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := reported(ids(second), c.looks).NearlyCaughtUp; (len(got) == 1) != c.want {
				t.Errorf("%v", got)
			}
		})
	}
}

// TestLost: a follower is lost when its log is, or when the slot that was made for it is not
// there any more.
func TestLost(t *testing.T) {
	two := ids(second)
	with := func(slots []kurabe.InstanceID, f engine.FollowerView) engine.RoleView {
		return engine.RoleView{Writing: true, Followers: map[kurabe.InstanceID]engine.FollowerView{second: f}, Slots: slots}
	}
	for _, c := range []struct {
		name string
		made []kurabe.InstanceID
		view engine.RoleView
		want bool
	}{
		{"it streams", two, with(two, engine.FollowerView{Streaming: true}), false},
		{"it is away", two, with(two, engine.FollowerView{}), false},
		{"its log was given up", two, with(two, engine.FollowerView{Lost: true}), true},
		{"its slot is gone", two, engine.RoleView{Writing: true, Slots: []kurabe.InstanceID{}}, true},
		{"its slot is not made yet", nil, engine.RoleView{Writing: true, Slots: []kurabe.InstanceID{}}, false},
		{"an engine without slots", two, engine.RoleView{Writing: true}, false},
		{"this one follows itself", two, engine.RoleView{Slots: []kurabe.InstanceID{}}, false},
	} {
		var s State
		now := time.Unix(1000, 0)
		s.Answered(now, c.view, InForce{Slots: c.made})
		if got := s.Report(now, two).NeedRebuild; (len(got) == 1) != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
		if got := s.Report(now, nil).NeedRebuild; got != nil {
			t.Errorf("%s: %v is to follow no more", c.name, got)
		}
	}
}

// A writer that stops has sent its followers away: only one that is still connected, and says
// nothing, keeps it from handing over.
func TestHangingWhileItStops(t *testing.T) {
	now := time.Unix(1000, 0)
	var s State
	s.Answered(now, *writes(7, ids(second), upTo{second: 7}), InForce{WaitsFor: ids(second)})
	gone, hangs := engine.RoleView{Writing: true}, writes(7, ids(second), upTo{second: 7})
	hangs.Followers[second] = engine.FollowerView{Streaming: true, HeardAgo: SilentMost}
	for _, c := range []struct {
		view engine.RoleView
		want []kurabe.InstanceID
	}{{gone, nil}, {*hangs, ids(second)}} {
		s.Answered(now, c.view, InForce{WaitsFor: ids(second)})
		silent := s.Report(now, ids(second)).SilentFollowers
		if got := s.Hanging(silent); len(silent) != 1 || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%+v: %v is silent, %v hangs", c.view, silent, got)
		}
	}
}

// hanging is a server that gives no answer, in the time that looks at it take.
func hanging(looks int) []glance {
	var list []glance
	for range looks {
		list = append(list, glance{after: LookEvery + LookLimit, hangs: true})
	}
	return list
}

func TestStuck(t *testing.T) {
	serves := glance{after: LookEvery, view: writes(1, nil, nil)}
	refuses := glance{after: LookEvery}
	then := func(list ...[]glance) (all []glance) {
		for _, l := range list {
			all = append(all, l...)
		}
		return all
	}
	for _, c := range []struct {
		name  string
		looks []glance
		want  bool
	}{
		{"it serves", []glance{serves}, false},
		{"one answer is missing", then([]glance{serves}, hanging(1)), false},
		{"two are", then([]glance{serves}, hanging(2)), true},
		{"many are", then([]glance{serves}, hanging(50)), true},
		{"it answers again", then([]glance{serves}, hanging(50), []glance{serves}), false},
		{"it says no", then([]glance{serves}, hanging(50), []glance{refuses}), false},
		{"it says no all the time", then([]glance{serves}, []glance{refuses, refuses, refuses, refuses, refuses, refuses, refuses, refuses, refuses, refuses, refuses}), false},
		{"it never answered", hanging(50), false},
		{"it never said anything but no", then([]glance{refuses}, hanging(50)), false},
		{"it answers now and then", then([]glance{serves}, hanging(1), []glance{serves}, hanging(1)), false},
		{"it is seen to be stopped ten times", then([]glance{serves}, seenStopped(10)), true},
		{"it is seen to be stopped nine times", then([]glance{serves}, seenStopped(9)), false},
		// The machine stood still: the look was under way all the time, and is one look.
		{"an hour passed in one look", []glance{serves, {after: time.Hour, hangs: true}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := reported(nil, c.looks).Unresponsive; got != c.want {
				t.Errorf("stuck: %v", got)
			}
		})
	}
}

// seenStopped is a process that is seen to be stopped, so that there is no wait for an answer.
func seenStopped(looks int) []glance {
	var list []glance
	for range looks {
		list = append(list, glance{after: LookEvery, hangs: true})
	}
	return list
}

// What was seen last holds for as long as nothing else can have become true.
func TestOldViews(t *testing.T) {
	follows := engine.RoleView{Following: true, Position: 7}
	now := time.Unix(1000, 0)
	var s State
	s.Answered(now, follows, InForce{})
	if r := s.Report(now.Add(StuckAfter-1), nil); !r.Following || r.Position != 7 || s.Current(now.Add(StuckAfter-1)) == nil {
		t.Errorf("%+v", r)
	}
	if r := s.Report(now.Add(StuckAfter), nil); r.Following || r.Position != 7 || s.Current(now.Add(StuckAfter)) != nil {
		t.Errorf("it may follow no more: %+v", r)
	}
	s.Answered(now, *writes(9, ids(second), nil), InForce{})
	if r := s.Report(now.Add(time.Hour), nil); !r.Writing || !reflect.DeepEqual(r.WaitsFor, ids(second)) {
		t.Errorf("a writer cannot become anything else: %+v", r)
	}
	if r := (&State{}).Report(now, ids(second)); !reflect.DeepEqual(r, kurabe.RoleReport{}) {
		t.Errorf("of what was never seen: %+v", r)
	}
}

// TestLimit: however its looks are timed, a server that hangs is stuck when StuckAfter is
// over, and not much later.
func TestLimit(t *testing.T) {
	for _, late := range []time.Duration{0, time.Millisecond, 40 * time.Millisecond, 200 * time.Millisecond} {
		var s State
		began := time.Unix(1000, 0)
		now := began
		s.Answered(now, *writes(1, nil, nil), InForce{})
		now = now.Add(LookEvery)
		for !s.Stuck() {
			now = now.Add(s.Limit(now) + late)
			s.Unanswered(now)
		}
		if took := now.Sub(began); took < StuckAfter || took > StuckAfter+4*late+LookEvery {
			t.Errorf("looks that end %v late: stuck after %v", late, took)
		}
	}
}

// A follower is late when it has not applied what was there ReaderLagMost ago.
func TestLate(t *testing.T) {
	follows := func(position, applied int64) *engine.RoleView {
		return &engine.RoleView{Following: true, Position: position, Applied: applied}
	}
	const most = kurabe.ReaderLagMost
	for name, c := range map[string]struct {
		looks []glance
		want  bool
	}{
		"it has applied all":                    {[]glance{{LookEvery, follows(9, 9), false, nil}, {time.Hour, follows(9, 9), false, nil}}, false},
		"it was idle for long":                  {[]glance{{LookEvery, follows(9, 9), false, nil}, {time.Hour, follows(10, 9), false, nil}}, false},
		"it applies nothing":                    {[]glance{{LookEvery, follows(9, 5), false, nil}, {most, follows(9, 5), false, nil}}, true},
		"a moment earlier":                      {[]glance{{LookEvery, follows(9, 5), false, nil}, {most - 1, follows(9, 5), false, nil}}, false},
		"it goes on, as far behind":             {[]glance{{LookEvery, follows(9, 5), false, nil}, {most / 2, follows(20, 9), false, nil}, {most / 2, follows(30, 19), false, nil}}, false},
		"it goes on, and is further behind":     {[]glance{{LookEvery, follows(9, 5), false, nil}, {most / 2, follows(20, 6), false, nil}, {most / 2, follows(30, 8), false, nil}}, true},
		"it has caught up":                      {[]glance{{LookEvery, follows(9, 5), false, nil}, {most, follows(9, 5), false, nil}, {LookEvery, follows(9, 9), false, nil}}, false},
		"what came in between is what it lacks": {[]glance{{LookEvery, follows(9, 5), false, nil}, {LookEvery, follows(12, 5), false, nil}, {most, follows(14, 9), false, nil}}, true},
		"it follows no more":                    {[]glance{{LookEvery, follows(9, 9), false, nil}, {most, &engine.RoleView{Position: 9, Applied: 9}, false, nil}}, true},
		"it follows no more since a moment ago": {[]glance{{LookEvery, follows(9, 9), false, nil}, {most - 1, &engine.RoleView{Position: 9, Applied: 9}, false, nil}}, false},
		"it never did":                          {[]glance{{LookEvery, &engine.RoleView{Position: 9, Applied: 9}, false, nil}}, true},
		"it was promoted before it had all":     {[]glance{{LookEvery, follows(9, 5), false, nil}, {most, writes(9, nil, nil), false, nil}}, false},
	} {
		if got := reported(nil, c.looks).ReadsStale; got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A follower is behind when it has not applied what was there two looks ago, and no more when
// it has applied what was there at the last one.
func TestBehind(t *testing.T) {
	type look struct {
		after             time.Duration
		position, applied int64
		want              bool
	}
	for name, looks := range map[string][]look{
		"it applies as it comes": {{0, 9, 9, false}, {LookEvery, 20, 19, false}, {LookEvery, 40, 39, false}, {LookEvery, 60, 59, false}, {LookEvery, 60, 60, false}},
		"it was idle for long":   {{0, 9, 9, false}, {time.Hour, 10, 9, false}, {LookEvery, 10, 9, false}, {LookEvery, 10, 9, true}, {LookEvery, 10, 10, false}},
		"it catches up slowly": {{0, 9, 5, false}, {behindAfter, 20, 5, true}, {LookEvery, 30, 9, true}, {LookEvery, 40, 20, true}, {LookEvery, 50, 30, true},
			{LookEvery / 2, 60, 45, false}, {LookEvery / 2, 61, 60, false}},
	} {
		var s State
		now := time.Unix(1000, 0)
		for n, l := range looks {
			now = now.Add(l.after)
			s.Answered(now, engine.RoleView{Following: true, Position: l.position, Applied: l.applied}, InForce{})
			if got := s.Report(now, nil).ApplyLags; got != l.want {
				t.Errorf("%s, look %d: %v", name, n, got)
			}
		}
		s.Answered(now.Add(time.Hour), engine.RoleView{Writing: true, Position: 99}, InForce{})
		if s.Report(now, nil).ApplyLags {
			t.Errorf("%s: a writer is behind", name)
		}
	}
}

// A server that is no follower leads, whether or not it lets clients in.
func TestLeads(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, writing := range []bool{true, false} {
		var s State
		s.Answered(now, engine.RoleView{Writing: writing}, InForce{})
		if r := s.Report(now, nil); r.IsPrimary != writing {
			t.Errorf("no follower %v: leads %v", writing, r.IsPrimary)
		}
	}
}

// What a server had alone that follows by now was given up, or is nobody's alone.
func TestEndedWaitsOfAFollower(t *testing.T) {
	var s State
	s.Ended(3, *writes(100, ids(second), upTo{second: 50}))
	if s.EndedElsewhere != 0 {
		t.Errorf("%d are elsewhere", s.EndedElsewhere)
	}
	s.Ended(3, *writes(200, ids(third), upTo{second: 150, third: 50}))
	if s.EndedElsewhere != 0 {
		t.Errorf("one for whom nobody waits has %d", s.EndedElsewhere)
	}
	s.Ended(4, engine.RoleView{Following: true})
	if s.EndedElsewhere != 4 {
		t.Errorf("a follower: %d", s.EndedElsewhere)
	}
}
