package series

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"kurabe"
)

const (
	fineFor    = 3 * time.Hour
	minutesFor = 15 * 24 * time.Hour

	// measuredMost bounds the series that a host measures: some 60 of each of 160 servers.
	measuredMost = 10_000
	// clockBackTime is for how long the clock is behind the newest sample before it is believed:
	// until then samples are refused, and what a short step has left heals by itself.
	clockBackTime = 2 * time.Minute
	// reopenPause is between two attempts to open a store that is broken.
	reopenPause = 15 * time.Second
)

var errFull = &kurabe.Error{Code: kurabe.CodeUnavailable, Message: "the disk is full, and metrics are not kept until there is room"}

var errNotOpen = &kurabe.Error{Code: kurabe.CodeUnavailable, Message: "the metrics of this host are not open yet; try again"}

// Config is where and how a store keeps its series.
type Config struct {
	Dir      string
	BytesMax int64 // of the folder
	Log      *slog.Logger
	Now      func() time.Time
	Free     func() int64 // bytes of its disk, negative when that is not known
	// Tell is called with what was lost of the store's content, and why.
	Tell func(reason string)
	// Rehearse runs a process with RehearsalArgs and returns the lines that it told; the error says
	// that it did not end by itself. nil: the store is opened without.
	Rehearse func(context.Context) (told []string, err error)
}

// Store holds the series of a host: one value a second of each for 3 hours, and count, sum,
// minimum and maximum of each minute for 15 days. A crash of the process loses nothing that was
// appended, one of the machine some seconds.
type Store struct {
	Config
	fine, minutes, own part

	mu   sync.RWMutex // guards open; held for reading while the parts are in use
	open bool
	// broken is why the store has to be closed and opened again.
	broken  atomic.Pointer[breakage]
	left    int             // databases that panicked
	reserve int64           // bytes of the disk
	running context.Context // of Run: its end ends a compaction that would take seconds

	writing sync.Mutex // guards what follows
	seed    maphash.Seed
	refs    map[uint64]*measured
	newest  int64              // Unix time, ms, of the newest sample
	done    map[int64]struct{} // minutes, Unix time, that are rolled up or had no sample
	pending map[datumKey]*Datum
	known   map[string]time.Time // the users' series, and when each was put last
	flushes int64

	clock clock
}

// measured is a series that samples are appended to.
type measured struct {
	labels Labels
	inside labels.Labels
	ref    storage.SeriesRef
}

// breakage is an error of the store itself; deep: its blocks have to be read through.
type breakage struct {
	err  error
	deep bool
}

// New returns a store that Run opens.
func New(c Config) *Store {
	s := &Store{Config: c, seed: maphash.MakeSeed(), reserve: reserveBytes, running: context.Background()}
	// A block can reach over the newest sample by its length: after the clock was set back, samples
	// are late by as much.
	s.fine = part{name: "seconds", block: 15 * time.Minute, blockMost: 15 * time.Minute, keep: fineFor, share: 40, late: 20 * time.Minute}
	s.minutes = part{name: "minutes", block: 4 * time.Hour, blockMost: 36 * time.Hour, keep: minutesFor, share: 40, late: 5 * time.Hour}
	// Users may put what was two weeks ago, and what is two hours ahead.
	s.own = part{name: "own", block: 4 * time.Hour, blockMost: 36 * time.Hour, keep: minutesFor, share: 10, late: minutesFor, ahead: 3 * time.Hour}
	return s
}

func (s *Store) parts() []*part { return []*part{&s.fine, &s.minutes, &s.own} }

// Append adds a sample of each series, measured at the same time. Samples that are older than the
// newest one of their series are left out. An error tells of samples that were not kept.
func (s *Store) Append(at time.Time, samples []Sample) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.writable(); err != nil {
		return err
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	ms := at.Truncate(time.Second).UnixMilli()
	a := s.fine.db.Appender(context.Background())
	var refused error
	left := 0
	for _, one := range samples {
		if err := s.append(a, ms, at.UnixMilli(), one); err != nil {
			left, refused = left+1, err
		}
	}
	if err := s.fine.guard(a.Commit); err != nil {
		s.breaks(err, false)
		return fmt.Errorf("append samples: %w", err)
	}
	if left < len(samples) {
		s.newest = max(s.newest, ms)
	}
	if refused != nil {
		return fmt.Errorf("%d of %d samples not kept: %w", left, len(samples), refused)
	}
	return nil
}

// append adds a sample at a full second, at its own time when the series has one of that second.
func (s *Store) append(a storage.Appender, second, exact int64, one Sample) error {
	key := s.hash(one.Labels)
	m := s.refs[key]
	if m == nil || !m.labels.equal(one.Labels) {
		if len(s.refs) >= measuredMost {
			return fmt.Errorf("more than %d series", measuredMost)
		}
		m = &measured{labels: one.Labels, inside: inside(one.Labels, fieldValue)}
		s.refs[key] = m
	}
	ref, err := a.Append(m.ref, m.inside, second, one.Value)
	if errors.Is(err, storage.ErrDuplicateSampleForTimestamp) && exact > second {
		ref, err = a.Append(m.ref, m.inside, exact, one.Value)
	}
	if err == nil {
		m.ref = ref
	}
	return err
}

func (s *Store) hash(l Labels) uint64 {
	var h maphash.Hash
	h.SetSeed(s.seed)
	for _, one := range l {
		h.WriteString(one.Name)
		h.WriteByte(0)
		h.WriteString(one.Value)
		h.WriteByte(0)
	}
	return h.Sum64()
}

// usable says why the parts cannot be used. The caller holds mu.
func (s *Store) usable() error {
	if b := s.broken.Load(); b != nil {
		return &kurabe.Error{Code: kurabe.CodeUnavailable, Message: "the metrics of this host are damaged and will be opened again; try again", Err: b.err}
	}
	if !s.open {
		return errNotOpen
	}
	return nil
}

// writable is usable, and that there is room.
func (s *Store) writable() error {
	if err := s.usable(); err != nil || !s.full() {
		return err
	}
	return errFull
}

func (s *Store) breaks(err error, deep bool) { s.broken.CompareAndSwap(nil, &breakage{err, deep}) }

// Run opens the store, rolls up each minute, and keeps the folder below its limit, until ctx ends;
// then it closes the store.
func (s *Store) Run(ctx context.Context) error {
	s.running = ctx
	defer s.close()
	var maintains sync.WaitGroup
	defer maintains.Wait()
	maintains.Go(func() { s.maintainEach(ctx, time.Minute) })
	every := time.NewTicker(time.Second)
	defer every.Stop()
	pause := time.Duration(0)
	for {
		pause -= time.Second
		if pause <= 0 && s.reopen() {
			pause = reopenPause
		}
		s.tick()
		select {
		case <-every.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *Store) maintainEach(ctx context.Context, pause time.Duration) {
	every := time.NewTicker(pause)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			s.maintain(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// tick is the work of a second.
func (s *Store) tick() {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.writable() != nil {
		return
	}
	now := s.Now()
	s.clock.tick(now)
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.clock.back(now, s.newest) {
		s.breaks(errClockBack, false)
		return
	}
	err := s.flush(now)
	if err == nil {
		err = s.rollUp(now)
	}
	if s.clock.ticks%3600 == 0 {
		clear(s.refs) // of series that are no more; the others come again
		s.forget(now)
	}
	if err != nil {
		s.breaks(err, false)
	}
}
