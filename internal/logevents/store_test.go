package logevents

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// bed is a store in a folder of its own.
type bed struct {
	*Store
	t    *testing.T
	c    Config
	mu   sync.Mutex
	lost []string
}

func newBed(t *testing.T) *bed {
	b := &bed{t: t}
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	b.c = Config{Dir: filepath.Join(t.TempDir(), "logs"), GroupBytes: 1 << 40, TotalBytes: 1 << 40, Now: func() time.Time { return now }}
	b.c.Lost = func(group, stream string, size int64, why string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.lost = append(b.lost, fmt.Sprintf("%s %s %d %s", group, stream, size, why))
	}
	b.open()
	return b
}

func (b *bed) open() {
	b.t.Helper()
	s, err := Open(b.c)
	if err != nil {
		b.t.Fatal(err)
	}
	b.Store = s
	b.t.Cleanup(s.Close)
}

// again is the store as the next process finds it.
func (b *bed) again() { b.t.Helper(); b.Close(); b.open() }

func (b *bed) append(stream string, mark string, events ...Event) {
	b.t.Helper()
	var m []byte
	if mark != "" {
		m = []byte(mark)
	}
	if err := b.Append("g", stream, events, m); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) walk(w Walk, limit int) (found []Found) {
	b.t.Helper()
	err := b.Walk(context.Background(), w, func(f Found) error {
		found = append(found, f)
		if len(found) == limit {
			return ErrEnough
		}
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return found
}

var always = Walk{Group: "g", From: -1 << 62, To: 1 << 62}

func texts(found []Found) string {
	var list []string
	for _, f := range found {
		list = append(list, string(f.Message))
	}
	return strings.Join(list, " ")
}

func at(time int64, text string) Event {
	return Event{Time: time, Ingested: time + 7, Message: []byte(text)}
}

func TestEventsStay(t *testing.T) {
	b := newBed(t)
	b.append("s", "m1", at(10, "a"), at(20, "b\x00\xff\n"))
	b.append("s", "", at(15, "c"))
	b.append("other/stream", "m2", at(12, "d"))
	for range 2 {
		if got := texts(b.walk(always, 0)); got != "a d c b\x00\xff\n" {
			t.Fatalf("events %q", got)
		}
		if got := string(b.Mark("g", "s")) + string(b.Mark("g", "other/stream")) + string(b.Mark("g", "none")); got != "m1m2" {
			t.Fatalf("marks %q", got)
		}
		s := b.Streams("g", "")
		if len(s) != 2 || s[1].Name != "s" || s[1].Events != 3 || s[1].First != 10 || s[1].Last != 20 || s[1].LastIngested != 27 || s[1].Bytes != 6 {
			t.Fatalf("streams %+v", s)
		}
		e, ok, err := b.Get("g", "s", 3)
		if err != nil || !ok || string(e.Message) != "c" || e.Ingested != 22 {
			t.Fatalf("event 3: %+v %v %v", e, ok, err)
		}
		b.again()
	}
	if len(b.lost) > 0 {
		t.Fatal(b.lost)
	}
}

// fill appends numbered events of about 200 bytes until blocks have been made of so many bytes.
func (b *bed) fill(stream string, bytes int) (count int) {
	b.t.Helper()
	random := rand.NewChaCha8([32]byte{1})
	pad := make([]byte, 50)
	for size := 0; size < bytes; {
		var batch []Event
		for range 500 {
			count++
			_, _ = random.Read(pad)
			text := fmt.Sprintf("%s %08d %x", stream, count, pad)
			batch = append(batch, at(int64(count), text))
			size += len(text)
		}
		b.append(stream, fmt.Sprint(count), batch...)
	}
	return count
}

// check walks a filled stream and looks for every number, in order and once.
func (b *bed) check(stream string, first, count int, backward bool) {
	b.t.Helper()
	w := always
	w.Streams, w.Backward = []string{stream}, backward
	n := 0
	for page := b.walk(w, 1000); len(page) > 0; page = b.walk(w, 1000) {
		for _, f := range page {
			want := first + n
			if backward {
				want = first + count - 1 - n
			}
			if f.Number != int64(want) || !bytes.Contains(f.Message, fmt.Appendf(nil, " %08d ", want)) {
				b.t.Fatalf("event %d is number %d, %.40q", want, f.Number, f.Message)
			}
			n++
		}
		w.After = &page[len(page)-1].Position
	}
	if n != count {
		b.t.Fatalf("%d events of %d", n, count)
	}
}

func TestBlocks(t *testing.T) {
	b := newBed(t)
	n := b.fill("s", 6*blockBytes)
	if len(b.find("g", "s").blocks) < 5 {
		t.Fatalf("%d blocks", len(b.find("g", "s").blocks))
	}
	for range 2 {
		b.check("s", 1, n, false)
		b.check("s", 1, n, true)
		if got := string(b.Mark("g", "s")); got != fmt.Sprint(n) {
			t.Fatalf("mark %s of %d", got, n)
		}
		seen := make([]int, 4)
		err := b.Scan(context.Background(), "g", nil, 0, 1<<62, 4, func(w int, block *Block) error {
			for _, e := range block.Events {
				if !bytes.HasPrefix(block.Text[e.Start:e.End], []byte("s ")) {
					return fmt.Errorf("%.30q", block.Text[e.Start:e.End])
				}
				seen[w]++
			}
			return nil
		})
		if sum := seen[0] + seen[1] + seen[2] + seen[3]; err != nil || sum != n {
			t.Fatalf("scan of %d: %v, %v", n, seen, err)
		}
		b.again()
	}
}

// Events of two streams come by time, also where they were written late and blocks overlap.
func TestWalkIsInOrder(t *testing.T) {
	b := newBed(t)
	pad := strings.Repeat("y", 2000)
	want := map[Position]bool{}
	number := map[string]int64{}
	for range 60 {
		stream := []string{"a", "b"}[rand.IntN(2)]
		var batch []Event
		for range 50 {
			e := at(rand.Int64N(1000), fmt.Sprint(rand.Int64(), pad))
			number[stream]++
			want[Position{e.Time, stream, number[stream]}] = true
			batch = append(batch, e)
		}
		b.append(stream, "", batch...)
	}
	for _, backward := range []bool{false, true} {
		w := always
		w.Backward = backward
		var last *Position
		n := 0
		for page := b.walk(w, 77); len(page) > 0; page = b.walk(w, 77) {
			for _, f := range page {
				if !want[f.Position] || last != nil && (f.Compare(*last) > 0) == backward {
					t.Fatalf("%+v after %+v", f.Position, last)
				}
				last = &f.Position
				n++
			}
			w.After = last
		}
		if n != len(want) {
			t.Fatalf("%d of %d", n, len(want))
		}
	}
	w := always
	w.From, w.To, w.Streams = 100, 101, []string{"b"}
	for _, f := range b.walk(w, 0) {
		if f.Time != 100 || f.Stream != "b" {
			t.Fatalf("%+v", f.Position)
		}
	}
}

// A crash may leave any part of the last frame: what was acknowledged before is there, with its mark.
func TestTornTail(t *testing.T) {
	b := newBed(t)
	b.append("s", "one", at(1, "a"), at(2, "b"))
	path := filepath.Join(b.folder("g", "s"), tailFile)
	before, _ := os.ReadFile(path)
	b.append("s", "two", at(3, "c"))
	after, _ := os.ReadFile(path)
	for size := len(before); size <= len(after); size++ {
		b.Close()
		if err := os.WriteFile(path, after[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		b.open()
		want, mark := "a b", "one"
		if size == len(after) {
			want, mark = "a b c", "two"
		}
		if got := texts(b.walk(always, 0)); got != want || string(b.Mark("g", "s")) != mark {
			t.Fatalf("of %d bytes %q and mark %q", size, got, b.Mark("g", "s"))
		}
		if size == len(after) {
			break
		}
		b.append("s", "new", at(9, "z"))
		if got := texts(b.walk(always, 0)); got != "a b z" {
			t.Fatalf("then %q", got)
		}
	}
	if len(b.lost) > 0 {
		t.Fatalf("what was never acknowledged was told as lost: %v", b.lost)
	}
}

// A crash between a block and the tail that follows it: the block is made once more.
func TestBlockBesideItsTail(t *testing.T) {
	b := newBed(t)
	n := b.fill("s", 3*blockBytes)
	s := b.find("g", "s")
	tail, err := os.ReadFile(s.tail.path)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.toBlocks(); err != nil {
		t.Fatal(err)
	}
	b.Close()
	if err := os.WriteFile(s.tail.path, tail, 0o600); err != nil {
		t.Fatal(err)
	}
	b.open()
	b.check("s", 1, n, false)
	b.append("s", "", at(int64(n+1), fmt.Sprintf("s %08d x", n+1)))
	b.check("s", 1, n+1, false)
}

// Damage anywhere is no panic, costs no other stream, and is told unless it hit what nobody misses.
func TestDamage(t *testing.T) {
	b := newBed(t)
	n := b.fill("s", 2*blockBytes)
	b.append("whole", "m", at(1, "whole"))
	dir := b.folder("g", "s")
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, path := range files {
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for range 8 {
			bad := slices.Clone(good)
			bad[rand.IntN(len(bad))] ^= byte(1 + rand.IntN(255))
			if rand.IntN(4) == 0 {
				bad = bad[:rand.IntN(len(bad))]
			}
			b.Close()
			// Open may cut or remove files: each try begins with all of them.
			copyOf := filepath.Join(t.TempDir(), "copy")
			if err := os.CopyFS(copyOf, os.DirFS(b.c.Dir)); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			b.lost = nil
			b.open()
			w := always
			w.Streams = []string{"s"}
			found := b.walk(w, 0)
			if len(found) < n && len(b.lost) == 0 && filepath.Base(path) != nameFile && !bytes.HasPrefix(good, bad) {
				t.Errorf("%s: %d of %d events, and nothing is told", filepath.Base(path), len(found), n)
			}
			w.Streams = []string{"whole"}
			if got := texts(b.walk(w, 0)); got != "whole" {
				t.Errorf("the other stream has %q", got)
			}
			b.append("s", "", at(1, "goes on"))
			b.Close()
			if err := os.RemoveAll(b.c.Dir); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(copyOf, b.c.Dir); err != nil {
				t.Fatal(err)
			}
			b.open()
		}
	}
}

func TestBounds(t *testing.T) {
	b := newBed(t)
	n := b.fill("s", 48*blockBytes)
	b.append("small", "", at(1, "small"))
	all := b.Streams("g", "")[0]
	b.Store.c.GroupBytes = all.StoredBytes / 2
	forever := func(string) int { return 0 }
	if err := b.Sweep(context.Background(), forever); err != nil {
		t.Fatal(err)
	}
	left := b.Streams("g", "")[0]
	if left.StoredBytes > all.StoredBytes/2 || left.StoredBytes < all.StoredBytes/2-2*segmentBytes || len(b.lost) == 0 {
		t.Fatalf("%d of %d bytes are left; told: %v", left.StoredBytes, all.StoredBytes, b.lost)
	}
	first := n - int(left.Events) + 1
	b.check("s", first, int(left.Events), false)
	b.again()
	b.check("s", first, int(left.Events), true)
	w := always
	w.Streams = []string{"small"}
	if got := texts(b.walk(w, 0)); got != "small" {
		t.Fatalf("the other stream has %q", got)
	}
}

func TestRetention(t *testing.T) {
	b := newBed(t)
	day := int64(24 * time.Hour / time.Millisecond)
	now := b.c.Now().UnixMilli()
	b.append("old", "mark", at(now-4*day, "old"))
	b.append("new", "", at(now-2*day, "new"))
	if err := b.Sweep(context.Background(), func(string) int { return 3 }); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := texts(b.walk(always, 0)); got != "new" || string(b.Mark("g", "old")) != "mark" {
			t.Fatalf("left %q, mark %q", got, b.Mark("g", "old"))
		}
		b.again()
	}
	b.append("old", "", at(now, "next"))
	w := always
	w.Streams = []string{"old"}
	if got := b.walk(w, 0); len(got) != 1 || got[0].Number != 2 {
		t.Fatalf("%+v", got)
	}
}

func TestDelete(t *testing.T) {
	b := newBed(t)
	b.append("s", "m", at(1, "a"))
	b.append("t", "m", at(1, "b"))
	if err := b.DeleteStream("g", "s"); err != nil {
		t.Fatal(err)
	}
	b.append("s", "", at(2, "anew"))
	if got := texts(b.walk(always, 0)); got != "b anew" || b.Mark("g", "s") != nil {
		t.Fatalf("%q, mark %q", got, b.Mark("g", "s"))
	}
	if err := b.DeleteGroup("g"); err != nil {
		t.Fatal(err)
	}
	b.again()
	if len(b.Groups()) != 0 || len(b.lost) != 0 {
		t.Fatalf("%v %v", b.Groups(), b.lost)
	}
}

// Writers, readers and sweeps at once: each writer's events are in order and whole.
func TestAtOnce(t *testing.T) {
	b := newBed(t)
	var writers sync.WaitGroup
	text := strings.Repeat("z", 3000)
	const each = 400
	for w := range 4 {
		writers.Go(func() {
			for n := range each {
				batch := []Event{at(int64(n), fmt.Sprintf("%d %d %s", w, n, text)), at(int64(n), text)}
				if err := b.Append("g", "s", batch, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { writers.Wait(); close(done) }()
	for over := false; !over; {
		select {
		case <-done:
			over = true
		default:
		}
		next := map[int64]bool{}
		count := int64(0)
		for _, f := range b.walk(always, 0) {
			next[f.Number] = true
			count = max(count, f.Number)
		}
		if int64(len(next)) != count {
			t.Fatalf("%d events, the last is %d", len(next), count)
		}
		if err := b.Sweep(context.Background(), func(string) int { return 0 }); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]int{}
	w := always
	for _, f := range b.walk(w, 0) {
		if len(f.Message) > 3000 {
			var who, n int
			_, _ = fmt.Sscan(string(f.Message), &who, &n)
			if seen[fmt.Sprint(who)] != n {
				t.Fatalf("writer %d: %d after %d", who, n, seen[fmt.Sprint(who)])
			}
			seen[fmt.Sprint(who)]++
		}
	}
	for w := range 4 {
		if seen[fmt.Sprint(w)] != each {
			t.Fatalf("writer %d: %d events", w, seen[fmt.Sprint(w)])
		}
	}
}

// A write that fails leaves what was there; the next one succeeds when there is room again.
func TestFullDisk(t *testing.T) {
	b := newBed(t)
	b.append("s", "m", at(1, "a"))
	s := b.find("g", "s")
	s.tail.close()
	limited, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	s.tail.file = limited // writes to it fail with ENOSPC, and it cannot be cut
	if err := b.Append("g", "s", []Event{at(2, "b")}, []byte("n")); err == nil {
		t.Fatal("a write to a full disk succeeded")
	}
	if got := texts(b.walk(always, 0)); got != "a" || string(b.Mark("g", "s")) != "m" {
		t.Fatalf("%q, mark %q", got, b.Mark("g", "s"))
	}
	b.append("s", "o", at(3, "c"))
	if got := texts(b.walk(always, 0)); got != "a c" {
		t.Fatalf("then %q", got)
	}
}
