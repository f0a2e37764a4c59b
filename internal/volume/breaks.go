package volume

import (
	"context"
	"time"
)

// workStretch is how long is worked at a stretch: long against a look at a file, short
// against what a disk's other users notice.
const workStretch = 5 * time.Millisecond

// breaks has long work leave the machine to others for most of the time. What is
// bounded is time, not bytes as by Pace: the price of a look at extents is unknown.
type breaks struct {
	share int // one part of the time is work
	now   func() time.Time
	sleep func(time.Duration) error
	began time.Time // of the stretch
}

// newBreaks lets it work one part in share, until ctx ends.
func newBreaks(ctx context.Context, share int) *breaks {
	sleep := func(d time.Duration) error {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
			return ctx.Err()
		}
	}
	return &breaks{share: share, now: time.Now, sleep: sleep, began: time.Now()}
}

// step is called between parts of the work.
func (b *breaks) step() error {
	if b.now().Sub(b.began) < workStretch {
		return nil
	}
	return b.rest()
}

func (b *breaks) rest() error {
	err := b.sleep(b.now().Sub(b.began) * time.Duration(b.share-1))
	b.began = b.now()
	return err
}
