package series

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// settleTime is how long after its end a minute is rolled up: a slow server's samples of its last
// seconds come later. What comes later still stays in seconds.
const settleTime = 10 * time.Second

// rollUp rolls up the minutes that are over, also those that a former process has left. A minute
// is rolled up once: what is measured when the clock was set back and comes to it again stays in
// seconds. The caller holds writing.
func (s *Store) rollUp(now time.Time) error {
	last := now.Add(-settleTime - time.Minute).Truncate(time.Minute).Unix()
	first := now.Add(-fineFor).Truncate(time.Minute).Unix()
	for m := first; m <= last; m += 60 {
		if _, done := s.done[m]; done {
			continue
		}
		if err := s.rollUpMinute(m); err != nil {
			return fmt.Errorf("roll up a minute: %w", err)
		}
		s.done[m] = struct{}{}
	}
	for m := range s.done {
		if m < first-3600 {
			delete(s.done, m)
		}
	}
	return nil
}

// rollUpMinute writes all of a minute, and that it is done, in one record of the log.
func (s *Store) rollUpMinute(m int64) error {
	from, to := m*1000, m*1000+59_999
	a := s.minutes.db.Appender(context.Background())
	any := false
	err := s.fine.each(context.Background(), from, to, false, []*labels.Matcher{equal(fieldLabel, fieldValue)}, func(in labels.Labels, it chunkenc.Iterator) error {
		var b Bucket
		for it.Next() != chunkenc.ValNone {
			if t, v := it.At(); t >= from && t <= to {
				b.Add(Bucket{Count: 1, Sum: v, Min: v, Max: v})
			}
		}
		if b.Count == 0 {
			return it.Err()
		}
		any = true
		fields := labels.NewBuilder(in)
		return errors.Join(it.Err(), put(a, fields, "", from, b, 60))
	})
	if err == nil && any {
		_, err = a.Append(0, labels.FromStrings(fieldLabel, fieldDone), from, 1)
	}
	switch {
	case err == nil && any:
		return s.minutes.guard(a.Commit)
	case misplaced(err):
		err = nil // the clock was set back: newer minutes are there
	}
	return errors.Join(err, a.Rollback())
}

// misplaced says whether an error is of a sample's time, which is no fault of the store.
func misplaced(err error) bool {
	for _, e := range []error{storage.ErrOutOfOrderSample, storage.ErrOutOfBounds, storage.ErrTooOldSample, storage.ErrDuplicateSampleForTimestamp} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// put appends the fields of a bucket, without those that a reader knows from the sum: a count of
// usual, and a minimum and maximum that are the average.
func put(a storage.Appender, l *labels.Builder, late string, ms int64, b Bucket, usual float64) error {
	fields := []struct {
		name  string
		value float64
		known bool
	}{
		{fieldSum, b.Sum, false}, {fieldMin, b.Min, b.Min == b.Sum/b.Count}, {fieldMax, b.Max, b.Max == b.Sum/b.Count}, {fieldCount, b.Count, b.Count == usual},
	}
	for _, f := range fields {
		if f.known {
			continue
		}
		if _, err := a.Append(0, l.Set(fieldLabel, late+f.name).Labels(), ms, f.value); err != nil {
			return err
		}
	}
	return nil
}

// loadDone finds the minutes that are rolled up.
func (s *Store) loadDone(now time.Time) error {
	s.done = map[int64]struct{}{}
	from := now.Add(-fineFor - time.Hour).UnixMilli()
	return s.minutes.each(context.Background(), from, math.MaxInt64, false, []*labels.Matcher{equal(fieldLabel, fieldDone)}, func(_ labels.Labels, it chunkenc.Iterator) error {
		for it.Next() != chunkenc.ValNone {
			if t, _ := it.At(); t >= from {
				s.done[t/1000] = struct{}{}
			}
		}
		return it.Err()
	})
}

// rolledUntil is the end of the newest minute that is rolled up, Unix time in ms.
func (s *Store) rolledUntil(now time.Time) (until int64) {
	s.writing.Lock()
	defer s.writing.Unlock()
	for m := range s.done {
		if m < now.Unix() {
			until = max(until, (m+60)*1000)
		}
	}
	return until
}
