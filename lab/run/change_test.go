package run

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"kurabe/lab/dial"
	"kurabe/lab/result"
	"kurabe/lab/study"
)

func TestChangeOfAnEngine(t *testing.T) {
	v := study.Variant{
		Change:  map[string][]string{study.Postgres: {"ALTER TABLE {table} ADD a int", "ALTER TABLE {table} DROP a"}},
		Changed: map[string][]string{"": {"SELECT count(*) FROM {table}"}},
	}
	w := study.Workload{Kit: study.KitWriters, Rows: 1000}
	c := newChange(study.Postgres, v, w, dial.Server{})
	if got := strings.Join(append(c.statements, c.changed...), "; "); got != "ALTER TABLE lab_writers_1000 ADD a int; ALTER TABLE lab_writers_1000 DROP a; SELECT count(*) FROM lab_writers_1000" {
		t.Error(got)
	}
	if newChange(study.MariaDB, v, w, dial.Server{}) != nil {
		t.Error("a change without statements for the engine")
	}
	if c := newChange(study.Postgres, v, study.Workload{Kit: "select-now"}, dial.Server{}); c.table != "" {
		t.Errorf("table %q of a load that has none", c.table)
	}
}

func TestSameShape(t *testing.T) {
	r := &runner{}
	for n, c := range []struct {
		change *change
		fails  bool
	}{
		{&change{table: "a", shape: "id integer"}, false}, {&change{table: "b", shape: "id bigint"}, false},
		{&change{table: "a", shape: "id integer"}, false}, {&change{table: "a", shape: "id bigint"}, true},
	} {
		if err := r.same(c.change); (err != nil) != c.fails {
			t.Errorf("change %d: %v", n+1, err)
		}
	}
}

// The option file is readable by us alone, and any password comes out of it as it was.
func TestOptionFile(t *testing.T) {
	f, err := optionFile(dial.Server{Host: "127.0.0.1", Port: 3306, User: "u", Password: `a"b\c#d'`, TLS: true})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	// As the tool does: by its name, from the beginning, more than once.
	for range 2 {
		again, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(again)
		again.Close()
		want := "[client]\nuser=\"u\"\npassword=\"a\\\"b\\\\c#d'\"\nhost=\"127.0.0.1\"\nport=3306\n"
		if err != nil || !strings.HasPrefix(string(text), want) {
			t.Errorf("%v: %s, want %s", err, text, want)
		}
	}
}

// What a tool says becomes steps, and the end of it is kept for an error.
func TestHear(t *testing.T) {
	c := &change{}
	said := c.hear(strings.NewReader("Creating new table...\nCreated new table lab._t_new OK.\n2026-11-22T05:00:00 Creating triggers...\n" +
		"2026-11-22T05:00:00 Copying approximately 24000 rows...\n" + strings.Repeat("x", toolSaidMax) + "\nthe end"))
	var steps []string
	for _, e := range c.events {
		if e.kind != result.EventStep {
			t.Errorf("%+v", e)
		}
		steps = append(steps, e.text)
	}
	if got := strings.Join(steps, ", "); got != "Creating new table, Creating triggers, Copying approximately" {
		t.Error(got)
	}
	if len(said) > toolSaidMax || !strings.HasSuffix(said, "\nthe end") {
		t.Errorf("kept %d bytes: %s", len(said), said[max(0, len(said)-20):])
	}
	// A line that is too long for us is no reason to stop listening.
	if said := c.hear(strings.NewReader(strings.Repeat("x", 2*toolLineMax) + "\nend")); said != "" {
		t.Errorf("%.40s", said)
	}
}

func TestEventsAreBounded(t *testing.T) {
	c := &change{}
	for range eventsMax + 5 {
		c.tell(result.EventStep, strings.Repeat("ä", textMax))
	}
	if len(c.events) != eventsMax || len(c.events[0].text) > textMax+len("…") {
		t.Errorf("%d events, %d bytes", len(c.events), len(c.events[0].text))
	}
}
