package logstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"kurabe"
	"kurabe/internal/blob"
	"kurabe/internal/blob/blobtest"
)

var errGone = errors.New("gone")

// server is a database server in memory: its log, and what it wrote when.
type server struct {
	mu      sync.Mutex // guards what follows
	ends    []int64    // of the files, the last one grows
	oldest  int        // file that is still there
	clock   time.Duration
	epoch   int // how often the clock has jumped
	written []writing
	failing int   // so many calls fail
	record  int64 // Copy ends at multiples of it
	// goesOn is what Continue answers.
	goesOn func(kurabe.LogMark) (kurabe.LogPosition, error)
	freed  kurabe.LogPosition
}

type writing struct {
	at time.Time
	to kurabe.LogPosition
}

func newServer() *server { return &server{ends: []int64{0}, record: 1} }

func fileName(n int) string { return fmt.Sprintf("%08X", n) }

func fileNumber(name string) (n int) {
	_, _ = fmt.Sscanf(name, "%08X", &n)
	return n
}

// content is what the file holds; the same whenever it is asked for.
func content(file int, from, to int64) []byte {
	b := make([]byte, to-from)
	for i := range b {
		at := from + int64(i)
		b[i] = byte(uint64(at)*2654435761>>7) ^ byte(file*31) ^ byte(at>>11)
	}
	return b
}

func (s *server) now() time.Time { return time.Now().Add(s.clock).Round(0).UTC() }

func (s *server) position() kurabe.LogPosition {
	n := len(s.ends) - 1
	return kurabe.LogPosition{File: fileName(n), Offset: s.ends[n]}
}

func (s *server) write(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends[len(s.ends)-1] += n * s.record
	s.written = append(s.written, writing{s.now(), s.position()})
}

// rotate begins a file. As with the engines, one that ends is not empty.
func (s *server) rotate() {
	if s.position().Offset == 0 {
		s.write(1)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends = append(s.ends, 0)
}

func (s *server) snapshot() (time.Time, kurabe.LogPosition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now(), s.position()
}

func (s *server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *server) open(context.Context) (Log, error) { return &session{s}, s.fault() }

func (s *server) fault() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failing > 0 {
		s.failing--
		return errors.New("the server does not answer")
	}
	return nil
}

type session struct{ *server }

func (s *session) Close() error { return nil }

func (s *session) Begin(context.Context) (kurabe.LogPosition, error) {
	err := s.fault()
	s.mu.Lock()
	defer s.mu.Unlock()
	return kurabe.LogPosition{File: fileName(s.oldest)}, err
}

func (s *session) Continue(_ context.Context, after kurabe.LogMark) (kurabe.LogPosition, error) {
	if err := s.fault(); err != nil {
		return kurabe.LogPosition{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.goesOn == nil {
		return kurabe.LogPosition{}, ErrElsewhere
	}
	return s.goesOn(after)
}

func (s *session) State(at kurabe.LogPosition) string { return "at-" + at.String() }

func (s *session) Resume(_ context.Context, from kurabe.LogPosition) error {
	if err := s.fault(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if fileNumber(from.File) < s.oldest {
		return errGone
	}
	return nil
}

func (s *session) Mark(context.Context) (kurabe.LogMark, error) {
	err := s.fault()
	s.mu.Lock()
	defer s.mu.Unlock()
	return kurabe.LogMark{At: s.now(), Until: s.now(), Position: s.position()}, err
}

func (s *session) Copy(_ context.Context, from, to kurabe.LogPosition, w io.Writer) (kurabe.LogPosition, error) {
	s.mu.Lock()
	n, last := fileNumber(from.File), len(s.ends)-1
	if n < s.oldest {
		s.mu.Unlock()
		return from, errGone
	}
	if n > last || from.Offset > s.ends[n] {
		s.mu.Unlock()
		return from, errors.New("no such place")
	}
	end := s.ends[n]
	s.mu.Unlock()
	if to.File == from.File {
		end = min(end, to.Offset/s.record*s.record)
	}
	if n < last && from.Offset == s.ends[n] {
		return kurabe.LogPosition{File: fileName(n + 1)}, nil
	}
	b := content(n, from.Offset, max(end, from.Offset))
	if err := s.fault(); err != nil {
		_, _ = w.Write(b[:len(b)/2])
		return from, err
	}
	if _, err := w.Write(b); err != nil {
		return from, err
	}
	if n < last && end == s.ends[n] {
		return kurabe.LogPosition{File: fileName(n + 1)}, nil
	}
	return kurabe.LogPosition{File: from.File, Offset: max(end, from.Offset)}, nil
}

func (s *session) Release(_ context.Context, before kurabe.LogPosition) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.freed = before
	return nil
}

const db = kurabe.InstanceID("db-TEST")

// bed is a store with its loops over a server.
type bed struct {
	t        tester
	server   *server
	serverID kurabe.InstanceID
	repo     *blob.Repository
	cfg      Config
	store    *Store
	virtual  bool // in a bubble

	stopRun, stopFollow func()
	image               sync.Map // path to the bytes that a loss of power leaves
}

// tester is a *testing.T or a *rapid.T.
type tester interface {
	Helper()
	Error(...any)
	Fatal(...any)
	Fatalf(string, ...any)
	Cleanup(func())
}

// quickDir is in memory where it can be: what a sync promises is not tested here.
func quickDir(t tester) string {
	dir, err := os.MkdirTemp("/dev/shm", "logstream-")
	if err != nil {
		dir, err = os.MkdirTemp("", "logstream-")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func newBed(t tester, spool string, repo *blobtest.Memory) *bed {
	open, err := blobtest.Repository(context.Background(), repo)
	if err != nil {
		t.Fatal(err)
	}
	return newBedIn(t, spool, open)
}

func newBedIn(t tester, spool string, open *blob.Repository) *bed {
	b := &bed{t: t, server: newServer(), serverID: db, repo: open, virtual: true}
	b.cfg = Config{Spool: spool, Repository: func() (*blob.Repository, error) { return open, nil }, PieceBytes: 4 << 10,
		Gone: func(err error) bool { return errors.Is(err, errGone) },
		Now:  func() time.Time { b.server.mu.Lock(); defer b.server.mu.Unlock(); return b.server.now() }}
	return b
}

func (b *bed) start() {
	store, err := New(b.cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	b.store = store
	store.toDisk = func(_ *os.File, path string) error {
		text, err := os.ReadFile(path)
		b.image.Store(strings.TrimSuffix(path, ".tmp"), text)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // given up meanwhile
		}
		return err
	}
	loop := func(run func(context.Context) error) func() {
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := run(ctx); err != nil {
				b.t.Error(err)
			}
		})
		return func() { cancel(); wg.Wait() }
	}
	b.stopRun = loop(store.Run)
	b.stopFollow = loop(func(ctx context.Context) error { return store.Follow(ctx, db, b.serverID, b.server.open) })
}

func (b *bed) stop() {
	b.stopRun()
	b.stopFollow()
}

// stopAll is for the end, whatever state it is in.
func (b *bed) stopAll() {
	if b.stopRun != nil {
		b.stop()
	}
}

// log waits until nothing is under way at this moment of the virtual time.
func (b *bed) log() kurabe.InstanceLog {
	if b.virtual {
		synctest.Wait()
	}
	l, _ := b.store.Log(db)
	return l
}

// want fetches a moment and compares every byte, and what the marks promise.
func (b *bed) want(takenAt time.Time, from kurabe.LogPosition, at time.Time) Fetched {
	b.t.Helper()
	dir := filepath.Join(quickDir(b.t), "fetched")
	got, err := b.store.Fetch(context.Background(), db, from, takenAt, at, dir)
	if err != nil {
		b.t.Fatalf("%v; it reaches %+v", err, b.log())
	}
	b.compare(got, from, dir)
	b.checkMarks(got, from, at)
	if err := os.RemoveAll(dir); err != nil {
		b.t.Fatal(err)
	}
	return got
}

func (b *bed) compare(got Fetched, from kurabe.LogPosition, dir string) {
	b.t.Helper()
	end := got.After.Position
	var names []string
	for n := fileNumber(from.File); n <= fileNumber(end.File); n++ {
		length := end.Offset
		if n < fileNumber(end.File) {
			length = b.server.ends[n]
		}
		if length == 0 {
			continue
		}
		names = append(names, fileName(n))
		have, err := os.ReadFile(filepath.Join(dir, fileName(n)))
		if err != nil || !bytes.Equal(have, content(n, 0, length)) {
			b.t.Fatalf("file %d of %d bytes: %d others, %v", n, length, len(have), err)
		}
	}
	if fmt.Sprint(names) != fmt.Sprint(got.Files) {
		b.t.Fatalf("files %v instead of %v", got.Files, names)
	}
	if there, _ := os.ReadDir(dir); len(there) != len(names) {
		b.t.Fatalf("%d files instead of %v", len(there), names)
	}
}

func (b *bed) checkMarks(got Fetched, from kurabe.LogPosition, at time.Time) {
	b.t.Helper()
	if got.After.At.Before(at) || got.After.Position.Compare(from) < 0 || hasMark(got.Before) && got.Before.Until.After(at) {
		b.t.Fatalf("marks %+v around %v", got, at)
	}
	if b.server.epoch > 0 {
		return // no mark is true of what was written by another clock
	}
	for _, w := range b.server.written {
		if w.at.Before(at) && w.to.Compare(got.After.Position) > 0 {
			b.t.Fatalf("written at %v up to %v, before %v and after %+v", w.at, w.to, at, got.After)
		}
		if hasMark(got.Before) && w.to.Compare(got.Before.Position) <= 0 && w.at.After(at) {
			b.t.Fatalf("written at %v up to %v, later than %v and before %+v", w.at, w.to, at, got.Before)
		}
	}
}

// refuse wants no answer for what is not claimed.
func (b *bed) refuse(takenAt time.Time, from kurabe.LogPosition, at time.Time) {
	b.t.Helper()
	dir := filepath.Join(quickDir(b.t), "refused")
	_, err := b.store.Fetch(context.Background(), db, from, takenAt, at, dir)
	var out *RangeError
	if !errors.As(err, &out) {
		b.t.Fatalf("%v of a snapshot of %v at %v: %v; it reaches %+v", at, takenAt, from, err, b.log())
	}
	if _, err := os.Stat(dir); err == nil {
		b.t.Fatal("something was written")
	}
}
