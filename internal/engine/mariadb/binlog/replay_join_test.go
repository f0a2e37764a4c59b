package binlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/engine"
)

// firstServer wrote first, and secondServer when it had taken over.
const (
	firstServer, secondServer = 9, 4
	testFile                  = 400 // the second server's first one
)

// logOf is a file of a server's that begins with a list of one transaction.
func logOf(first GTID) *logText {
	l := newLogText(false)
	l.list(first)
	return l
}

// wrote adds transactions; the times of their beginnings are their numbers and a thousand.
func (l *logText) wrote(server uint32, seqs ...uint64) *logText {
	for _, seq := range seqs {
		l.by = server
		l.transaction(seq, uint32(1000+seq))
	}
	return l
}

// joinedCase is the logs of several servers, and what is to be applied.
type joinedCase struct {
	parts [][]*logText // the first one's files are numbered from 1, the second one's from testFile
	from  int          // so many transactions of the first file are in the snapshot
	at    uint64       // moment, as a transaction's time; 0: the mark itself
	want  string
	bad   string
}

func firstWrote(seqs ...uint64) *logText {
	return logOf(GTID{0, firstServer, 4}).wrote(firstServer, seqs...)
}

var joinedCases = map[string]joinedCase{
	"with what both have": {parts: [][]*logText{{firstWrote(5, 6, 7)}, {logOf(GTID{0, firstServer, 5}).wrote(firstServer, 6, 7).wrote(secondServer, 8, 9)}},
		want: "9-6 9-7 4-8 4-9"},
	"what the first one alone had is left out": {parts: [][]*logText{{firstWrote(5, 6, 7, 8, 9)}, {logOf(GTID{0, firstServer, 5}).wrote(firstServer, 6, 7).wrote(secondServer, 8)}},
		want: "9-6 9-7 4-8"},
	"it begins at the very place": {parts: [][]*logText{{firstWrote(5, 6, 7)}, {logOf(GTID{0, firstServer, 7}).wrote(secondServer, 8, 9)}},
		want: "9-6 9-7 4-8 4-9"},
	"it begins at the very place, and the first one had more": {parts: [][]*logText{{firstWrote(5, 6, 7, 8)}, {logOf(GTID{0, firstServer, 7}).wrote(secondServer, 8, 9)}},
		want: "9-6 9-7 4-8 4-9"},
	"it begins before the snapshot": {parts: [][]*logText{{firstWrote(5, 6, 7, 8)}, {logOf(GTID{0, firstServer, 3}).wrote(firstServer, 4, 5, 6, 7, 8).wrote(secondServer, 9)}}, from: 3,
		want: "9-8 4-9"},
	"nothing was written since": {parts: [][]*logText{{firstWrote(5, 6, 7, 8)}, {logOf(GTID{0, firstServer, 5}).wrote(firstServer, 6, 7)}},
		want: "9-6 9-7"},
	"nothing was written since, and nothing is in its file": {parts: [][]*logText{{firstWrote(5, 6, 7, 8)}, {logOf(GTID{0, firstServer, 6})}},
		want: "9-6"},
	"a whole file is of what both have": {parts: [][]*logText{{firstWrote(5, 6, 7)}, {ended(logOf(GTID{0, firstServer, 5}).wrote(firstServer, 6)), logOf(GTID{0, firstServer, 6}).wrote(firstServer, 7).wrote(secondServer, 8)}},
		want: "9-6 9-7 4-8"},
	"its new files follow": {parts: [][]*logText{{ended(firstWrote(5, 6)), logOf(GTID{0, firstServer, 6}).wrote(firstServer, 7)}, {ended(logOf(GTID{0, firstServer, 6}).wrote(firstServer, 7).wrote(secondServer, 8)), logOf(GTID{0, secondServer, 8}).wrote(secondServer, 9)}},
		want: "9-6 9-7 4-8 4-9"},
	"the moment is before the change": {parts: [][]*logText{{firstWrote(5, 6, 7, 8)}, {logOf(GTID{0, firstServer, 5}).wrote(firstServer, 6, 7).wrote(secondServer, 8, 9)}}, at: 8,
		want: "9-6 9-7"},
	"the moment is after the change": {parts: [][]*logText{{firstWrote(5, 6, 7, 8)}, {logOf(GTID{0, firstServer, 5}).wrote(firstServer, 6, 7).wrote(secondServer, 8, 9)}}, at: 9,
		want: "9-6 9-7 4-8"},
	"the first one ends within a transaction": {parts: [][]*logText{{half(firstWrote(5, 6), 7)}, {logOf(GTID{0, firstServer, 5}).wrote(firstServer, 6, 7).wrote(secondServer, 8)}},
		want: "9-6 9-7 4-8"},
	"and back": {parts: [][]*logText{{firstWrote(5, 6, 7)}, {logOf(GTID{0, firstServer, 6}).wrote(firstServer, 7).wrote(secondServer, 8, 9, 10)}, {logOf(GTID{0, secondServer, 8}).wrote(secondServer, 9).wrote(firstServer, 10, 11)}},
		want: "9-6 9-7 4-8 4-9 9-10 9-11"},
	"and back before the second one had written anything that lasts": {parts: [][]*logText{{firstWrote(5, 6, 7, 8)}, {logOf(GTID{0, firstServer, 6}).wrote(firstServer, 7).wrote(secondServer, 8)}, {logOf(GTID{0, firstServer, 5}).wrote(firstServer, 6, 7, 8)}},
		want: "9-6 9-7 9-8"},
	"it left a number out when it took over": {parts: [][]*logText{{firstWrote(5, 6, 7)}, {logOf(GTID{0, firstServer, 5}).wrote(firstServer, 6, 7).wrote(secondServer, 9, 10)}},
		want: "9-6 9-7 4-9 4-10"},
	"what it was sent changed nothing": {parts: [][]*logText{{firstWrote(5, 6, 7, 8)}, {logOf(GTID{0, firstServer, 5}).wrote(firstServer, 6, 8).wrote(secondServer, 9)}},
		want: "9-6 9-7 9-8 4-9"},
	"the last that it was sent changed nothing": {parts: [][]*logText{{firstWrote(5, 6, 7)}, {logOf(GTID{0, firstServer, 5}).wrote(firstServer, 6).wrote(secondServer, 8)}},
		want: "9-6 4-8"},
	"what came later changed nothing there": {parts: [][]*logText{{firstWrote(5, 6)}, {logOf(GTID{0, firstServer, 5}).wrote(firstServer, 6, 8).wrote(secondServer, 9)}},
		want: "9-6 9-8 4-9"},
	"some are missing in between": {parts: [][]*logText{{firstWrote(5, 6, 7)}, {logOf(GTID{0, firstServer, 8}).wrote(secondServer, 9)}},
		bad: "does not have"},
	"it is another history": {parts: [][]*logText{{firstWrote(5, 6, 7)}, {logOf(GTID{0, secondServer, 7}).wrote(secondServer, 8)}},
		bad: "does not have"},
	"the snapshot is of what nobody else has": {parts: [][]*logText{{firstWrote(5, 6, 7, 8)}, {logOf(GTID{0, firstServer, 5}).wrote(firstServer, 6).wrote(secondServer, 7, 8)}}, from: 3,
		bad: "the one before it ends with transaction"},
	"some of its own are missing": {parts: [][]*logText{{firstWrote(5, 6, 7)}, {logOf(GTID{0, firstServer, 6}).wrote(firstServer, 7).wrote(secondServer, 8, 10)}},
		bad: "some are missing"},
}

// own notes whose file it is, in the event that describes the others.
func (l *logText) own(server uint32) {
	raw := l.Bytes()[len(Magic):]
	length := binary.LittleEndian.Uint32(raw[9:])
	binary.LittleEndian.PutUint32(raw[5:], server)
	raw[flagsAt] &^= InUseFlag
	binary.LittleEndian.PutUint32(raw[length-checksumBytes:], crc32.ChecksumIEEE(raw[:length-checksumBytes]))
}

func ended(l *logText) *logText { l.end(); return l }

func half(l *logText, seq uint64) *logText {
	l.gtid(seq, uint32(1000+seq), 0)
	l.statement("INSERT")
	return l
}

// TestPlanJoined: each transaction is applied once, in the order of the history, and none that
// is no part of it.
func TestPlanJoined(t *testing.T) {
	for name, c := range joinedCases {
		t.Run(name, func(t *testing.T) {
			r := c.save(t)
			plan, err := PlanReplay(r)
			if c.bad != "" {
				if err == nil || !strings.Contains(err.Error(), c.bad) {
					t.Fatalf("%v, not %q: %+v", err, c.bad, plan)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := handed(t, r, plan)
			if got != c.want {
				t.Errorf("%s is applied, not %s: %+v", got, c.want, plan)
			}
			if words := strings.Fields(got); plan.Reached[0].String() != "0-"+words[len(words)-1] {
				t.Errorf("it ends with %s", plan.Reached[0])
			}
		})
	}
}

// save writes the files as they are fetched.
func (c joinedCase) save(t *testing.T) engine.ReplayRequest {
	t.Helper()
	r := engine.ReplayRequest{Dir: t.TempDir()}
	for n, files := range c.parts {
		dir, number := r.Dir, int64(1)
		if n > 0 {
			dir, number = t.TempDir(), testFile+int64(n)
			r.Joined = append(r.Joined, dir)
		}
		for k, l := range files {
			name := FileName(number + int64(k))
			l.own([]uint32{firstServer, secondServer, firstServer}[n])
			if err := os.WriteFile(filepath.Join(dir, name), l.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			r.After.Position = kurabe.LogPosition{File: name, Offset: int64(l.Len())}
		}
	}
	snapshot := firstWrote(5, 6, 7, 8)
	snapshot.Truncate(firstWrote([]uint64{5, 6, 7, 8}[:max(c.from, 1)]...).Len())
	r.From = kurabe.LogPosition{File: FileName(1), Offset: int64(snapshot.Len())}
	r.At = time.Unix(1000+int64(c.at), 0)
	r.After.At, r.After.Until = time.Unix(2000, 0), time.Unix(2000, 0)
	if c.at == 0 {
		r.At = r.After.At
	}
	return r
}

// handed are the transactions in what the server is given.
func handed(t *testing.T, r engine.ReplayRequest, plan ReplayPlan) string {
	t.Helper()
	dir := t.TempDir()
	var got []string
	for n, f := range plan.Files {
		path := filepath.Join(dir, fmt.Sprint(n))
		if err := f.HandTo(path); err != nil {
			t.Fatal(err)
		}
		text, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		info, err := text.Stat()
		if err != nil {
			t.Fatal(err)
		}
		if end := f.Place(plan.Stop.Offset); n == len(plan.Files)-1 && info.Size() != end {
			t.Errorf("the last file has %d bytes, and ends at %d", info.Size(), end)
		}
		got = append(got, groupsOf(t, text, info.Size(), n == 0, r.From.Offset)...)
		_ = text.Close()
	}
	return strings.Join(got, " ")
}

// groupsOf reads a file as a replica's thread does, which minds the places of events only in
// its own files.
func groupsOf(t *testing.T, text io.ReaderAt, size int64, isFirst bool, from int64) (ids []string) {
	t.Helper()
	var groups Grouper
	at := int64(len(Magic))
	if isFirst {
		at = max(at, from)
	}
	for at < size {
		head := make([]byte, headerBytes)
		if _, err := text.ReadAt(head, at); err != nil {
			t.Fatal(err)
		}
		length := int64(uint32(head[9]) | uint32(head[10])<<8 | uint32(head[11])<<16 | uint32(head[12])<<24)
		raw := make([]byte, length)
		if _, err := text.ReadAt(raw, at); err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		e := Event{At: at, end: at + length, Kind: raw[4], server: uint32(raw[5]), body: raw[headerBytes : length-checksumBytes]}
		if g, whole := groups.Add(e); whole {
			ids = append(ids, fmt.Sprintf("%d-%d", g.gtid.Server, g.gtid.Seq))
		}
		at += length
	}
	if groups.open {
		t.Error("a file ends within a transaction")
	}
	return ids
}
