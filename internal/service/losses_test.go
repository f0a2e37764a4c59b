package service

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"kurabe"
)

// One incident is noted once for each instance, and a restart forgets none.
func TestLosses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lost.json")
	l := newLosses(path, slog.New(slog.DiscardHandler))
	l.note("metrics", "a block is damaged", "db-A", "db-B")
	l.note("metrics", "another one is", "db-A")
	l.note("database load", "a file is damaged", "db-A")
	for _, l := range []*losses{l, newLosses(path, slog.New(slog.DiscardHandler))} {
		if a := l.of("db-A"); len(a) != 2 || a[0].Reason != "a block is damaged" || a[1].What != "database load" || a[0].At.IsZero() {
			t.Errorf("%+v", a)
		}
		if b := l.of("db-B"); len(b) != 1 {
			t.Errorf("%+v", b)
		}
		if c := l.of("db-C"); c != nil {
			t.Errorf("%+v", c)
		}
	}
	if err := os.WriteFile(path, []byte("null"), 0o600); err != nil {
		t.Fatal(err)
	}
	newLosses(path, slog.New(slog.DiscardHandler)).note("metrics", "x", kurabe.InstanceID("db-A"))
}
