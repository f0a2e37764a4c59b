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
