package series

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"kurabe/internal/logkey"
)

// What is set aside stays for whoever looks into the damage.
const (
	asideFolder = "damaged"
	asideMost   = 2
	asideShare  = 10 // percent of the limit

	// reserveBytes of the disk are left to others, and above all to the database's own writes: it
	// takes a failed one badly.
	reserveBytes = 256 << 20
	// leftMost bounds the databases that panicked, and whose memory is lost, in this process.
	leftMost = 3
)

// reopen opens a store that is not open, and closes one that is broken before. It says whether
// there was something to do.
func (s *Store) reopen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	why := s.broken.Load()
	if s.open && why == nil || s.full() || s.left > leftMost {
		return false
	}
	if why == nil {
		why = &breakage{}
	}
	now := s.Now()
	back := s.open && errors.Is(why.err, errClockBack)
	if back {
		why.err = errors.Join(why.err, s.cutAt(now))
	}
	s.closeParts()
	if back {
		s.dropAhead(now)
	}
	if why.err != nil {
		s.Tell("the metrics of this host are opened again: " + why.err.Error())
	}
	err := s.rehearse()
	if err == nil {
		err = s.openParts(now, why.deep)
	}
	if err != nil {
		s.closeParts()
		s.Log.Warn("metrics not opened", logkey.Error, err)
		s.broken.Store(&breakage{err: err, deep: !passing(err)})
		return true
	}
	if back {
		s.newest = now.UnixMilli()
	}
	s.broken.Store(nil)
	s.open = true
	return true
}

func (s *Store) openParts(now time.Time, deep bool) error {
	if s.pending == nil {
		s.pending = map[datumKey]*Datum{}
	}
	s.refs = map[uint64]*measured{}
	s.clock.now.Store(now.UnixMilli())
	s.clock.trusted.Store(false) // until the time of what is there is known
	newest := int64(math.MinInt64)
	for _, p := range s.parts() {
		p.dir, p.bytesMax = filepath.Join(s.Dir, p.name), s.BytesMax/100*p.share
		if err := s.openPart(p, deep); err != nil {
			return fmt.Errorf("open %s: %w", p.name, err)
		}
		if p != &s.own {
			newest = max(newest, p.newest())
		}
	}
	s.newest = newest
	var at time.Time
	if newest > 0 {
		at = time.UnixMilli(newest)
	}
	s.clock.begin(at)
	// A former process may have written in this second.
	s.flushes = max(s.flushes, now.Unix())
	return errors.Join(s.loadDone(now), s.loadKnown(now))
}

// openPart opens a part without the blocks that are damaged, and begins it anew where that is not
// enough.
func (s *Store) openPart(p *part, deep bool) error {
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return err
	}
	said := &words{to: s.Log}
	log := slog.New(said)
	open := func() error {
		err := p.guard(func() error { return p.open(s.running, log, &s.clock) })
		if p.lost.Swap(false) {
			s.left++
		}
		return err
	}
	s.checkBlocks(p, log, deep)
	err := open()
	if err != nil && !passing(err) {
		s.setAside(p.dir, err)
		err = open()
	}
	for _, one := range said.end() {
		s.Tell("the metrics of this host were repaired: " + one)
	}
	return err
}

// passing says whether an error is of the machine, not of the files.
func passing(err error) bool {
	for _, e := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EROFS, fs.ErrPermission} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// checkBlocks sets aside the blocks that cannot be opened or, if asked for, read.
func (s *Store) checkBlocks(p *part, log *slog.Logger, deep bool) {
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		return // opening will say it
	}
	for _, e := range entries {
		if _, err := ulid.ParseStrict(e.Name()); err != nil {
			continue
		}
		path := filepath.Join(p.dir, e.Name())
		err := p.guard(func() error {
			b, err := tsdb.OpenBlock(log, path, nil, nil)
			if err == nil && deep {
				err = readThrough(b)
			}
			if b != nil {
				err = errors.Join(err, b.Close())
			}
			return err
		})
		p.lost.Store(false)
		if err != nil && !passing(err) {
			s.setAside(path, err)
		}
	}
}

func readThrough(b *tsdb.Block) error {
	q, err := tsdb.NewBlockQuerier(b, math.MinInt64, math.MaxInt64)
	if err != nil {
		return err
	}
	defer q.Close()
	set := q.Select(context.Background(), false, nil, labels.MustNewMatcher(labels.MatchNotEqual, fieldLabel, ""))
	var it chunkenc.Iterator
	for set.Next() {
		it = set.At().Iterator(it)
		for it.Next() != chunkenc.ValNone {
		}
		if it.Err() != nil {
			return it.Err()
		}
	}
	return set.Err()
}

// setAside moves a folder of the store to those that are damaged, of which few are kept.
func (s *Store) setAside(path string, why error) {
	aside := filepath.Join(s.Dir, asideFolder)
	to := filepath.Join(aside, s.Now().UTC().Format("20060102T150405.000Z")+"-"+filepath.Base(path))
	err := os.MkdirAll(aside, 0o700)
	if err == nil {
		err = os.Rename(path, to)
	}
	if err != nil {
		err = errors.Join(err, os.RemoveAll(path))
	}
	s.Tell(fmt.Sprintf("the metrics in %s were set aside as %s: %v", path, to, errors.Join(why, err)))
	entries, _ := os.ReadDir(aside) // by name, so by time
	slices.Reverse(entries)
	left := s.BytesMax / 100 * asideShare
	for n, e := range entries {
		old := filepath.Join(aside, e.Name())
		if left -= folderBytes(old); n >= asideMost || left < 0 {
			_ = os.RemoveAll(old) // again at the next one
		}
	}
}

// newest is the time of the newest sample, in ms.
func (p *part) newest() int64 {
	at := p.db.Head().MaxTime()
	for _, b := range p.db.Blocks() {
		at = max(at, b.Meta().MaxTime-1)
	}
	return at
}

// cutAt makes blocks of what is in memory, so that none is of times before and after now.
func (s *Store) cutAt(now time.Time) (err error) {
	for _, p := range s.parts() {
		h, at := p.db.Head(), now.Add(p.ahead).UnixMilli()
		if h.MinTime() < at && at < h.MaxTime() {
			err = errors.Join(err, p.guard(func() error { return p.db.CompactHead(tsdb.NewRangeHead(h, h.MinTime(), at-1)) }))
		}
		err = errors.Join(err, p.guard(func() error { return p.cut(context.Background(), 0) }))
	}
	return err
}

// dropAhead removes from parts that are closed what is ahead of the clock.
func (s *Store) dropAhead(now time.Time) {
	for _, p := range s.parts() {
		for _, head := range []string{"wal", "wbl", "chunks_head"} { // cutAt has made blocks of them
			if err := os.RemoveAll(filepath.Join(p.dir, head)); err != nil {
				s.Log.Warn("samples ahead of the clock not removed", logkey.Error, err)
			}
		}
		entries, _ := os.ReadDir(p.dir)
		for _, e := range entries {
			path := filepath.Join(p.dir, e.Name())
			if b, err := tsdb.OpenBlock(s.Log, path, nil, nil); err == nil {
				ahead := b.Meta().MinTime >= now.Add(p.ahead).UnixMilli()
				_ = b.Close()
				if ahead {
					s.setAside(path, errClockBack)
				}
			}
		}
	}
}

// full says whether the disk has too little room to write.
func (s *Store) full() bool {
	free := s.Free()
	return free >= 0 && free < s.reserve
}

// maintain writes what is complete into chunks and blocks, early of a part that is too large
// without any block, and removes old blocks.
func (s *Store) maintain(ctx context.Context) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, p := range s.parts() {
		if s.writable() != nil {
			return
		}
		err := p.guard(func() error {
			p.db.ForceHeadMMap()
			if p.headBytes() > p.bytesMax {
				return p.cut(ctx, time.Minute)
			}
			return errors.Join(p.db.Compact(ctx), p.expire(ctx, &s.clock))
		})
		if err != nil && ctx.Err() == nil {
			s.breaks(err, p.lost.Load())
		}
	}
}

// close writes what is pending and closes the store.
func (s *Store) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.full() {
		return // closing writes; the next start reads the log
	}
	if s.usable() == nil {
		s.flushes-- // whatever was written in this second
		if err := s.flush(s.Now()); err != nil {
			s.Log.Warn("metrics not written", logkey.Error, err)
		}
	}
	s.closeParts()
}

func (s *Store) closeParts() {
	for _, p := range s.parts() {
		if p.db == nil {
			continue
		}
		if p.lost.Swap(false) {
			s.left++
		} else if err := p.guard(p.db.Close); err != nil {
			s.Log.Warn("metrics not closed", "part", p.name, logkey.Error, err)
			p.lost.Store(false)
		}
		p.db = nil
	}
	s.open = false
}

// words takes what the database says: its errors are warnings of ours, since it goes on, and the
// rest is for debugging. While a part is opened, errors and warnings are also kept.
type words struct {
	to *slog.Logger

	mu     sync.Mutex // guards the rest
	kept   []string
	opened bool
}

// end returns what was kept, and ends that.
func (w *words) end() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.opened = true
	return w.kept
}

// Enabled implements slog.Handler.
func (w *words) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

// Handle implements slog.Handler.
func (w *words) Handle(ctx context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString(r.Message)
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&b, ", %s %v", a.Key, a.Value)
		return true
	})
	level := slog.LevelDebug
	if r.Level >= slog.LevelError {
		level = slog.LevelWarn
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.opened && !strings.HasPrefix(r.Message, "Overlapping blocks") {
		w.kept = append(w.kept, b.String())
	}
	w.to.Log(ctx, level, "metrics database", "text", b.String())
	return nil
}

// WithAttrs implements slog.Handler.
func (w *words) WithAttrs([]slog.Attr) slog.Handler { return w }

// WithGroup implements slog.Handler.
func (w *words) WithGroup(string) slog.Handler { return w }
