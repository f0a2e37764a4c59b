package binlog

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/engine"
)

// logText makes a binary log.
type logText struct {
	bytes.Buffer
	by uint32 // the server that writes, 9 unless it is said
}

func newLogText(started bool) *logText {
	l := &logText{}
	l.WriteString(Magic)
	body := make([]byte, formatTypesAt-headerBytes+3)
	binary.LittleEndian.PutUint16(body, 4)
	if started {
		body[formatCreatedAt-headerBytes] = 1
	}
	body[formatTypesAt-headerBytes-1] = headerBytes
	body[len(body)-1] = checksumCRC32
	l.add(formatEvent, 0, body)
	return l
}

func (l *logText) add(kind byte, seconds uint32, body []byte) {
	raw := make([]byte, headerBytes, headerBytes+len(body)+checksumBytes)
	length := uint32(headerBytes + len(body) + checksumBytes)
	binary.LittleEndian.PutUint32(raw, seconds)
	raw[4] = kind
	binary.LittleEndian.PutUint32(raw[5:], cmp.Or(l.by, 9))
	binary.LittleEndian.PutUint32(raw[9:], length)
	binary.LittleEndian.PutUint32(raw[13:], uint32(l.Len())+length)
	raw = append(raw, body...)
	sum := crc32.ChecksumIEEE(raw)
	if kind == formatEvent {
		raw[flagsAt] |= InUseFlag
	}
	l.Write(binary.LittleEndian.AppendUint32(raw, sum))
}

func (l *logText) gtid(seq uint64, seconds uint32, flags byte) {
	body := make([]byte, 19)
	binary.LittleEndian.PutUint64(body, seq)
	body[gtidFlagsAt] = flags
	l.add(GTIDEvent, seconds, body)
}

func (l *logText) statement(text string) {
	l.add(queryEvent, 0, append(make([]byte, queryPostHeaderBytes+1), text...))
}

// transaction adds a group and returns where it ends.
func (l *logText) transaction(seq uint64, seconds uint32) int64 {
	l.gtid(seq, seconds, 0)
	l.statement("INSERT")
	l.add(XIDEvent, seconds, make([]byte, 8))
	return int64(l.Len())
}

func (l *logText) end() { l.add(rotateEvent, 0, append(make([]byte, 8), FileName(2)...)) }

// madeLogs are two files.
type madeLogs struct {
	one, two         *logText
	from, mid, after int64 // ends of the snapshot's, the first and the last group
}

// makeLogs makes two files, with a crash between them or without.
func makeLogs(torn bool) madeLogs {

	m := madeLogs{one: newLogText(true)}
	m.from = m.one.transaction(5, 1001)
	m.mid = m.one.transaction(6, 1002)
	if torn {
		m.one.gtid(7, 1003, 0)
		m.one.statement("INSERT")
	} else {
		m.one.end()
	}
	m.two = newLogText(torn)
	if !torn {
		m.two.transaction(7, 1003)
	}
	m.two.transaction(8, 4000000000) // a client's own time
	m.two.transaction(9, 1005)
	m.two.gtid(10, 1006, standaloneFlag)
	m.two.statement("CREATE DATABASE x")
	m.after = int64(m.two.Len())
	return m
}

func TestPlanReplay(t *testing.T) {
	second := func(n int64) time.Time { return time.Unix(1000+n, 0) }
	for name, c := range map[string]struct {
		torn  bool
		at    time.Time
		until time.Time // of the mark after
		want  func(m madeLogs) (kurabe.LogPosition, uint64)
		harm  func(m *madeLogs)
	}{
		"a mark at the moment": {at: second(10), until: second(10), want: func(m madeLogs) (kurabe.LogPosition, uint64) {
			return kurabe.LogPosition{File: FileName(2), Offset: m.after}, 10
		}},
		"a crash leaves half a transaction": {torn: true, at: second(10), until: second(10), want: func(m madeLogs) (kurabe.LogPosition, uint64) {
			return kurabe.LogPosition{File: FileName(2), Offset: m.after}, 10
		}},
		"the times decide, but for one that cannot be": {at: second(4), until: second(60), want: func(m madeLogs) (kurabe.LogPosition, uint64) {
			return kurabe.LogPosition{File: FileName(2), Offset: m.after}, 8
		}},
		"nothing is that old": {at: second(1), until: second(60), want: func(m madeLogs) (kurabe.LogPosition, uint64) {
			return kurabe.LogPosition{File: FileName(1), Offset: m.from}, 0
		}},
		"a transaction is missing": {at: second(10), until: second(10), harm: func(m *madeLogs) {
			m.two = newLogText(false)
			m.two.transaction(8, 1003)
			m.after = int64(m.two.Len())
		}},
		"the end of a file is missing": {at: second(10), until: second(10), harm: func(m *madeLogs) { m.one.Truncate(int(m.mid)) }},
		"an event is damaged":          {at: second(10), until: second(10), harm: func(m *madeLogs) { m.two.Bytes()[m.two.Len()-6] ^= 1 }},
		"it is too short":              {at: second(10), until: second(10), harm: func(m *madeLogs) { m.two.Truncate(m.two.Len() - 1) }},
	} {
		t.Run(name, func(t *testing.T) {
			m := makeLogs(c.torn)
			if c.harm != nil {
				c.harm(&m)
			}
			dir := t.TempDir()
			for n, text := range []*logText{m.one, m.two} {
				if err := os.WriteFile(filepath.Join(dir, FileName(int64(n+1))), text.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			plan, err := PlanReplay(engine.ReplayRequest{
				Dir: dir, From: kurabe.LogPosition{File: FileName(1), Offset: m.from}, At: c.at,
				After: kurabe.LogMark{At: c.until, Until: c.until, Position: kurabe.LogPosition{File: FileName(2), Offset: m.after}},
			})
			if c.want == nil {
				if err == nil {
					t.Errorf("no error: %+v", plan)
				}
				return
			}
			stop, seq := c.want(m)
			if err != nil || plan.Reached[0].Seq != seq || plan.Stop.File != stop.File || seq != 8 && plan.Stop != stop {
				t.Errorf("%+v, %v, want %v and %d", plan, err, stop, seq)
			}
		})
	}
}

func TestParseScheduled(t *testing.T) {
	for text, want := range map[string]scheduledChange{
		"CREATE DEFINER=`a`@`%` EVENT ev ON SCHEDULE EVERY 1 DAY DO SET @disable = 1":                               {name: EventName{"s", "ev"}, created: true},
		"CREATE OR REPLACE DEFINER=`a`@`%` EVENT IF NOT EXISTS `o``x`.`Ev` ON SCHEDULE EVERY 1 DAY DISABLE DO DO 1": {name: EventName{"o`x", "ev"}, created: true, status: statusDisabled},
		"ALTER DEFINER=`a`@`%` EVENT ev RENAME TO o.e2 ENABLE COMMENT 'DISABLE'":                                    {name: EventName{"s", "ev"}, renamed: EventName{"o", "e2"}, status: statusEnabled},
		"/*!50106 ALTER*/ EVENT ev # DO\n DISABLE ON SLAVE":                                                         {name: EventName{"s", "ev"}, status: StatusReplica},
		"ALTER EVENT ev ON SCHEDULE AT '2030-01-01 DISABLE'":                                                        {name: EventName{"s", "ev"}},
	} {
		if got, ok := parseScheduled("s", text); !ok || got != want {
			t.Errorf("%s: %+v, %v", text, got, ok)
		}
	}
	for _, text := range []string{"CREATE TABLE event (a INT)", "DROP EVENT ev", "ALTER TABLE t ADD event INT", "", "CREATE EVENT"} {
		if got, ok := parseScheduled("s", text); ok {
			t.Errorf("%s: %+v", text, got)
		}
	}
	all := Schedule{{"s", "kept"}: statusDisabled, {"s", "old"}: statusDisabled}
	all.Follow([]scheduledChange{{name: EventName{"s", "old"}, renamed: EventName{"s", "new"}}, {name: EventName{"s", "made"}, created: true}})
	if all[EventName{"s", "new"}] != statusDisabled || all[EventName{"s", "made"}] != statusEnabled || len(all) != 3 {
		t.Error(all)
	}
}

// FuzzEvents: whatever a file holds, reading it ends, and copies what it has checked.
func FuzzEvents(f *testing.F) {
	l := newLogText(true)
	l.transaction(1, 1)
	l.statement("CREATE EVENT e DISABLE DO SELECT 1")
	l.end()
	f.Add(l.Bytes())
	f.Add(l.Bytes()[:l.Len()-3])
	f.Add([]byte(Magic))
	f.Fuzz(func(t *testing.T, text []byte) {
		var copied bytes.Buffer
		r := Reader{Source: bytes.NewReader(text), Until: int64(len(text)), CopyTo: &copied}
		var g Grouper
		err := r.ReadMagic()
		for err == nil {
			var e Event
			if e, err = r.Next(); err == nil {
				g.Add(e)
				e.scheduled()
				e.checkpoint()
			}
		}
		if int64(copied.Len()) != r.At || r.At > int64(len(text)) {
			t.Fatalf("%d bytes copied up to %d of %d", copied.Len(), r.At, len(text))
		}
		if errors.Is(err, io.EOF) && copied.Len() != len(text) {
			t.Fatal("a whole file is not copied")
		}
	})
}
