package replica

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/mariadbtest"
	"kurabe/internal/engine/mariadb/role"
)

// slaveRow is what a follower says that is well.
func slaveRow(changed map[string]string) map[string]string {
	row := map[string]string{
		"Master_Host": "127.66.0.7", "Master_User": role.MemberName(mariadbtest.Follower().Instance), "Master_Port": "3306", "Master_Log_File": "mysql-bin-changelog.000004",
		"Read_Master_Log_Pos": "700", "Relay_Log_File": "mysql-relay.000002", "Relay_Log_Pos": "900", "Relay_Master_Log_File": "mysql-bin-changelog.000003", "Exec_Master_Log_Pos": "600", "Slave_IO_Running": "Yes", "Slave_SQL_Running": "Yes",
		"Last_IO_Errno": "0", "Last_SQL_Errno": "0", "Using_Gtid": "Slave_Pos", "Gtid_IO_Pos": "0-1-17", "Seconds_Behind_Master": "0",
	}
	maps.Copy(row, changed)
	return row
}

func TestParseSlave(t *testing.T) {
	s, err := parseSlave(slaveRow(nil))
	if err != nil || !s.of(mariadbtest.Follower()) || s.received != 17 || s.sourceAt != 700 || s.relayAt != 900 || s.AppliedFile != "mysql-bin-changelog.000003" || s.AppliedAt != 600 || !s.applies || s.receives != "Yes" {
		t.Fatalf("%+v, %v", s, err)
	}
	for text, want := range map[string]time.Duration{"0": 0, "17": 17 * time.Second, "": engine.LagUnknown, "NULL": engine.LagUnknown} {
		if s, err := parseSlave(slaveRow(map[string]string{"Seconds_Behind_Master": text})); err != nil || s.lag != want {
			t.Errorf("%q seconds behind: %v, %v", text, s.lag, err)
		}
	}
	for name, changed := range map[string]map[string]string{
		"of another form": {"Slave_IO_Running": "Waiting for master"}, "without its own column": {"Using_Gtid": ""}, "no number": {"Last_IO_Errno": "none"},
		"no position": {"Gtid_IO_Pos": "mysql-bin.000001"}, "half": {"Slave_SQL_Running": "Connecting"},
	} {
		if s, err := parseSlave(slaveRow(changed)); err == nil {
			t.Errorf("%s: %+v", name, s)
		}
	}
	for name, changed := range map[string]map[string]string{
		"another host": {"Master_Host": "127.0.0.1"}, "another port": {"Master_Port": "1"}, "another account": {"Master_User": "root"}, "by places": {"Using_Gtid": "No"},
	} {
		if s, err := parseSlave(slaveRow(changed)); err != nil || s.of(mariadbtest.Follower()) {
			t.Errorf("%s: it is of the assignment; %v", name, err)
		}
	}
}

// The positions are those of 10.11.19's own columns.
func TestSlaveColumns(t *testing.T) {
	for name, at := range map[string]int{"Master_Host": 1, "Slave_IO_Running": 10, "Slave_SQL_Running": 11, "Seconds_Behind_Master": 32, "Last_IO_Errno": 34, "Using_Gtid": 42, "Gtid_IO_Pos": 43, "Slave_SQL_Running_State": 49} {
		if got := slices.Index(slaveColumns, name); got != at {
			t.Errorf("%s is column %d, not %d", name, got, at)
		}
	}
	if sorted := slices.Sorted(slices.Values(slaveColumns)); len(slices.Compact(sorted)) != len(slaveColumns) {
		t.Error("a column is there twice")
	}
}

func TestVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		changed map[string]string
		want    verdict
		says    string
	}{
		"all is well":           {nil, well, ""},
		"its source is away":    {map[string]string{"Slave_IO_Running": "Connecting", "Last_IO_Errno": "2003"}, well, ""},
		"it was stopped":        {map[string]string{"Slave_IO_Running": "No"}, well, ""},
		"the log is gone":       {map[string]string{"Slave_IO_Running": "No", "Last_IO_Errno": "1236", "Last_IO_Error": "Could not find GTID"}, hopeless, "Could not find GTID"},
		"the log was gone once": {map[string]string{"Last_IO_Errno": "1236"}, well, ""},
		"its disk was full":     {map[string]string{"Slave_IO_Running": "No", "Last_IO_Errno": "1595"}, startAgain, "IO_THREAD"},
		"a row that is not there": {map[string]string{"Slave_SQL_Running": "No", "Last_SQL_Errno": "1032", "Last_SQL_Error": "Can't find record. Query: 'secret'"},
			hopeless, "error 1032: Can't find record."},
		"a lock":                {map[string]string{"Slave_SQL_Running": "No", "Last_SQL_Errno": "1205"}, startAgain, "SQL_THREAD"},
		"a lock, and no source": {map[string]string{"Slave_SQL_Running": "No", "Last_SQL_Errno": "1205", "Slave_IO_Running": "No"}, hopeless, "neither"},
	} {
		s, err := parseSlave(slaveRow(c.changed))
		if err != nil {
			t.Fatal(err)
		}
		got, why := s.verdict()
		if got != c.want || !strings.Contains(why, c.says) || strings.Contains(why, "secret") {
			t.Errorf("%s: %d %q", name, got, why)
		}
	}
}

func TestBehind(t *testing.T) {
	log := logSizes{{"mysql-bin-changelog.000009", 100}, {"mysql-bin-changelog.000010", 50}, {"mysql-bin-changelog.1000000", 30}}
	for name, c := range map[string]struct {
		file string
		at   int64
		want int64
	}{
		"at the end":              {"mysql-bin-changelog.1000000", 30, 0},
		"in the newest":           {"mysql-bin-changelog.1000000", 10, 20},
		"files before":            {"mysql-bin-changelog.000010", 20, 60},
		"nothing received":        {"", 0, 180},
		"more than was there yet": {"mysql-bin-changelog.1000000", 90, 0},
	} {
		if got := log.behind(c.file, c.at); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestPeerView(t *testing.T) {
	began := time.Now()
	at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
	log := logSizes{{"mysql-bin-changelog.000001", behindMost + 1000}}
	answer := func(received, place int64) peerAnswer {
		return peerAnswer{received, "mysql-bin-changelog.000001", place, true}
	}
	check := func(name string, p *peer, now time.Time, before int64, waits bool, want engine.FollowerView) {
		t.Helper()
		if got := p.view(now, before, waits, log); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	p := newPeer(at(0))
	check("before its first answer nobody may wait for it", p, at(100), 5, false, engine.FollowerView{HeardAgo: 100 * time.Millisecond})
	check("one that is waited for is not given up before it could answer", p, at(100), 5, true, engine.FollowerView{Streaming: true, HeardAgo: 100 * time.Millisecond})
	p.answered(at(200), answer(3, 10))
	check("one that is far behind does not stream", p, at(300), 5, false, engine.FollowerView{Flushed: 3, HeardAgo: 100 * time.Millisecond})
	check("unless it is waited for", p, at(300), 5, true, engine.FollowerView{Streaming: true, Flushed: 3, HeardAgo: 100 * time.Millisecond})
	p.answered(at(900), answer(3, 10))
	check("it answers and gets no further", p, at(900), 5, true, engine.FollowerView{Streaming: true, Flushed: 3, HeardAgo: 700 * time.Millisecond})
	p.answered(at(1000), answer(3, 2000))
	check("it receives a large transaction", p, at(1000), 5, true, engine.FollowerView{Streaming: true, Flushed: 3})
	p.answered(at(1100), answer(5, 2000))
	check("it has all", p, at(1200), 5, false, engine.FollowerView{Streaming: true, Flushed: 5, HeardAgo: 100 * time.Millisecond})
	p.answered(at(5000), answer(5, 2000))
	check("and nothing more to get for long", p, at(5000), 5, true, engine.FollowerView{Streaming: true, Flushed: 5})
	check("it falls silent", p, at(7000), 5, true, engine.FollowerView{Streaming: true, Flushed: 5, HeardAgo: 2 * time.Second})
	p.answered(at(7100), peerAnswer{5, "mysql-bin-changelog.000001", 2000, false})
	check("it applies no more", p, at(7100), 5, true, engine.FollowerView{Flushed: 5})
}
