package postgres

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/postgres/wal"
	"kurabe/internal/proc"
)

// stream is what a follower hears of its source. The hour at which it has heard something is
// that of its wall clock: after that was set back it lies ahead, and would be believed for
// hours. So it only tells words apart, and they count from when they were first seen here.
type stream struct {
	word string // the process that receives, and the hour
	at   time.Time
}

// lately is at the end of a word that has come within streamTimeout, as far as the clock says.
const lately = " lately"

// streamWithin is streamTimeout.
const streamWithin = 3 * time.Second

// follows says whether something has come lately, "" is nothing. Of the first word that is
// seen the clock alone says how old it is, and a clock that is wrong says that it is not of
// now; the next one comes soon.
func (s *stream) follows(word string, now time.Time) bool {
	word, fresh := strings.CutSuffix(word, lately)
	if word != s.word {
		first := s.word == ""
		s.word = word
		if s.at = now; first && !fresh {
			s.at = time.Time{}
		}
	}
	return word != "" && !s.at.IsZero() && now.Sub(s.at) < streamWithin
}

// clocksApart is from where on the time between a message's hours, of the source's clock when
// it was sent and of the follower's when it came, says how far these are apart. What is less
// may be the way of a message that waited behind others.
const clocksApart = 60.0

// lagOf is how old the newest transaction is that a follower has applied, which is behind. The
// hour of that is one of the source's clock. Where a clock was set since, no time need come of
// it: a server that cannot tell.
func lagOf(ageSeconds *float64, apartSeconds float64) time.Duration {
	if ageSeconds == nil {
		return engine.LagUnknown
	}
	age := *ageSeconds
	if math.Abs(apartSeconds) > clocksApart {
		age -= apartSeconds
	}
	if age < 0 {
		return engine.LagUnknown
	}
	return time.Duration(age * float64(time.Second))
}

// logEndSQL is how far the log of a follower is on disk, or was when it was promoted: both
// numbers stand still from then on.
const logEndSQL = "GREATEST(pg_catalog.pg_last_wal_receive_lsn(), pg_catalog.pg_last_wal_replay_lsn())"

// processSQL tells one run of a server from another. Within one no follower is rewound or
// cloned, so its log only grows. It is the time of the clock at its start, once for all.
const processSQL = "pg_catalog.pg_postmaster_start_time()::text"

// arrival is a place in the log of a follower, and a moment of CLOCK_BOOTTIME by which its
// log was there.
type arrival struct {
	process string
	end     wal.LSN
	at      int64
}

// arrivals are the newest of each follower here that was looked at in the life of this program.
type arrivals struct {
	mu sync.Mutex // guards of
	of map[kurabe.InstanceID]arrival
}

// note keeps the moment at which an end of the log was seen first.
func (s *arrivals) note(id kurabe.InstanceID, process string, end wal.LSN, at int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last, known := s.of[id]; known && last.process == process && last.end == end {
		return
	}
	if s.of == nil {
		s.of = map[kurabe.InstanceID]arrival{}
	}
	s.of[id] = arrival{process, end, at}
}

// by is a moment by which the log of a server was there up to end, 0 when none is known.
func (s *arrivals) by(id kurabe.InstanceID, process string, end wal.LSN) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := s.of[id]; last.process == process && last.end >= end {
		return last.at
	}
	return 0
}

// LastWord implements engine.Driver: by the log. The writer's word from a follower is a
// record that the follower has flushed (proof), and is worth no more than from when that was
// written. All that this server has was written before it was seen here.
func (d *Driver) LastWord(ctx context.Context, i engine.Instance) (at int64, err error) {
	err = d.withAdmin(ctx, i, func(conn *pgx.Conn) error {
		var recovering bool
		var process, position string
		err := conn.QueryRow(ctx, "SELECT pg_catalog.pg_is_in_recovery(), "+processSQL+", COALESCE("+logEndSQL+"::text, '')").Scan(&recovering, &process, &position)
		if err != nil || recovering || position == "" {
			return err
		}
		end, err := wal.ParseLSN(position)
		if err == nil {
			at = d.arrivals.by(i.Instance, process, end)
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("find when the last log came: %w", err)
	}
	return at, nil
}

// arrived notes how far the log of a follower is that was looked at just now.
func (w *watcher) arrived(end wal.LSN) { w.arrivals.note(w.instance, w.process, end, proc.Boottime()) }
