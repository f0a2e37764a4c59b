package warden

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestGarbageChangesNothing(t *testing.T) {
	b := newBed(t)
	w := b.ensure(t)
	_, pids := b.start(t)
	end := extend(t, w, time.Second)
	for name, raw := range map[string]string{
		"no json":        "\x00\xff{",
		"no version":     `{"op":"disarm"}`,
		"other version":  `{"version":2,"op":"disarm"}`,
		"unknown field":  `{"version":1,"op":"disarm","force":true}`,
		"unknown op":     `{"version":1,"op":"kill"}`,
		"two":            `{"version":1,"op":"disarm"}{}`,
		"too much":       `{"version":1,"op":"disarm","until":1}`,
		"backwards":      `{"version":1,"op":"extend","until":1}`,
		"overflow":       `{"version":1,"op":"extend","until":99999999999999999999}`,
		"for ever":       `{"version":1,"op":"extend","until":9223372036854775807}`,
		"bad address":    `{"version":1,"op":"extend","until":9223372036854775807,"addresses":["x"]}`,
		"long":           `{"version":1,"op":"disarm"` + strings.Repeat(" ", messageBytesMax) + `}`,
		"relative paths": `{"version":1,"op":"succeed","config":{"dir":"x"}}`,
	} {
		conn, err := dial(b.config)
		if err != nil {
			t.Fatal(err)
		}
		a, err := exchange(conn, []byte(raw))
		if err != nil || a.Code == "" {
			t.Errorf("%s: answer %+v, %v", name, a, err)
		}
		conn.Close()
	}
	if got, err := w.Until(deadline(t)); got != end || err != nil || !w.process.Alive() {
		t.Fatalf("lease until %d, want %d, %v", got, end, err)
	}
	killed(t, pids, end)
}

// Nobody keeps the agent out by connections that say nothing.
func TestSilentConnections(t *testing.T) {
	b := newBed(t)
	w := b.ensure(t)
	for range connectionsMax - 1 {
		conn, err := dial(b.config)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	extend(t, w, time.Minute)
	if err := w.Disarm(deadline(t)); err != nil {
		t.Error(err)
	}
}

func TestSocketIsOurs(t *testing.T) {
	b := newBed(t)
	b.ensure(t)
	for _, name := range []string{socketName, lockName, recordName} {
		info, err := os.Stat(b.config.file(name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
}

// A socket's address has 107 bytes, a path more.
func TestLongPath(t *testing.T) {
	b := newBed(t)
	b.config.Dir = filepath.Join(b.dir, strings.Repeat("long/", 40))
	if err := os.MkdirAll(b.config.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := b.ensure(t).Disarm(deadline(t)); err != nil {
		t.Error(err)
	}
}

// A warden that was killed leaves its socket behind, and the next one takes its place.
func TestWardenKilled(t *testing.T) {
	b := newBed(t)
	w := b.ensure(t)
	extend(t, w, time.Minute)
	if err := syscall.Kill(w.process.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	ended(t, w)
	if w.process.Alive() {
		t.Error("alive")
	}
	next := b.ensure(t)
	if got, err := next.Until(deadline(t)); got != 0 || err != nil || next.process.PID == w.process.PID {
		t.Errorf("the next one has a lease until %d, %v", got, err)
	}
}

func FuzzParseRequest(f *testing.F) {
	for _, seed := range []string{
		`{"version":1,"op":"hello"}`, `{"version":1,"op":"extend","until":5,"addresses":["10.0.0.1","fd00::1"]}`,
		`{"version":7,"op":"succeed","config":{"dir":"/a","record_file":"/b","lock_file":"/c","data_dir":"/d"}}`, `{}`, `[]`, "\x00",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := parseRequest(raw)
		if err != nil {
			return
		}
		if r.Version != protocol && r.Op != opHello && r.Op != opSucceed {
			t.Fatalf("version %d was understood: %q", r.Version, raw)
		}
		if (r.Op == opExtend) != (r.Until > 0) || (r.Op == opSucceed) != (r.Config != nil) {
			t.Fatalf("%q: %+v", raw, r)
		}
		// What was understood is said the same way again.
		again, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		twice, err := parseRequest(again)
		if err != nil {
			t.Fatalf("%q became %q: %v", raw, again, err)
		}
		if thrice, _ := json.Marshal(twice); !bytes.Equal(again, thrice) {
			t.Fatalf("%q became %q", again, thrice)
		}
	})
}
