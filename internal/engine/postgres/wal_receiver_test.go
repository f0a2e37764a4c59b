package postgres

import "kurabe/internal/engine/postgres/wal"

import "testing"

func TestArrivals(t *testing.T) {
	var s arrivals
	s.note("db-1", "run 1", 100, 10)
	s.note("db-1", "run 1", 100, 20) // nothing came
	s.note("db-2", "run 1", 500, 30)
	for _, c := range []struct {
		process string
		end     wal.LSN
		want    int64
	}{{"run 1", 100, 10}, {"run 1", 90, 10}, {"run 1", 101, 0}, {"run 2", 100, 0}} {
		if at := s.by("db-1", c.process, c.end); at != c.want {
			t.Errorf("%s, up to %d: %d, want %d", c.process, c.end, at, c.want)
		}
	}
	s.note("db-1", "run 1", 101, 40)
	s.note("db-1", "run 1", 100, 50) // what it has lost may come again
	if at := s.by("db-1", "run 1", 100); at != 50 {
		t.Errorf("after it had less: %d", at)
	}
	if at := s.by("db-3", "", 0); at != 0 {
		t.Errorf("of one that was never looked at: %d", at)
	}
}
