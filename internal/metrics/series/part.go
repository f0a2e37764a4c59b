package series

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/compression"
)

// A series of ours is up to eight inside: a label tells which. Its name sorts behind all others,
// so that those of one series are neighbours.
const (
	fieldLabel = "~"

	fieldValue = "v" // a sample of a second

	fieldSum   = "0sum" // of a minute, or of a datum; the others only where they differ from what it says
	fieldMin   = "1min"
	fieldMax   = "2max"
	fieldCount = "3count"
	// lateField begins the names of the same for data whose place in their minute is not kept.
	lateField = "l"

	fieldDone = "done" // has a sample at each minute that is rolled up
)

// inside returns the labels of a field of a series.
func inside(l Labels, field string) labels.Labels {
	b := labels.NewScratchBuilder(len(l) + 1)
	for _, one := range l {
		b.Add(one.Name, one.Value)
	}
	b.Add(fieldLabel, field)
	return b.Labels()
}

// outside returns the series of a field's labels.
func outside(in labels.Labels) (l Labels, field string) {
	in.Range(func(one labels.Label) {
		if one.Name == fieldLabel {
			field = one.Value
			return
		}
		l = append(l, Label{one.Name, one.Value})
	})
	return l, field
}

// part is one database of the store.
type part struct {
	name             string
	block, blockMost time.Duration
	keep             time.Duration
	share            int64         // percent of the limit
	late, ahead      time.Duration // of samples
	dir              string
	bytesMax         int64
	db               *tsdb.DB
	// lost says that db panicked: it may hold a lock for ever, so it is left and not closed.
	lost atomic.Bool
}

// guard does something with the database, which panics where it cannot write a chunk. Its files are
// mapped: where the disk does not give a page, memory faults.
func (p *part) guard(do func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if why := recover(); why != nil {
			p.lost.Store(true)
			err = fmt.Errorf("the database of %s gave up: %v", p.name, why)
		}
	}()
	return do()
}

// open opens the part; the caller has seen to its damages.
func (p *part) open(ctx context.Context, log *slog.Logger, c *clock) (err error) {
	o := tsdb.DefaultOptions()
	o.MinBlockDuration, o.MaxBlockDuration = p.block.Milliseconds(), p.blockMost.Milliseconds()
	o.RetentionDuration = p.keep.Milliseconds()
	o.OutOfOrderTimeWindow = p.late.Milliseconds()
	// The defaults are for millions of series.
	o.StripeSize = 256
	o.HeadChunksWriteBufferSize = chunks.MinWriteBufferSize
	o.WALSegmentSize, o.MaxBlockChunkSegmentSize = 4<<20, 32<<20
	o.WALCompression = compression.Snappy
	o.WALReplayConcurrency = 1
	o.NewCompactorFunc = func(_ context.Context, r prometheus.Registerer, l *slog.Logger, ranges []int64, pool chunkenc.Pool, o *tsdb.Options) (tsdb.Compactor, error) {
		return tsdb.NewLeveledCompactorWithOptions(ctx, r, l, ranges, pool, tsdb.LeveledCompactorOptions{MaxBlockChunkSegmentSize: o.MaxBlockChunkSegmentSize, EnableOverlappingCompaction: true})
	}
	o.NoLockfile = true // the data folder has one
	// What it would do by itself, maintain does: nobody recovers a panic of its goroutines.
	o.BlockReloadInterval = 1000 * time.Hour
	o.BlocksToDelete = func(blocks []*tsdb.Block) map[ulid.ULID]struct{} { return p.deletable(blocks, c) }
	if p.db, err = tsdb.Open(p.dir, log, nil, o, nil); err == nil {
		p.db.DisableCompactions()
	}
	return err
}

// deletable are the blocks that are too old, by a clock that is trusted, those that are ahead of
// it, and the oldest ones beyond the limit.
func (p *part) deletable(blocks []*tsdb.Block, c *clock) map[ulid.ULID]struct{} {
	gone := map[ulid.ULID]struct{}{}
	now := c.now.Load()
	oldest, newest := now-p.keep.Milliseconds(), now+(p.ahead+p.block).Milliseconds()
	left := p.bytesMax - p.headBytes()
	slices.SortFunc(blocks, func(a, b *tsdb.Block) int { return cmp.Compare(b.Meta().MaxTime, a.Meta().MaxTime) })
	for _, b := range blocks {
		left -= b.Size()
		m := b.Meta()
		if left < 0 || m.Compaction.Deletable || c.trusted.Load() && (m.MaxTime < oldest || m.MinTime > newest) {
			gone[m.ULID] = struct{}{}
		}
	}
	return gone
}

// expire removes what is too old of a part that gets nothing new: the database removes blocks only
// when it has written another one.
func (p *part) expire(ctx context.Context, c *clock) error {
	h, oldest := p.db.Head(), c.now.Load()-p.keep.Milliseconds()
	if c.trusted.Load() && h.NumSeries() > 0 && max(h.MaxTime(), h.MaxOOOTime()) < oldest {
		return p.cut(ctx, 0) // a block that goes at once
	}
	blocks := p.db.Blocks()
	gone := p.deletable(slices.Clone(blocks), c)
	if len(gone) == 0 {
		return nil
	}
	for _, b := range blocks {
		if _, old := gone[b.Meta().ULID]; old {
			if err := b.Delete(ctx, math.MinInt64, math.MaxInt64, labels.MustNewMatcher(labels.MatchNotEqual, fieldLabel, "")); err != nil {
				return fmt.Errorf("remove an old block of %s: %w", p.name, err)
			}
		}
	}
	return p.db.CleanTombstones()
}

// headBytes is the size of what is not in blocks yet.
func (p *part) headBytes() (n int64) {
	for _, folder := range []string{"wal", "wbl", "chunks_head"} {
		n += folderBytes(filepath.Join(p.dir, folder))
	}
	return n
}

// cut makes a block of what is in the head, but for what is newer than slack before its newest
// sample, and shortens its log.
func (p *part) cut(ctx context.Context, slack time.Duration) error {
	h := p.db.Head()
	if last := h.MaxTime() - slack.Milliseconds(); h.NumSeries() > 0 && h.MinTime() <= last {
		if err := p.db.CompactHead(tsdb.NewRangeHead(h, h.MinTime(), last)); err != nil {
			return fmt.Errorf("write a block of %s: %w", p.name, err)
		}
	}
	if err := p.db.CompactOOOHead(ctx); err != nil {
		return fmt.Errorf("write late blocks of %s: %w", p.name, err)
	}
	return nil
}

// folderBytes is the size of the files below a folder; files come and go meanwhile.
func folderBytes(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		if i, err := d.Info(); err == nil {
			n += i.Size()
		}
		return nil
	})
	return n
}
