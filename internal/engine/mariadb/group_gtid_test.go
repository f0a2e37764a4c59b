package mariadb

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
	for text, want := range map[string][]gtid{
		"":                      nil,
		"0-1-5":                 {{0, 1, 5}},
		"0-1-5,0-2-9":           {{0, 1, 5}, {0, 2, 9}},
		"0-4294967295-5, 3-1-7": {{0, 4294967295, 5}, {3, 1, 7}},
	} {
		if got, err := parseGTIDs(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"0-1", "0-1-x", "a-1-1", "0-1-1-1", "0-4294967296-1", "0-1--1", "0-1-9223372036854775808"} {
		if got, err := parseGTIDs(text); err == nil {
			t.Errorf("%q became %v", text, got)
		}
	}
}

func TestSequence(t *testing.T) {
	for text, want := range map[string]int64{"": 0, "0-1-5,0-2-9": 9, "0-2-9,0-1-5": 9, "7-1-100,0-1-5": 5, "7-1-100": 0} {
		if got, err := sequence(text); err != nil || got != want {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
}

func TestHistory(t *testing.T) {
	for name, c := range map[string]struct {
		state, applied string
		own            gtid
		has            bool
	}{
		"it is the source's newest":                        {"0-1-5", "", gtid{0, 1, 5}, true},
		"the source went on":                               {"0-1-5,0-2-9", "", gtid{0, 1, 4}, true},
		"it wrote one that nobody has":                     {"0-1-5,0-2-9", "", gtid{0, 1, 6}, false},
		"a number that the source gave to another":         {"0-1-5,0-2-6", "", gtid{0, 1, 6}, false},
		"the source's log began with a copy that has it":   {"0-2-6", "0-1-5", gtid{0, 1, 5}, true},
		"the source's log began with a copy, and lacks it": {"0-2-6", "0-1-4", gtid{0, 1, 5}, false},
		"the source knows nothing":                         {"", "", gtid{0, 1, 1}, false},
		"another domain":                                   {"1-1-9", "", gtid{0, 1, 5}, false},
	} {
		h, err := parseHistory(c.state, c.applied)
		if err != nil || h.has(c.own) != c.has {
			t.Errorf("%s: %v, %v", name, !c.has, err)
		}
		if errors.Is(h.refuse(c.own), engine.ErrRebuild) == c.has {
			t.Errorf("%s: %v", name, h.refuse(c.own))
		}
	}
}

// list adds what a file begins with.
func (l *logText) list(ids ...gtid) {
	body := binary.LittleEndian.AppendUint32(nil, uint32(len(ids))|1<<28)
	for _, id := range ids {
		body = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(body, id.domain), id.server), id.seq)
	}
	l.add(gtidListEvent, 0, body)
}

func TestLastLogged(t *testing.T) {
	began := func(ids ...gtid) *logText {
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
	torn := with(began(gtid{0, 9, 3}), 4)
	torn.gtid(5, 0, 0)
	torn.statement("INSERT")
	for name, c := range map[string]struct {
		files []*logText
		want  gtid
		found bool
	}{
		"the newest in the newest file":   {[]*logText{with(began(), 1, 2), with(began(gtid{0, 9, 2}), 3, 4)}, gtid{0, 9, 4}, true},
		"one that began with a list only": {[]*logText{with(began(), 1, 2), began(gtid{0, 9, 2})}, gtid{0, 9, 2}, true},
		"half a transaction is none":      {[]*logText{torn}, gtid{0, 9, 4}, true},
		"the server died at a new file":   {[]*logText{with(began(), 1), {}}, gtid{0, 9, 1}, true},
		"of other writers":                {[]*logText{began(gtid{0, 7, 8}, gtid{0, 9, 6})}, gtid{0, 7, 8}, true},
		"nothing was ever written":        {[]*logText{began()}, gtid{}, false},
		"there is no log":                 {nil, gtid{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for n, l := range c.files {
				if err := os.WriteFile(filepath.Join(dir, binlogFile(int64(n+1))), l.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, found, err := lastLogged(dir)
			if err != nil || found != c.found || got != c.want {
				t.Errorf("%v %v, %v", got, found, err)
			}
		})
	}
}

func TestListOfTransactionsCutShort(t *testing.T) {
	for _, body := range [][]byte{nil, {1, 0, 0, 0}, append([]byte{2, 0, 0, 0}, make([]byte, 31)...)} {
		if list, err := (event{kind: gtidListEvent, body: body}).gtidList(); err == nil {
			t.Errorf("%v became %v", body, list)
		}
	}
}

func TestJudgeDeath(t *testing.T) {
	for words, rebuild := range map[string]bool{
		"Cannot truncate the binary log to file:mysql-bin-changelog.000002 pos:4711 as unsafe statement is found": true,
		"InnoDB: Database page corruption on disk":                                                                true,
		"Can't write (No space left on device)":                                                                   false,
		"Cannot allocate memory for the buffer pool":                                                              false,
	} {
		died := &serverDied{words}
		if errors.Is(judgeDeath(died, died), engine.ErrRebuild) != rebuild {
			t.Errorf("%s: %v", words, judgeDeath(died, died))
		}
	}
}
