package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"kurabe/internal/engine"
	"kurabe/internal/engine/postgres/wal"
)

var _ engine.Comparer = (*Driver)(nil)

// reads says whether a server is a read replica: it follows, and lets clients in.
func reads(i engine.Instance) bool { return follows(i) && i.Role.ServesReads }

// probeRead logs in over the endpoint as a client does, and reads. In a replica no login can
// be made for that: the service's own role comes in, by the certificate of this very server.
func (d *Driver) probeRead(ctx context.Context, i engine.Instance, caFile string) error {
	conn, err := d.memberConn(ctx, i, caFile, i.Listens(), i.Port)
	if err != nil {
		return fmt.Errorf("probe %s: log in: %w", endpoint(i), err)
	}
	defer closeConn(ctx, conn)
	if _, err := inRecovery(ctx, conn); err != nil {
		return fmt.Errorf("probe %s: read: %w", endpoint(i), err)
	}
	return nil
}

// Compare implements engine.Comparer. A replica gets the log as soon as its writer has it, so
// when that dies it may have log that nobody else has. Its new source begins another timeline
// before that place, and the server would ask for it for ever. So it is when the source has
// no longer what the replica lacks.
func (d *Driver) Compare(ctx context.Context, i engine.Instance, caFile string) error {
	source, err := sourceOf(i)
	if err != nil {
		return fmt.Errorf("compare: %w", err)
	}
	if err := d.compare(ctx, i, caFile); err != nil {
		return fmt.Errorf("compare with %s: %w", source.ID, err)
	}
	return nil
}

func (d *Driver) compare(ctx context.Context, i engine.Instance, caFile string) error {
	var own walEnd
	err := d.withAdmin(ctx, i, func(conn *pgx.Conn) (err error) {
		own, err = readWALEnd(ctx, conn)
		return err
	})
	if err != nil {
		return err
	}
	conn, err := d.sourceConn(ctx, i, caFile)
	if err != nil {
		return err
	}
	defer closeConn(ctx, conn)
	its, err := readWALEnd(ctx, conn)
	if err != nil {
		return fmt.Errorf("ask the source: %w", err)
	}
	return own.continuedBy(its)
}

// walEnd is what a running server has of the log: from where on, up to where, and the
// timelines that it came through, of which the last one is that of the end.
type walEnd struct {
	oldest, at wal.LSN
	history    []wal.Stretch
}

// walEndSQL takes the timeline from the names of the segments: a follower that has begun
// with another one has a segment of that. The place is that of what it has received.
const walEndSQL = `SELECT max(pg_catalog.left(w.name, 8)), min(pg_catalog.right(w.name, 16)),
	(SELECT setting::bigint FROM pg_catalog.pg_settings WHERE name = 'wal_segment_size'),
	(CASE WHEN pg_catalog.pg_is_in_recovery()
		THEN GREATEST(pg_catalog.pg_last_wal_receive_lsn(), pg_catalog.pg_last_wal_replay_lsn())
		ELSE pg_catalog.pg_current_wal_flush_lsn() END)::text
	FROM pg_catalog.pg_ls_waldir() w WHERE w.name ~ '^[0-9A-F]{24}$'`

func readWALEnd(ctx context.Context, conn *pgx.Conn) (walEnd, error) {
	var timeline, oldest, at string
	var segment int64
	if err := conn.QueryRow(ctx, walEndSQL).Scan(&timeline, &oldest, &segment, &at); err != nil {
		return walEnd{}, err
	}
	number, err := strconv.ParseUint(timeline, 16, 32)
	high, highErr := strconv.ParseUint(oldest[:8], 16, 32)
	low, lowErr := strconv.ParseUint(oldest[8:], 16, 32)
	end, endErr := wal.ParseLSN(at)
	if err := errors.Join(err, highErr, lowErr, endErr); err != nil {
		return walEnd{}, err
	}
	w := walEnd{oldest: wal.LSN(high<<32 + low*uint64(segment)), at: end}
	w.history, err = readHistory(ctx, conn, uint32(number))
	return w, err
}

// readHistory asks a running server for the history of one of its timelines.
func readHistory(ctx context.Context, conn *pgx.Conn, timeline uint32) ([]wal.Stretch, error) {
	var text string
	if timeline > wal.FirstTimeline {
		err := conn.QueryRow(ctx, "SELECT pg_catalog.pg_read_file($1, 0, $2)", wal.HistoryFile(timeline), wal.HistoryBytesMost).Scan(&text)
		if err != nil {
			return nil, fmt.Errorf("read the history of timeline %d: %w", timeline, err)
		}
	}
	return wal.ParseHistory(text, timeline)
}

// continuedBy says whether the log of a replica goes on in that of its source. Two servers
// may have begun a timeline of the same number at different places, where an operator has
// accepted a loss.
func (own walEnd) continuedBy(its walEnd) error {
	if own.at < its.oldest {
		return fmt.Errorf("%w: the source has its log from %s on, and this replica has it up to %s", engine.ErrRebuild, its.oldest, own.at)
	}
	last := len(own.history) - 1
	for n, s := range own.history {
		if n >= len(its.history) || its.history[n].Timeline != s.Timeline || n < last && its.history[n].End != s.End {
			return fmt.Errorf("%w: this replica has log of a timeline %d that is none of its source's", engine.ErrRebuild, own.history[last].Timeline)
		}
	}
	if end := its.history[last].End; own.at > end {
		return fmt.Errorf("%w: timeline %d of the source ended at %s, and this replica has log up to %s, which nobody else has", engine.ErrRebuild, its.history[last].Timeline, end, own.at)
	}
	return nil
}
