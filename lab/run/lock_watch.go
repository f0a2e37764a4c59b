package run

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"kurabe/lab/dial"
	"kurabe/lab/result"
	"kurabe/lab/study"
)

// lockWatchEvery: a wait of a tenth of a second is seen, as by the probe. It stops the
// writers that queue up behind it, so it is the story of most gaps.
const lockWatchEvery = 100 * time.Millisecond

// lockWatch sees a change wait for a lock, from a session of its own.
type lockWatch struct {
	session  *dial.Session
	question string // how many sessions of the change wait
}

// openWatch is told the session that makes the change; a tool opens its own, which are
// known by what they do.
func openWatch(ctx context.Context, change *dial.Session, s dial.Server, tool string) (*lockWatch, error) {
	question, ask := "SELECT count(*) FROM information_schema.PROCESSLIST WHERE STATE LIKE 'Waiting for%%lock' AND ID = %d", "SELECT CONNECTION_ID()"
	if s.Engine == study.Postgres {
		question, ask = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND pid = %d", "SELECT pg_backend_pid()"
	}
	rows, err := change.Rows(ctx, ask)
	if err != nil {
		return nil, err
	}
	if len(rows) != 1 || len(rows[0]) != 1 {
		return nil, fmt.Errorf("%s: %v", ask, rows)
	}
	id, err := strconv.ParseInt(rows[0][0], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ask, err)
	}
	w := &lockWatch{question: fmt.Sprintf(question, id)}
	if tool != "" {
		w.question = "SELECT count(*) FROM information_schema.PROCESSLIST WHERE STATE LIKE 'Waiting for%lock' AND ID <> CONNECTION_ID() AND DB = DATABASE()" +
			" AND (INFO LIKE '%CREATE TRIGGER%' OR INFO LIKE '%DROP TRIGGER%' OR INFO LIKE '%RENAME TABLE%')"
	}
	if w.session, err = dial.Open(ctx, s); err != nil {
		return nil, err
	}
	return w, nil
}

// run tells of each wait, its begin and its end, until ctx ends. A question that fails
// ends the watch: a server that is away is the load's to tell.
func (w *lockWatch) run(ctx context.Context, tell func(kind, text string)) {
	tick := time.NewTicker(lockWatchEvery)
	defer tick.Stop()
	waiting := false
	for {
		select {
		case <-ctx.Done():
			if waiting {
				tell(result.EventLockWait, "end")
			}
			return
		case <-tick.C:
		}
		rows, err := w.session.Rows(ctx, w.question)
		if err != nil {
			if waiting {
				tell(result.EventLockWait, "end")
			}
			return
		}
		now := len(rows) == 1 && len(rows[0]) == 1 && rows[0][0] != "0"
		switch {
		case now && !waiting:
			tell(result.EventLockWait, "begin")
		case !now && waiting:
			tell(result.EventLockWait, "end")
		}
		waiting = now
	}
}
