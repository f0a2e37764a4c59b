package kurabe

import (
	"slices"
	"testing"
	"time"
)

var joinNoon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func minute(n float64) time.Time { return joinNoon.Add(time.Duration(n * float64(time.Minute))) }

// stretch is a run between two minutes, with 100 bytes a minute from a file on.
func stretch(from, to float64, file, ended string) LogRun {
	at := func(n float64) LogMark {
		return LogMark{At: minute(n), Position: LogPosition{File: file, Offset: int64((n - from) * 100)}}
	}
	return LogRun{Began: minute(from), First: at(from), Last: at(to), Ended: ended}
}

func told(by HostID, spool int64, runs ...LogRun) InstanceLog {
	return InstanceLog{Instance: "db-1", Runs: runs, StoredBytes: 10 + spool, SpoolBytes: spool}.ToldBy(by)
}

func takenOn(host HostID, at float64, file string, offset int64) SnapshotFacts {
	return SnapshotFacts{TakenAt: minute(at), UsableAt: minute(at), Position: LogPosition{File: file, Offset: offset}, Host: host}
}

// TestJoinLogs: what several hosts tell of one log is one, each stretch once.
func TestJoinLogs(t *testing.T) {
	first, second := stretch(0, 10, "000003", "another host writes"), stretch(11, 20, "000001", "")
	for name, c := range map[string]struct {
		logs []InstanceLog
		want []LogRun
		host HostID // of the last
	}{
		"a host each":                           {[]InstanceLog{told("a", 0, first), told("b", 5, second)}, []LogRun{first, second}, "b"},
		"the other way round":                   {[]InstanceLog{told("b", 5, second), told("a", 0, first)}, []LogRun{first, second}, "b"},
		"one repository":                        {[]InstanceLog{told("a", 0, first, stretch(11, 19, "000001", "not mine")), told("b", 5, stretch(0, 9, "000003", "not mine"), second)}, []LogRun{first, second}, "b"},
		"one repository, with the same ends":    {[]InstanceLog{told("a", 0, first, stretch(11, 20, "000001", "not mine")), told("b", 5, second)}, []LogRun{first, second}, "b"},
		"the first clock is ahead":              {[]InstanceLog{told("a", 0, stretch(0, 15, "000003", "x")), told("b", 5, second)}, []LogRun{stretch(0, 15, "000003", "x"), second}, "b"},
		"two that began at the same time":       {[]InstanceLog{told("a", 0, stretch(11, 20, "000003", "x")), told("b", 5, second)}, []LogRun{second, stretch(11, 20, "000003", "x")}, "a"},
		"one that has nothing and one that has": {[]InstanceLog{told("a", 0), told("b", 5, second)}, []LogRun{second}, "b"},
	} {
		got, ok := JoinLogs(c.logs)
		for n := range got.Runs {
			if n == len(got.Runs)-1 && got.Runs[n].Host != c.host {
				t.Errorf("%s: the last is told by %q", name, got.Runs[n].Host)
			}
			got.Runs[n].Host = ""
		}
		if !ok || !slices.Equal(got.Runs, c.want) || got.SpoolBytes != 5 || got.StoredBytes != 25 || got.Instance != "db-1" {
			t.Errorf("%s: %v %+v", name, ok, got)
		}
	}
	if _, ok := JoinLogs(nil); ok {
		t.Error("there is a log that nobody has")
	}
}

// TestJoinedLogIsOfItsHost: each server numbers its files for itself and has its own clock, so
// that a snapshot may seem to lie in a run of another host. What is claimed of it is what its
// own host has.
func TestJoinedLogIsOfItsHost(t *testing.T) {
	// The clock of a is a minute and a half ahead; the file of b has the higher number.
	log, _ := JoinLogs([]InstanceLog{told("a", 0, stretch(0, 12, "000001", "another host writes")), told("b", 0, stretch(11, 20, "000001", ""))})
	old, next := takenOn("a", 11.5, "000001", 500), takenOn("b", 11.7, "000001", 50)
	if from, to, ok := log.Moments(old); !ok || !from.Equal(minute(11.5)) || !to.Equal(minute(12)) {
		t.Errorf("the old one reaches from %v to %v, %v", from, to, ok)
	}
	if _, to, ok := log.Moments(next); !ok || !to.Equal(minute(20)) {
		t.Errorf("the new one reaches %v, %v", to, ok)
	}
	if log.Holds(old, minute(20)) || !log.Holds(next, minute(20)) {
		t.Error("the log goes on from the one on the other host")
	}
	if !log.SurelyFollows(next, old) || log.SurelyFollows(old, next) || log.CompareTaken(old, next) >= 0 {
		t.Error("the order is not that of the writers")
	}
	// The clock of a is ten minutes ahead: its last run seems to have begun last.
	log, _ = JoinLogs([]InstanceLog{told("a", 0, stretch(15, 16, "000001", "another host writes")), told("b", 0, stretch(11, 20, "000001", ""))})
	if !log.Holds(next, minute(20)) || log.Holds(takenOn("a", 15.5, "000001", 50), minute(20)) {
		t.Error("what ended on another host hides the log that goes on")
	}
}

// goesOn is a run of another server that goes on from a stretch.
func goesOn(r LogRun, from LogRun, server InstanceID, after int64) LogRun {
	r.Continues, r.After = from.Began, LogPosition{Server: from.First.Position.Server, File: from.First.Position.File, Offset: after}
	return by(r, server)
}

func by(r LogRun, server InstanceID) LogRun {
	r.First.Position.Server, r.Last.Position.Server = server, server
	return r
}

// TestChain: a snapshot of one server is brought to the time of the next ones by their runs,
// if it is of what they have too. File names say nothing across servers.
func TestChain(t *testing.T) {
	one := by(stretch(0, 10, "000009", "joined"), "db")
	two := goesOn(stretch(11, 20, "000004", "joined"), one, "db~2", 950)
	three := goesOn(stretch(21, 30, "000010", ""), two, "db", 900)
	l := InstanceLog{Runs: []LogRun{one, two, three}}
	taken := func(at float64, server InstanceID, file string, offset int64) SnapshotFacts {
		f := takenOn("", at, file, offset)
		f.Position.Server = server
		return f
	}
	for name, c := range map[string]struct {
		of   SnapshotFacts
		want float64 // minute it is brought to, 0 for none
		good bool    // a beginning for what comes
	}{
		"of the first":                          {taken(3, "db", "000009", 300), 30, true},
		"of the first, whose server is unknown": {taken(3, "", "000009", 300), 30, true},
		"at the place":                          {taken(9.5, "db", "000009", 950), 30, true},
		"of what the first alone had":           {taken(9.9, "db", "000009", 990), 10, false},
		"of the second":                         {taken(12, "db~2", "000004", 100), 30, true},
		"of the second, behind the place":       {taken(20, "db~2", "000004", 900), 30, true},
		"of the first server's later time":      {taken(22, "db", "000010", 100), 30, true},
		"of the wrong server":                   {taken(12, "db", "000004", 100), 0, false},
		"between two runs":                      {taken(10.5, "db", "000009", 1000), 0, false},
	} {
		_, to, ok := l.Moments(c.of)
		if ok != (c.want > 0) || ok && !to.Equal(minute(c.want)) {
			t.Errorf("%s: to %v, %v", name, to, ok)
		}
		if got := l.Holds(c.of, minute(40)); got != c.good {
			t.Errorf("%s: holds %v", name, got)
		}
	}
	order := []SnapshotFacts{taken(3, "db", "000009", 300), taken(12, "db~2", "000004", 100), taken(22, "db", "000010", 100)}
	for n := range order[1:] {
		if !l.SurelyFollows(order[n+1], order[n]) || l.SurelyFollows(order[n], order[n+1]) {
			t.Errorf("%d does not follow %d", n+1, n)
		}
	}
	r := InstanceReport{Host: "a", LogBegan: three.Began, LogSince: three.First.At, LogFrom: three.First.Position,
		LogContinues: &LogContinues{Began: two.Began, After: three.After, Before: []LogRun{one, two}}}
	if told := r.Log(); !told.Holds(taken(3, "db", "000009", 300), minute(40)) || told.Holds(taken(9.9, "db", "000009", 990), minute(40)) {
		t.Errorf("as a host reports it: %+v", told)
	}
	// Parts that are lost hold nothing together.
	l.Runs[0].Last = LogMark{At: minute(5), Position: LogPosition{File: "000009", Offset: 500}}
	if _, to, _ := l.Moments(taken(3, "db", "000009", 300)); !to.Equal(minute(5)) {
		t.Errorf("its end is lost, and it is brought to %v", to)
	}
}

// TestChainOverHosts: what is on another host counts as far as it is in the repository that
// both read, and only where the run says that it goes on from there.
func TestChainOverHosts(t *testing.T) {
	pushed := func(r LogRun, n float64) LogRun {
		r.Pushed = LogMark{At: minute(n), Position: LogPosition{Server: r.First.Position.Server, File: r.First.Position.File, Offset: int64((n - r.First.At.Sub(joinNoon).Minutes()) * 100)}}
		return r
	}
	one := by(stretch(0, 10, "000009", "another host writes"), "db")
	two := goesOn(stretch(11, 20, "000004", "another host writes"), one, "db~2", 900)
	two.Elsewhere = true
	three := goesOn(stretch(21, 30, "000010", ""), two, "db", 850)
	three.Elsewhere = true
	join := func(second, third LogRun) InstanceLog {
		l, _ := JoinLogs([]InstanceLog{told("a", 0, one, third), told("b", 0, second)})
		return l
	}
	of := takenOn("a", 3, "000009", 300)
	own := three
	for name, c := range map[string]struct {
		l    InstanceLog
		want float64
	}{
		"all is there":                   {join(pushed(two, 20), own), 30},
		"the place is not pushed yet":    {join(pushed(two, 19), own), 19},
		"nothing is pushed yet":          {join(two, own), 10},
		"it says nothing of the place":   {join(pushed(by(stretch(11, 20, "000004", ""), "db~2"), 20), own), 10},
		"it goes on from one of its own": {join(pushed(goesOn(stretch(11, 20, "000004", ""), one, "db~2", 900), 20), own), 10},
	} {
		if _, to, ok := c.l.Moments(of); !ok || !to.Equal(minute(c.want)) {
			t.Errorf("%s: to %v, %v: %+v", name, to, ok, c.l)
		}
	}
	// The other host's snapshot is brought on by that host's run alone, as far as it is there.
	if _, to, ok := join(pushed(two, 20), pushed(own, 25)).Moments(func() SnapshotFacts { f := takenOn("b", 12, "000004", 100); return f }()); !ok || !to.Equal(minute(25)) {
		t.Errorf("of the other host: to %v, %v", to, ok)
	}
}

// TestWindow: what an older snapshot is brought to counts where the newer one's run is not gone
// on from; within one run the newer one tells.
func TestWindow(t *testing.T) {
	one := by(stretch(0, 10, "000009", WrittenElsewhere), "db")
	other := by(stretch(11, 20, "000004", WrittenElsewhere), "db~2")
	back := goesOn(stretch(21, 30, "000010", ""), one, "db", 900)
	l, _ := JoinLogs([]InstanceLog{told("a", 0, one, back), told("b", 0, other)})
	old, newer := takenOn("a", 3, "000009", 300), takenOn("b", 12, "000004", 100)
	if from, to := l.Window([]SnapshotFacts{newer, old}); !from.Equal(minute(3)) || !to.Equal(minute(30)) {
		t.Errorf("from %v to %v", from, to)
	}
	if from, to := l.Window([]SnapshotFacts{newer}); !from.Equal(minute(12)) || !to.Equal(minute(20)) {
		t.Errorf("the newer one alone: from %v to %v", from, to)
	}
	// The clock went back by an hour: what was before has the later times.
	again := stretch(-50, -40, "000012", "")
	again.Began = minute(31) // names of runs never go back
	l = InstanceLog{Runs: []LogRun{stretch(0, 10, "000009", "the clock went back"), again}}
	if _, to := l.Window([]SnapshotFacts{takenOn("", 3, "000009", 300), takenOn("", -45, "000012", 500)}); !to.Equal(minute(-40)) {
		t.Errorf("after a clock that went back: to %v", to)
	}
}
