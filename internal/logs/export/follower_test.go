package export

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/logevents"
)

// bed is a server that writes numbered lines, and a Follower of them that dies at times.
type bed struct {
	t      *testing.T
	engine kurabe.EngineName
	log    string
	dir    string
	hour   int // of the file that is written
	n      int // newest number
	out    *os.File

	f      *Follower
	stored []byte   // the mark
	events []string // that were stored
	times  []int64  // theirs
	lost   int64
	now    time.Time
	broken bool // the store refuses
}

func newBed(t *testing.T, engine kurabe.EngineName, log string) *bed {
	b := &bed{t: t, engine: engine, log: log, dir: filepath.Join(t.TempDir(), "log"), now: time.Now()}
	if err := os.Mkdir(b.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.die(); b.stop() })
	b.start()
	return b
}

// start and die are those of the service.
func (b *bed) start() {
	b.f = NewFollower(Config{
		Engine: b.engine, Log: b.log, Dir: b.dir, Now: func() time.Time { return b.now }, Lost: func(n int64) { b.lost += max(n, 1) },
		Load: func() (*Mark, error) {
			if b.stored == nil {
				return nil, nil
			}
			mark := &Mark{}
			return mark, json.Unmarshal(b.stored, mark)
		},
	})
}

func (b *bed) die() { b.f.Close() }

func (b *bed) turn(on bool) {
	b.t.Helper()
	if err := b.f.Turn(on); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) store(events []logevents.Event, mark Mark) error {
	if b.broken {
		return errors.New("no space left")
	}
	for _, e := range events {
		b.events, b.times = append(b.events, string(e.Message)), append(b.times, e.Time)
	}
	raw, err := json.Marshal(mark)
	b.stored = raw
	return err
}

func (b *bed) pass(last bool) {
	b.t.Helper()
	b.now = b.now.Add(time.Second)
	for more := true; more; {
		var err error
		if more, err = b.f.Pass(b.store, last); err != nil && !b.broken {
			b.t.Fatal(err)
		}
	}
}

// stop and rotate are those of the server.
func (b *bed) stop() {
	if b.out != nil {
		_ = b.out.Close()
		b.out = nil
	}
}

func (b *bed) rotate() {
	b.hour++
	if b.engine == kurabe.MariaDB && b.out != nil {
		base := formats[b.engine][b.log].file
		if err := os.Rename(filepath.Join(b.dir, base), filepath.Join(b.dir, fmt.Sprintf("%s.2026-11-28.%02d", base, b.hour))); err != nil {
			b.t.Fatal(err)
		}
		if b.n%2 == 0 {
			b.line(1) // before it has heard of it
		}
	}
	b.stop()
}

func (b *bed) write(text string) {
	b.t.Helper()
	if b.out == nil {
		name := formats[b.engine][b.log].file
		if b.engine == kurabe.Postgres {
			name += fmt.Sprintf(".2026-11-28-%02d", b.hour)
		}
		var err error
		if b.out, err = os.OpenFile(filepath.Join(b.dir, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
			b.t.Fatal(err)
		}
	}
	if _, err := b.out.WriteString(text); err != nil {
		b.t.Fatal(err)
	}
}

// line writes entries of a number each, of several lines.
func (b *bed) line(count int) {
	for range count {
		b.n++
		b.write(fmt.Sprintf("2026-11-28 10:%02d:%02d UTC:[1]:LOG:  %d\n\tmore of %d\n", b.n/60%60, b.n%60, b.n, b.n))
	}
}

func (b *bed) want(from, to int, when string) {
	b.t.Helper()
	var want []string
	for n := from; n <= to; n++ {
		want = append(want, fmt.Sprintf("2026-11-28 10:%02d:%02d UTC:[1]:LOG:  %d\n\tmore of %d", n/60%60, n%60, n, n))
	}
	if strings.Join(b.events, "\n") != strings.Join(want, "\n") {
		b.t.Fatalf("%s: %d events, want %d to %d:\n%q", when, len(b.events), from, to, b.events)
	}
}

// Whatever the service and the server go through, each entry is exported once, in order.
func TestEachLineOnce(t *testing.T) {
	for seed := range uint64(150) {
		engine, log := kurabe.Postgres, "postgresql"
		if seed%2 == 1 {
			engine, log = kurabe.MariaDB, "error"
		}
		b, r := newBed(t, engine, log), rand.New(rand.NewPCG(seed, 1))
		if b.turn(true); r.IntN(2) == 0 {
			b.pass(false)
		} else {
			b.line(0)
		}
		for range 60 {
			switch r.IntN(8) {
			case 0, 1, 2:
				b.line(r.IntN(20))
			case 3:
				b.rotate()
			case 4:
				if b.die(); b.stored != nil {
					b.start()
					b.turn(true)
				} else {
					b.start()
					b.f.mark, b.f.begun, b.f.loaded = Mark{On: true}, true, true // nothing was written before
				}
			case 5:
				b.broken = !b.broken
			default:
				b.pass(false)
			}
		}
		b.broken = false
		for range 20 {
			b.pass(false)
		}
		b.want(1, b.n, fmt.Sprint("seed ", seed))
	}
}

// A server's life as a standby is not exported, whenever the service dies.
func TestTurns(t *testing.T) {
	for seed := range uint64(100) {
		engine, log := kurabe.Postgres, "postgresql"
		if seed%2 == 1 {
			engine, log = kurabe.MariaDB, "error"
		}
		b, r := newBed(t, engine, log), rand.New(rand.NewPCG(seed, 2))
		b.line(3) // before anybody asked
		on := r.IntN(2) == 0
		b.turn(on)
		b.pass(false)
		var want []int
		for range 40 {
			before := b.n
			switch r.IntN(6) {
			case 0, 1, 2:
				b.line(r.IntN(5))
			case 3:
				b.rotate()
			case 4:
				b.pass(false)
				if r.IntN(2) == 0 {
					b.die()
					b.start()
					b.turn(on)
				}
			case 5:
				on = !on
				b.turn(on)
				if r.IntN(2) == 0 { // the turn is stored before the service dies
					b.line(1)
					if on {
						want = append(want, b.n)
					}
					b.pass(false)
					before = b.n
				}
			}
			for n := before + 1; on && n <= b.n; n++ {
				want = append(want, n)
			}
		}
		for range 20 {
			b.pass(false)
		}
		var got []int
		for _, e := range b.events {
			var n int
			if _, err := fmt.Sscanf(e[strings.Index(e, "LOG:"):], "LOG:  %d", &n); err != nil {
				t.Fatal(e)
			}
			got = append(got, n)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("seed %d: exported %v, want %v", seed, got, want)
		}
	}
}

// What was there before the first turn is not exported.
func TestBeginsNow(t *testing.T) {
	b := newBed(t, kurabe.Postgres, "postgresql")
	b.line(5)
	b.rotate()
	b.line(5)
	b.turn(true)
	b.line(2)
	b.pass(false)
	b.pass(false)
	b.want(11, 12, "it begins")
}

// MariaDB writes a time only where it is another second than before: that of the lines before a turn is the
// time of those behind it.
func TestTurnKnowsTheTime(t *testing.T) {
	b := newBed(t, kurabe.MariaDB, "general")
	b.turn(false)
	b.write("261128 10:00:01\t     1 Query\tSELECT 1\n\t\t     1 Query\tSELECT 2\n")
	b.pass(false)
	b.turn(true)
	b.write("\t\t     1 Query\tSELECT 3\n")
	b.pass(false)
	b.turn(false)
	b.write("261128 10:00:02\t     1 Query\tSELECT 4\n")
	b.turn(true)
	b.write("\t\t     1 Query\tSELECT 5\n261128 10:00:03\t     1 Query\tSELECT 6\n")
	for range 3 {
		b.pass(false)
	}
	second := time.Date(2026, 11, 28, 10, 0, 1, 0, time.UTC).UnixMilli()
	if want := []int64{second, second + 1000, second + 2000}; !slices.Equal(b.times, want) {
		t.Errorf("events %q at %v, want %v", b.events, b.times, want)
	}
}

func TestPartialLine(t *testing.T) {
	b := newBed(t, kurabe.Postgres, "postgresql")
	b.turn(true)
	b.line(1)
	b.write("2026-11-28 10:00:02 UTC:[1]:LOG:  2\n\tmore")
	for range 4 {
		b.pass(false)
	}
	b.want(1, 1, "an event with a line without an end")
	b.write(" of 2\n")
	b.pass(false)
	b.pass(false)
	b.want(1, 2, "its end")
	b.write("2026-11-28 10:00:03 UTC:[1]:LOG:  3\n\tmore of 3")
	b.rotate()
	b.n = 3
	b.line(1)
	for range 4 {
		b.pass(false)
	}
	b.want(1, 4, "the file is over")
}

// A line that does not end is cut at the limit, and what follows of it is read, counted and not kept.
func TestEndlessLine(t *testing.T) {
	b := newBed(t, kurabe.Postgres, "postgresql")
	b.turn(true)
	const each, pieces = 1 << 20, 40
	b.write("2026-11-28 10:00:01 UTC:[1]:LOG:  begun")
	piece := strings.Repeat("\x00\xff\x01x", each/4) // which is no text either
	for n := range pieces {
		b.write(piece)
		b.pass(false)
		var mark Mark
		if err := json.Unmarshal(b.stored, &mark); err != nil || n > 2 && mark.Places[0].Offset < int64(n-2)*each {
			t.Fatalf("after %d MB: %+v, %v", n, mark, err)
		}
		if len(b.events) > 1 {
			t.Fatalf("%d events", len(b.events))
		}
	}
	b.write("\n2026-11-28 10:00:02 UTC:[1]:LOG:  2\n")
	for range 3 {
		b.pass(false)
	}
	if len(b.events) != 3 || len(b.events[0]) > EventMax || b.events[2] != "2026-11-28 10:00:02 UTC:[1]:LOG:  2" ||
		!strings.Contains(b.events[1], fmt.Sprint(pieces*each+len("2026-11-28 10:00:01 UTC:[1]:LOG:  begun\n")-EventMax, " bytes")) {
		t.Errorf("%d events: %.100q", len(b.events), b.events)
	}
}

func TestTruncated(t *testing.T) {
	b := newBed(t, kurabe.MariaDB, "error")
	b.turn(true)
	b.line(3)
	b.pass(false)
	b.pass(false)
	if err := b.out.Truncate(0); err != nil {
		t.Fatal(err)
	}
	b.line(1)
	b.pass(false)
	b.pass(false)
	b.want(1, 4, "after it")
}

// A clock that goes back has PostgreSQL go on with an older file.
func TestClockGoesBack(t *testing.T) {
	b := newBed(t, kurabe.Postgres, "postgresql")
	b.turn(true)
	for range 3 {
		b.line(2)
		b.pass(false)
		b.pass(false)
		b.pass(false) // the file is not the one before any more
		b.rotate()
	}
	b.hour = 0
	b.line(2)
	for range 2 * listPasses {
		b.pass(false)
	}
	b.want(1, 8, "the older file")
	b.rotate()
	b.line(2)
	for range 2 * listPasses {
		b.pass(false)
	}
	b.want(1, 10, "the next one")
}

// Files that are removed before they were read are told of, and the rest is exported.
func TestRemovedUnread(t *testing.T) {
	for _, dies := range []bool{false, true} {
		b := newBed(t, kurabe.Postgres, "postgresql")
		b.turn(true)
		b.line(2)
		b.pass(false)
		b.pass(false)
		b.line(3)
		b.rotate()
		b.line(1)
		names, _ := filepath.Glob(filepath.Join(b.dir, "*-00"))
		if b.f.Unread("postgresql.log.2026-11-28-00") == false || b.f.Unread("start.log") {
			t.Error("unread files")
		}
		if err := os.Remove(names[0]); err != nil {
			t.Fatal(err)
		}
		if dies {
			b.die()
			b.start()
			b.turn(true)
		}
		for range 3 {
			b.pass(false)
		}
		b.events = b.events[2:]
		b.want(6, 6, "the rest")
		if b.lost == 0 || !dies && b.lost != 3*47 {
			t.Errorf("%d bytes lost", b.lost)
		}
		if b.f.Unread("postgresql.log.2026-11-28-00") {
			t.Error("a file that is gone is unread")
		}
	}
}

// A folder of a tenant leads nowhere.
func TestTraps(t *testing.T) {
	b := newBed(t, kurabe.Postgres, "postgresql")
	b.turn(true)
	b.line(2)
	b.pass(false)
	b.pass(false)
	b.rotate()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("2026-11-28 10:00:00 UTC:secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	first := filepath.Join(b.dir, "postgresql.log.2026-11-28-00")
	for _, err := range []error{
		os.Remove(first), os.Symlink(secret, first), os.Symlink(secret, filepath.Join(b.dir, "postgresql.log.2026-11-28-01")),
		os.Mkdir(filepath.Join(b.dir, "postgresql.log.2026-11-28-02"), 0o700),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		b.pass(false)
	}
	b.hour = 5
	b.line(1)
	for range 3 {
		b.pass(false)
	}
	b.want(1, 3, "beside the traps")
}

// The lines of a server that ends at once are exported when it is said to have ended.
func TestLastPass(t *testing.T) {
	b := newBed(t, kurabe.Postgres, "postgresql")
	b.turn(true)
	b.line(2)
	b.rotate()
	b.line(2)
	b.pass(true)
	b.want(1, 4, "at the end")
}

// BenchmarkIdle is a pass of a server that writes nothing, with a week of files.
func BenchmarkIdle(b *testing.B) {
	t := &testing.T{}
	bed := &bed{t: t, engine: kurabe.Postgres, log: "postgresql", dir: b.TempDir()}
	bed.start()
	for range 7 * 24 {
		bed.line(1)
		bed.rotate()
	}
	bed.line(1)
	bed.turn(true)
	for b.Loop() {
		bed.pass(false)
	}
}
