package top

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kurabe"
)

var update = flag.Bool("update", false, "write the golden files")

func locked() picture {
	lock, cpu := make([]float64, 300), make([]float64, 300)
	for n := range lock {
		cpu[n] = float64(n%60) / 60
		if n > 200 {
			lock[n] = 3
		}
	}
	blocked := "UPDATE 品 SET n = n + ?\n\x1b[2J WHERE id = ?"
	return picture{
		name: "shop", engine: "postgres 15.18", class: "db.t3.small", status: "available", cpus: 2, iopsMax: 3000, kept: true, by: "statement",
		metrics: map[string]float64{"CPUUtilization": 41.6, "ReadIOPS": 10, "WriteIOPS": 390, "WriteThroughput": 3 << 19},
		sampled: 60,
		waits:   []wait{{"Lock:transactionid", lock}, {"CPU", cpu}},
		rows: []row{
			{name: blocked, load: 3, parts: []partOf{{"Lock:transactionid", 3}}, counted: true, calls: 0.4, latency: 7512.25},
			{name: "SELECT count(*) FROM orders", load: 0.5, parts: []partOf{{"CPU", 0.4}, {"IO:DataFileRead", 0.1}}},
			{load: 0.01},
		},
		sessions: []kurabe.ActiveSession{
			{ID: 812, User: "report", WaitType: "CPU", Wait: "CPU", Statement: "SELECT count(*) FROM orders", Seconds: 900},
			{ID: 4001, User: "app", WaitType: "Lock", Wait: "transactionid", Statement: blocked, Seconds: 31, Blocker: 77, BlockerUser: "job", BlockerStatement: "DELETE FROM 品 WHERE id = ?"},
			{ID: 4002, User: "app", WaitType: "Lock", Wait: "tuple", Statement: blocked, Seconds: 4, Blocker: 4001, BlockerUser: "app", BlockerStatement: blocked},
		},
	}
}

// The pictures are those of the golden files, at every size within the terminal.
func TestRender(t *testing.T) {
	off := picture{name: "shop", engine: "mariadb 11.4", class: "db.local.micro", status: "available"}
	for _, c := range []struct {
		name           string
		p              picture
		columns, lines int
		colour         bool
	}{
		{"wide", locked(), 160, 60, false}, {"usual", locked(), 80, 24, false}, {"small", locked(), 40, 12, false},
		{"colour", locked(), 80, 24, true}, {"off", off, 160, 60, false},
	} {
		got := c.p.render(c.columns, c.lines, "1 s old", c.colour)
		path := filepath.Join("testdata", c.name+".txt")
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil || got != string(want) {
			t.Errorf("%s, %v:\n%s", c.name, err, got)
		}
		if n := strings.Count(got, "\n"); n > c.lines {
			t.Errorf("%s has %d lines", c.name, n)
		}
	}
}

func TestFit(t *testing.T) {
	for _, c := range []struct {
		text    string
		columns int
		want    string
	}{
		{"abc", 5, "abc  "}, {"abc", 2, "ab"}, {"日本語", 5, "日本 "}, {"e\u0301x", 2, "e\u0301x"}, {"a\x1b[2J\n", 6, "a [2J "}, {"a", 0, ""},
	} {
		if got := fit(c.text, c.columns); got != c.want {
			t.Error(fmt.Sprintf("%q in %d columns:", c.text, c.columns), fmt.Sprintf("%q", got))
		}
	}
}

// A terminal of any size is survived.
func TestRenderAnySize(t *testing.T) {
	for columns := range 30 {
		for lines := range 30 {
			if n := strings.Count(locked().render(columns, lines, "", false), "\n"); n > max(lines, 1) {
				t.Fatal(columns, lines, n)
			}
		}
	}
}
