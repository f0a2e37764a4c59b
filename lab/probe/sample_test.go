package probe

import (
	"maps"
	"slices"
	"testing"
	"time"
)

func TestPostgresMoment(t *testing.T) {
	m := postgresMoment([][]string{
		{"1", "checkpointer", "Activity", "CheckpointerMain", "", ""},
		{"2", "client backend", "", "", "active", ""},
		{"3", "client backend", "Lock", "transactionid", "active", ""},
		{"4", "client backend", "IO", "WALSync", "active", ""},
		{"5", "client backend", "Client", "ClientRead", "idle in transaction", ""},
		{"6", "client backend", "", "", "disabled", ""},
		{"7", "autovacuum worker", "", "", "active", "autovacuum: VACUUM ANALYZE public.t"},
		{"8", "short"},
	})
	if want := []string{"CPU", "Lock:transactionid", "IO:WALSync", "idle in transaction"}; !slices.Equal(m.waits, want) {
		t.Errorf("waits %q", m.waits)
	}
	if !m.checkpoints || m.checkpointing || !maps.Equal(m.locked, map[string]bool{"3": true}) || m.vacuums["7"] == "" {
		t.Errorf("%+v", m)
	}
	if busy := postgresMoment([][]string{{"1", "checkpointer", "IO", "DataFileSync", "", ""}}); !busy.checkpointing {
		t.Error("a checkpoint is not seen")
	}
	if hidden := postgresMoment(nil); hidden.checkpoints {
		t.Error("a checkpointer that is hidden is taken for one at rest")
	}
}

// The place of InnoDB's checkpoint says only by moving that there is one under way.
func TestInnodbCheckpoint(t *testing.T) {
	var c innodbCheckpoint
	told := func(value string) [][]string { return [][]string{{"Innodb_lsn_last_checkpoint", value}} }
	for n, step := range []struct {
		rows         [][]string
		known, moves bool
	}{
		{nil, false, false}, {told("100"), true, false}, {told("100"), true, false}, {told("170"), true, true}, {told("180"), true, true},
		{told("180"), true, false}, {told("no number"), false, false}, {told("190"), true, false},
	} {
		if c.read(step.rows); c.moving != step.moves || (c.position != "") != step.known {
			t.Errorf("step %d: %+v, want %+v", n, c, step)
		}
	}
}

func TestEdges(t *testing.T) {
	idle := moment{checkpoints: true}
	busy := moment{checkpoints: true, checkpointing: true}
	vacuum := moment{checkpoints: true, vacuums: map[string]string{"7": "autovacuum: VACUUM t"}}
	type event struct {
		kind, text string
		at         int
	}
	cases := map[string]struct {
		moments []moment
		want    []event
	}{
		"nothing":              {moments: []moment{idle, idle}},
		"a chore":              {moments: []moment{idle, busy, idle}},
		"a checkpoint":         {moments: []moment{idle, busy, busy, busy, idle}, want: []event{{KindCheckpoint, "begin", 1}, {KindCheckpoint, "end", 4}}},
		"two":                  {moments: []moment{busy, busy, idle, busy, busy}, want: []event{{KindCheckpoint, "begin", 0}, {KindCheckpoint, "end", 2}, {KindCheckpoint, "begin", 3}}},
		"one that is not seen": {moments: []moment{{}, {}, {}}},
		"an autovacuum":        {moments: []moment{idle, vacuum, vacuum, idle, vacuum}, want: []event{{KindAutovacuum, "autovacuum: VACUUM t", 1}, {KindAutovacuum, "autovacuum: VACUUM t", 4}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var e edges
			var got []event
			for n, m := range c.moments {
				for _, x := range e.see(time.Unix(int64(n), 0), m) {
					got = append(got, event{x.Kind, x.Text, int(x.At.Unix())})
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestLockCount(t *testing.T) {
	var c lockCount
	for _, seen := range []map[string]bool{{"a": true}, {"a": true, "b": true}, nil, {"a": true}} {
		c.see(seen)
	}
	if c.begun != 3 || c.seen != 4 {
		t.Errorf("%+v", c)
	}
}

func TestMySQLStatus(t *testing.T) {
	totals, gauges, err := mysqlStatus([][]string{
		{"Innodb_os_log_written", "512"}, {"Innodb_row_lock_time", "2500"}, {"Innodb_buffer_pool_reads", "10"}, {"Innodb_buffer_pool_read_requests", "110"},
		{"Innodb_history_list_length", "7"}, {"Uptime", "99"}, {"Binlog_bytes_written", ""},
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]float64{"wal_bytes": 512, "lock_wait_s": 2.5, "blocks_read": 10, "blocks_hit": 100}; !maps.Equal(totals, want) {
		t.Errorf("totals %v", totals)
	}
	if want := map[string]float64{"history_length_end": 7}; !maps.Equal(gauges, want) {
		t.Errorf("gauges %v", gauges)
	}
	if _, _, err := mysqlStatus([][]string{{"Innodb_data_fsyncs", "many"}}); err == nil {
		t.Error("no error")
	}
}

func TestMySQLMoment(t *testing.T) {
	m := mysqlMoment([][]string{
		{"1", "Updating", "LOCK WAIT"}, {"2", "Updating", "RUNNING"}, {"3", "Waiting for table metadata lock", ""}, {"4", "Commit", "RUNNING"}, {"5", "waiting for handler commit", ""},
		{"6", "Writing to net", ""}, {"7", "", ""}, {"8", "Sending data", "RUNNING"}, {"9", "Waiting for work", ""}, {"short"},
	})
	want := []string{
		"Lock:row", "Stage:Updating", "Lock:Waiting for table metadata lock", "Commit:Commit", "Commit:waiting for handler commit",
		"Client:Writing to net", "Stage:executing", "Stage:Sending data", "Stage:Waiting for work",
	}
	if !slices.Equal(m.waits, want) {
		t.Errorf("waits %q", m.waits)
	}
	// InnoDB counts the row's, so that it would count twice.
	if want := map[string]bool{"3": true}; !maps.Equal(m.locked, want) {
		t.Errorf("waits for locks that nobody counts: %v", m.locked)
	}
}

func TestDifference(t *testing.T) {
	totals, shrunk := difference(map[string]float64{"a": 1, "b": 5}, map[string]float64{"a": 3, "b": 2, "c": 9})
	if !maps.Equal(totals, map[string]float64{"a": 2}) || !slices.Equal(shrunk, []string{"b"}) {
		t.Errorf("%v, %v", totals, shrunk)
	}
}

func TestEveryNameOfAnEngineIsDescribed(t *testing.T) {
	for _, list := range []map[string]string{mysqlCounters, mysqlGauges} {
		for _, name := range list {
			if Names[name] == "" {
				t.Errorf("%s has no meaning", name)
			}
		}
	}
}
