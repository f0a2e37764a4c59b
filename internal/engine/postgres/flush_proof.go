package postgres

import (
	"context"
	"fmt"
	"time"

	"kurabe"
	"kurabe/internal/engine/postgres/wal"
	"kurabe/internal/proc"
)

// proof finds out that a follower followed at a moment of ours. What it has flushed says
// nothing of when; so a record of no meaning is written at a known moment, and a follower
// that has flushed it has done so later.
type proof struct {
	marks []mark // oldest first
	known map[kurabe.InstanceID]int64
}

// mark is the end of a record, and a moment before it was written.
type mark struct {
	end wal.LSN
	at  int64
}

// marksMost bounds what is not answered yet: at four looks a second it is two seconds, after
// which an answer is of no use.
const marksMost = 8

// Prove implements engine.Prover.
func (w *watcher) Prove(on bool) { w.proves = on }

// nudgeAfter is after which silence of a follower its writer gives it something to answer.
// Either end of a stream speaks by itself once a second or so, but by its wall clock: where
// both were set back neither does, until that hour comes again. One word of log ends that.
const nudgeAfter = 1500 * time.Millisecond

// challenge writes the record, when that is wanted of a writer. It is a transaction of its
// own, which waits for no follower (see ownSession) but is flushed at once: the server's own
// writer of the log, which would flush it within wal_writer_delay (200 ms), goes by the wall
// clock, and after that was set back does nothing until its hour comes again (xlog.c,
// XLogBackgroundFlush).
func (w *watcher) challenge(ctx context.Context) error {
	silent := w.silent
	w.silent = false // until the look of a writer finds so again
	if !w.proves {
		w.proof.marks = nil
		if !silent {
			return nil
		}
	}
	at := proc.Boottime()
	var text *string
	err := w.conn.QueryRow(ctx, "SELECT CASE WHEN NOT pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_logical_emit_message(true, 'kurabe', '')::text END").Scan(&text)
	if err != nil || text == nil || !w.proves {
		w.proof.marks = nil // of a time as a writer that is over
		return err
	}
	end, err := wal.ParseLSN(*text)
	if err != nil {
		return fmt.Errorf("challenge: %w", err)
	}
	w.proof.marks = append(w.proof.marks, mark{end, at})
	if len(w.proof.marks) > marksMost {
		w.proof.marks = w.proof.marks[1:]
	}
	return nil
}

// answered is the newest moment at which a follower is known to have followed, 0 when none
// is.
func (p *proof) answered(id kurabe.InstanceID, flushed wal.LSN) int64 {
	for _, m := range p.marks {
		if flushed >= m.end {
			if p.known == nil {
				p.known = map[kurabe.InstanceID]int64{}
			}
			p.known[id] = max(p.known[id], m.at)
		}
	}
	return p.known[id]
}
