package series

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"kurabe"
)

const (
	ownMost     = 5_000  // series of users
	pendingMost = 50_000 // data that are not written yet

	// slots are the places that a second has for data that came in different flushes, of which
	// there is one a second at most: a datum that is not freshTime old, nor as much ahead, has a
	// place of its own. Any other is kept in its minute, which has minuteSlots.
	slots       = 1000
	minuteSlots = 60 * slots
	freshTime   = 400 * time.Second
)

// Datum is what users measured of a series in the second, or the minute, that the bucket begins
// with. Of its Values, the sum and the extremes are kept.
type Datum struct {
	Labels Labels
	Bucket Bucket
}

type datumKey struct {
	series string
	second int64
	late   bool
}

// Put keeps what users measured. All data of the same second count. A datum that comes more than
// some minutes late or early counts in its minute. CodeInvalidParameterValue for a time that is
// not kept, or one series too many; CodeThrottled when more comes than is written. What was put in
// the last second is lost with the process.
func (s *Store) Put(_ context.Context, data []Datum) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.writable(); err != nil {
		return err
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	now := s.Now()
	if len(s.pending)+len(data) > pendingMost {
		return kurabe.Errorf(kurabe.CodeThrottled, "more data of metrics come than are written; try again")
	}
	added := map[string]bool{}
	for _, d := range data {
		at := time.Unix(d.Bucket.Start, 0)
		if at.Before(now.Add(-s.own.keep)) || at.After(now.Add(s.own.ahead)) {
			return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "the time %s of a datum is not kept", at.UTC().Format(time.RFC3339))
		}
		if _, known := s.known[d.Labels.key()]; !known {
			added[d.Labels.key()] = true
		}
	}
	if len(s.known)+len(added) > ownMost {
		return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "a host keeps %d metrics of users, and there are no more; those that get no data are forgotten after %d days", ownMost, minutesFor/24/time.Hour)
	}
	for _, d := range data {
		s.keep(d, now)
	}
	return nil
}

// keep adds a datum to those that the next flush writes.
func (s *Store) keep(d Datum, now time.Time) {
	key := datumKey{series: d.Labels.key(), second: d.Bucket.Start}
	s.known[key.series] = now
	if age := now.Sub(time.Unix(key.second, 0)).Abs(); age > freshTime {
		key.late, key.second = true, floor(key.second, 60)
	}
	if known := s.pending[key]; known != nil {
		known.Bucket.Add(d.Bucket)
		return
	}
	d.Bucket.Start, d.Bucket.Values = key.second, nil
	s.pending[key] = &d
}

// flushNow writes what users put, unless that was done in this second already.
func (s *Store) flushNow() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.full() {
		return nil
	}
	err := s.flush(s.Now())
	if err != nil {
		s.breaks(err, false)
	}
	return err
}

// flush writes what users put, once a second at most. The caller holds writing.
func (s *Store) flush(now time.Time) error {
	if len(s.pending) == 0 || now.Unix() == s.flushes {
		return nil
	}
	// A clock that was set back does not come to the same places again.
	s.flushes = max(s.flushes+1, now.Unix())
	a := s.own.db.Appender(context.Background())
	for key, d := range s.pending {
		ms, late := key.second*1000+s.flushes%slots, ""
		if key.late {
			ms, late = key.second*1000+s.flushes%minuteSlots, lateField
		}
		if err := put(a, labels.NewBuilder(inside(d.Labels, fieldSum)), late, ms, d.Bucket, 1); err != nil && !misplaced(err) {
			_ = a.Rollback()
			return fmt.Errorf("write users' data: %w", err)
		}
	}
	if err := s.own.guard(a.Commit); err != nil {
		return fmt.Errorf("write users' data: %w", err)
	}
	clear(s.pending)
	return nil
}

// forget forgets the users' series that got no data for as long as they are kept.
func (s *Store) forget(now time.Time) {
	for key, at := range s.known {
		if s.clock.trusted.Load() && now.Sub(at) > s.own.keep {
			delete(s.known, key)
		}
	}
}

// loadKnown finds the series of users.
func (s *Store) loadKnown(now time.Time) error {
	seen := map[string]Labels{}
	s.known = map[string]time.Time{}
	if err := s.own.guard(func() error { return s.own.list(context.Background(), nil, 0, seen) }); err != nil {
		return err
	}
	for key := range seen {
		s.known[key] = now
	}
	return nil
}
