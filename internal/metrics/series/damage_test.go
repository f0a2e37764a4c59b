package series

import (
	"bufio"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
)

// filled returns a store with an hour of samples, in blocks and in the head, and closes it.
func filled(t *testing.T, dir string) *bed {
	b := newBed(t, dir, midday)
	b.run(30*time.Minute, second)
	if err := b.minutes.cut(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := b.fine.cut(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	b.run(30*time.Minute, second)
	b.close()
	return b
}

// each file of a store is damaged in each way: the next start has all that is not in it, says what
// was lost, and takes samples.
func TestDamagedFiles(t *testing.T) {
	dir := t.TempDir()
	now := filled(t, dir).now
	hurt := map[string]func([]byte) []byte{
		"flipped": func(raw []byte) []byte {
			for n := len(raw) / 3; n < len(raw); n += max(1, len(raw)/7) {
				raw[n] ^= 0xff
			}
			return raw
		},
		"cut":   func(raw []byte) []byte { return raw[:len(raw)/2] },
		"empty": func([]byte) []byte { return nil },
		"zeros": func(raw []byte) []byte { return make([]byte, len(raw)) },
	}
	for _, file := range files(t, dir) {
		for how, change := range hurt {
			t.Run(strings.ReplaceAll(kind(file), "/", " ")+" "+how, func(t *testing.T) {
				copied := t.TempDir()
				if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
					t.Fatal(err)
				}
				path := filepath.Join(copied, file)
				raw, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, change(raw), 0o600); err != nil {
					t.Fatal(err)
				}
				b := newBed(t, copied, now)
				b.survive(len(raw) > 0)
			})
		}
	}
}

// survive asks until there is an answer, and wants samples of now in it.
func (b *bed) survive(damaged bool) {
	b.Helper()
	q := Query{From: midday, To: b.now.Add(time.Minute), Period: time.Minute}
	fine := Query{From: midday, To: b.now.Add(time.Minute), Period: time.Second}
	for try := 0; ; try++ {
		if err := b.Append(b.now, []Sample{{cpu, 1}}); err != nil && b.broken.Load() == nil {
			b.Fatal(err)
		}
		b.tick()
		answer, err := b.Query(b.Context(), []Query{q, fine})
		b.now = b.now.Add(time.Second)
		if err == nil && len(answer[0]) == 1 && len(answer[1]) == 1 {
			buckets, seconds := answer[0][0].Buckets, answer[1][0].Buckets
			if last := seconds[len(seconds)-1]; last.Start < b.now.Unix()-2 {
				b.Errorf("the newest second is of %s", time.Unix(last.Start, 0).UTC())
			}
			// Minutes and seconds are never both lost.
			if len(buckets) < 25 && len(seconds) < 25*60 {
				b.Errorf("only %d minutes and %d seconds are left; told %q", len(buckets), len(seconds), b.told)
			}
			return
		}
		if try > 3 {
			b.Fatalf("still %v", err)
		}
		b.reopen()
	}
}

// files are the files of a store that have content.
func files(t *testing.T, dir string) (list []string) {
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if i, err := d.Info(); err != nil || i.Size() == 0 {
			return err
		}
		list = append(list, path)
		return nil
	})
	if err != nil || len(list) < 8 {
		t.Fatal(err, list)
	}
	return list
}

// kind is a path without the names of blocks.
func kind(path string) string {
	parts := strings.Split(path, "/")
	for n := range parts {
		if _, err := ulid.ParseStrict(parts[n]); err == nil {
			parts[n] = "block"
		}
	}
	return strings.Join(parts, "/")
}

func TestSetAsideIsBounded(t *testing.T) {
	dir := t.TempDir()
	b := newBed(t, dir, midday)
	for n := range 5 {
		path := filepath.Join(dir, fmt.Sprint("block", n))
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		b.setAside(path, fs.ErrInvalid)
		b.now = b.now.Add(time.Second)
	}
	left, err := os.ReadDir(filepath.Join(dir, asideFolder))
	if err != nil || len(left) != asideMost || !strings.HasSuffix(left[1].Name(), "block4") || len(b.told) != 5 {
		t.Errorf("%v %v %q", left, err, b.told)
	}
}

func TestClockJumps(t *testing.T) {
	for _, jump := range []time.Duration{time.Minute, time.Hour, 40 * 24 * time.Hour, 20 * 365 * 24 * time.Hour} {
		t.Run(jump.String(), func(t *testing.T) {
			dir := t.TempDir()
			b := newBed(t, dir, midday)
			b.run(20*time.Minute, second)
			b.now = b.now.Add(jump)
			b.run(5*time.Minute, second)
			b.now = b.now.Add(-jump)
			refused := 0
			for range 600 {
				if b.Append(b.now, []Sample{{cpu, 1}}) != nil {
					refused++
				}
				b.tick()
				b.reopen()
				b.now = b.now.Add(time.Second)
			}
			if most := int(clockBackTime/time.Second) + 2; refused > most {
				t.Errorf("%d samples refused", refused)
			}
			got := b.buckets(Query{From: midday, To: b.now, Period: time.Minute})
			if len(got) < 27 || got[3].Count != 60 || got[len(got)-1].Count != 60 {
				t.Errorf("%d minutes, %v", len(got), got)
			}
			for _, one := range got {
				if one.Count > 60 {
					t.Errorf("%v is counted twice", one)
				}
			}
			b.close()
			b = newBed(t, dir, b.now)
			if again := b.buckets(Query{From: midday, To: b.now, Period: time.Minute}); len(again) != len(got) {
				t.Errorf("%d minutes after a start, %d before", len(again), len(got))
			}
		})
	}
}

// A clock that is wrong for a moment must not remove what was measured.
func TestWrongClockRemovesNothing(t *testing.T) {
	b := filled(t, t.TempDir())
	count := func() int {
		return len(b.buckets(Query{From: midday, To: midday.Add(time.Hour), Period: time.Minute}))
	}
	b = newBed(t, b.Dir, b.now)
	b.now = b.now.Add(365 * 24 * time.Hour)
	b.tick()
	blocks := b.minutes.db.Blocks()
	if gone := b.minutes.deletable(blocks, &b.clock); len(blocks) == 0 || len(gone) != 0 {
		t.Errorf("%d of %d blocks to be removed", len(gone), len(blocks))
	}
	if n := count(); n < 59 {
		t.Errorf("%d minutes", n)
	}
	for range int(clockProof/time.Second) + 1 {
		b.now = b.now.Add(time.Second)
		b.clock.tick(b.now)
	}
	if gone := b.minutes.deletable(blocks, &b.clock); len(gone) != len(blocks) {
		t.Errorf("%d of %d blocks to be removed", len(gone), len(blocks))
	}
}

// Old data go also from where nothing new comes, as from users' own.
func TestOldDataGo(t *testing.T) {
	for name, cut := range map[string]bool{"in memory": false, "in a block": true} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, t.TempDir(), midday)
			late := Bucket{Start: midday.Add(-time.Hour).Unix(), Count: 1, Sum: 1, Min: 1, Max: 1}
			if err := b.Put(t.Context(), []Datum{{cpu, Bucket{Start: midday.Unix(), Count: 1, Sum: 1, Min: 1, Max: 1}}, {cpu, late}}); err != nil {
				t.Fatal(err)
			}
			b.now = b.now.Add(time.Second)
			b.tick()
			if cut {
				if err := b.own.cut(t.Context(), 0); err != nil {
					t.Fatal(err)
				}
			}
			kept := func() bool {
				b.maintain(t.Context())
				b.maintain(t.Context())
				return len(b.own.db.Blocks()) > 0 || b.own.db.Head().NumSeries() > 0
			}
			if !kept() {
				t.Error("new data are gone")
			}
			b.now = b.now.Add(minutesFor + 24*time.Hour)
			b.clock.tick(b.now)
			if !kept() {
				t.Error("data are gone by a clock that has stepped")
			}
			for range int(clockProof/time.Second) + 1 {
				b.now = b.now.Add(time.Second)
				b.clock.tick(b.now)
			}
			if kept() {
				t.Errorf("old data are there: %d blocks, %d series", len(b.own.db.Blocks()), b.own.db.Head().NumSeries())
			}
		})
	}
}

func TestFolderStaysBelowLimit(t *testing.T) {
	b := newBed(t, t.TempDir(), midday)
	b.close()
	b.BytesMax = 4 << 20
	b.reopen()
	list := make([]Sample, 200)
	random := uint64(1)
	for n := range list {
		list[n].Labels = NewLabels("metric", fmt.Sprint("m", n))
	}
	for s := range 3600 {
		for n := range list {
			random = random*6364136223846793005 + 1442695040888963407
			list[n].Value = float64(random)
		}
		if err := b.Append(b.now, list); err != nil {
			t.Fatal(err)
		}
		b.tick()
		b.now = b.now.Add(time.Second)
		if s%60 == 0 {
			b.maintain(t.Context())
		}
		if s%600 == 599 {
			if n := folderBytes(b.Dir); n > 2*b.BytesMax {
				t.Errorf("%d bytes after %d s", n, s)
			}
		}
	}
}

// childDir is set in the process that TestKill kills.
const childDir = "KURABE_SERIES_CHILD"

func TestKill(t *testing.T) {
	if dir := os.Getenv(childDir); dir != "" {
		writeForEver(dir)
	}
	dir, last := t.TempDir(), int64(0)
	for round := range 4 {
		c := exec.Command(os.Args[0], "-test.run=^TestKill$")
		c.Env = append(os.Environ(), childDir+"="+dir)
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; n < 200+round*50 && lines.Scan(); n++ {
			if last, err = strconv.ParseInt(lines.Text(), 10, 64); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait()
	}
	if last == 0 {
		t.Fatal("the child wrote nothing")
	}
	b := newBed(t, dir, time.Unix(last, 0).Add(3*time.Minute))
	b.tick()
	got := b.buckets(Query{From: midday, To: b.now, Period: time.Minute})
	count := 0.0
	for n, one := range got {
		count += one.Count
		if one.Count > 60 || n > 0 && one.Start != got[n-1].Start+60 {
			t.Errorf("minute %d: %v", n, one)
		}
	}
	if want := float64(last - midday.Unix() + 1); count < want {
		t.Errorf("%v samples are left of %v", count, want)
	}
}

// writeForEver goes on where the store ends, one sample of ten series for each second, and tells
// the second once it is written.
func writeForEver(dir string) {
	now := midday
	s := New(Config{Dir: dir, BytesMax: 1 << 30, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now }, Free: func() int64 { return -1 }, Tell: func(string) {}})
	s.reopen()
	if s.newest > 0 {
		now = time.UnixMilli(s.newest).Add(time.Second)
	}
	for ; ; now = now.Add(time.Second) {
		if err := s.Append(now, []Sample{{cpu, 1}}); err != nil {
			os.Exit(1)
		}
		s.tick()
		fmt.Println(now.Unix())
	}
}
