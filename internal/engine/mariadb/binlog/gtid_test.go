package binlog

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"kurabe/internal/engine"
)

func TestParseGTIDs(t *testing.T) {
	for text, want := range map[string][]GTID{
		"":                      nil,
		"0-1-5":                 {{0, 1, 5}},
		"0-1-5,0-2-9":           {{0, 1, 5}, {0, 2, 9}},
		"0-4294967295-5, 3-1-7": {{0, 4294967295, 5}, {3, 1, 7}},
	} {
		if got, err := ParseGTIDs(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"0-1", "0-1-x", "a-1-1", "0-1-1-1", "0-4294967296-1", "0-1--1", "0-1-9223372036854775808"} {
		if got, err := ParseGTIDs(text); err == nil {
			t.Errorf("%q became %v", text, got)
		}
	}
}

func TestSequence(t *testing.T) {
	for text, want := range map[string]int64{"": 0, "0-1-5,0-2-9": 9, "0-2-9,0-1-5": 9, "7-1-100,0-1-5": 5, "7-1-100": 0} {
		if got, err := Sequence(text); err != nil || got != want {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
}

func TestHistory(t *testing.T) {
	for name, c := range map[string]struct {
		state, applied string
		own            GTID
		has            bool
	}{
		"it is the source's newest":                        {"0-1-5", "", GTID{0, 1, 5}, true},
		"the source went on":                               {"0-1-5,0-2-9", "", GTID{0, 1, 4}, true},
		"it wrote one that nobody has":                     {"0-1-5,0-2-9", "", GTID{0, 1, 6}, false},
		"a number that the source gave to another":         {"0-1-5,0-2-6", "", GTID{0, 1, 6}, false},
		"the source's log began with a copy that has it":   {"0-2-6", "0-1-5", GTID{0, 1, 5}, true},
		"the source's log began with a copy, and lacks it": {"0-2-6", "0-1-4", GTID{0, 1, 5}, false},
		"the source knows nothing":                         {"", "", GTID{0, 1, 1}, false},
		"another domain":                                   {"1-1-9", "", GTID{0, 1, 5}, false},
	} {
		h, err := ParseHistory(c.state, c.applied)
		if err != nil || h.has(c.own) != c.has {
			t.Errorf("%s: %v, %v", name, !c.has, err)
		}
		if errors.Is(h.Refuse(c.own), engine.ErrRebuild) == c.has {
			t.Errorf("%s: %v", name, h.Refuse(c.own))
		}
	}
}

// list adds what a file begins with.
func (l *logText) list(ids ...GTID) {
	body := binary.LittleEndian.AppendUint32(nil, uint32(len(ids))|1<<28)
	for _, id := range ids {
		body = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(body, id.domain), id.Server), id.Seq)
	}
	l.add(GTIDListEvent, 0, body)
}

func TestLastLogged(t *testing.T) {
	began := func(ids ...GTID) *logText {
		l := newLogText(true)
		l.list(ids...)
		return l
	}
	with := func(l *logText, seqs ...uint64) *logText {
		for _, seq := range seqs {
			l.transaction(seq, 0)
		}
		return l
	}
	torn := with(began(GTID{0, 9, 3}), 4)
	torn.gtid(5, 0, 0)
	torn.statement("INSERT")
	for name, c := range map[string]struct {
		files []*logText
		want  GTID
		found bool
	}{
		"the newest in the newest file":   {[]*logText{with(began(), 1, 2), with(began(GTID{0, 9, 2}), 3, 4)}, GTID{0, 9, 4}, true},
		"one that began with a list only": {[]*logText{with(began(), 1, 2), began(GTID{0, 9, 2})}, GTID{0, 9, 2}, true},
		"half a transaction is none":      {[]*logText{torn}, GTID{0, 9, 4}, true},
		"the server died at a new file":   {[]*logText{with(began(), 1), {}}, GTID{0, 9, 1}, true},
		"of other writers":                {[]*logText{began(GTID{0, 7, 8}, GTID{0, 9, 6})}, GTID{0, 7, 8}, true},
		"nothing was ever written":        {[]*logText{began()}, GTID{}, false},
		"there is no log":                 {nil, GTID{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for n, l := range c.files {
				if err := os.WriteFile(filepath.Join(dir, FileName(int64(n+1))), l.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, found, err := LastLogged(dir)
			if err != nil || found != c.found || got != c.want {
				t.Errorf("%v %v, %v", got, found, err)
			}
		})
	}
}

func TestListOfTransactionsCutShort(t *testing.T) {
	for _, body := range [][]byte{nil, {1, 0, 0, 0}, append([]byte{2, 0, 0, 0}, make([]byte, 31)...)} {
		if list, err := (Event{Kind: GTIDListEvent, body: body}).gtidList(); err == nil {
			t.Errorf("%v became %v", body, list)
		}
	}
}

func TestLacks(t *testing.T) {
	for _, c := range []struct {
		name, state, applied, own string
		want                      int64
		known                     bool
	}{
		{"it has all", "0-1-90,0-2-105", "0-1-90", "0-1-90", 0, true},
		{"a tail of the first writer", "0-1-90,0-2-105", "0-1-90", "0-1-93", 3, true},
		{"a tail after a change and back", "0-1-100,0-2-150,0-2-170", "", "0-1-160,0-2-150", 10, true},
		{"the source is new and has nothing of it in its log", "0-2-105", "0-1-90", "0-1-93", 3, true},
		{"the source wrote before, too", "0-2-120,0-1-90", "", "0-1-95,0-2-80", 5, true},
		{"another domain says nothing", "0-1-90,7-1-500", "", "0-1-91,7-1-400", 1, true},
		{"nothing in common", "0-2-105", "", "0-1-93", 0, false},
		{"no log", "0-1-90", "", "", 0, false},
	} {
		h, err := ParseHistory(c.state, c.applied)
		own, ownErr := ParseGTIDs(c.own)
		if err != nil || ownErr != nil {
			t.Fatal(err, ownErr)
		}
		if got, known := h.Lacks(own); got != c.want || known != c.known {
			t.Errorf("%s: %d, %v; want %d, %v", c.name, got, known, c.want, c.known)
		}
	}
}
