package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/postgres/wal"
	"kurabe/internal/proc"
)

// watcher looks at one server over one session.
type watcher struct {
	conn     *pgx.Conn
	alone    bool // it is in no group: all that is asked is whether it answers
	owner    kurabe.InstanceID
	instance kurabe.InstanceID
	process  string        // of the server (processSQL)
	arrivals *arrivals     // of a follower
	source   kurabe.Source // of a follower
	segments wal.Segments
	heard    map[kurabe.InstanceID]heard
	replicas map[string]kurabe.InstanceID // by their names here
	stream   stream                       // of a follower
	proves   bool
	silent   bool // a follower that streams has said nothing for a while
	proof    proof
}

// heard is when a follower's newest answer was first seen. The time in the answer is that
// of the follower's clock, which may go wrong: it only tells answers apart. What counts is
// our own clock, which is never set: so an answer is up to one look older than it seems.
type heard struct {
	pid   int
	reply string
	at    time.Time
}

// OpenWatch implements engine.Replicator.
func (d *Driver) OpenWatch(ctx context.Context, i engine.Instance) (engine.Watcher, error) {
	conn, err := d.adminConn(ctx, i)
	if err != nil {
		return nil, fmt.Errorf("open watch: %w", err)
	}
	w := &watcher{conn: conn, alone: i.Role == nil, owner: i.Instance.Owner(), instance: i.Instance, arrivals: &d.arrivals, heard: map[kurabe.InstanceID]heard{}, replicas: map[string]kurabe.InstanceID{}}
	if follows(i) && i.Role.Source != nil {
		w.source = *i.Role.Source
	}
	if i.Role != nil {
		for _, id := range i.Role.Followers {
			if id.Owner() != w.owner {
				w.replicas[memberName(w.owner, id)] = id
			}
		}
	}
	var bytes int64
	err = conn.QueryRow(ctx, "SELECT setting::bigint, "+processSQL+" FROM pg_catalog.pg_settings WHERE name = 'wal_segment_size'").Scan(&bytes, &w.process)
	if err == nil {
		w.segments, err = wal.NewSegments(bytes)
	}
	if err != nil {
		closeConn(ctx, conn)
		return nil, fmt.Errorf("open watch: %w", err)
	}
	return w, nil
}

// lookSQL asks for everything at once.
//
// A receiver shows as streaming before it is: so something must have come from the source
// since it began (until then both times are one), and lately. Both sides make the stream
// say something twice within that time. The time it came is that of the follower's clock,
// which may be set: see stream. A server whose replay is paused cannot take over: it does not
// follow. Nothing pauses it but settings that are smaller than its source's.
//
// What is left to apply is what was received and what the source has said that it has
// (latest_end_lsn). Its age is that of the newest transaction that was applied, as RDS has it
// in ReplicaLag; a server that has applied none since it started cannot tell. That time is of
// the source's clock, so how far the two are apart is asked for as well: see lagOf.
//
// Of a writer's followers the sessions are meant that have their slot: one may be connected
// twice for a moment, and one that is being cloned uses the slot under another name. A slot
// that is lost comes back only by being made anew.
const lookSQL = `SELECT s.recovering,
	COALESCE((CASE WHEN s.recovering THEN ` + logEndSQL + `
		ELSE pg_catalog.pg_current_wal_flush_lsn() END)::text, '0/0'),
	COALESCE((CASE WHEN NOT s.recovering THEN pg_catalog.pg_current_wal_insert_lsn() END)::text, '0/0'),
	pg_catalog.current_setting('synchronous_standby_names'),
	COALESCE(CASE WHEN s.recovering THEN pg_catalog.pg_is_wal_replay_paused() END, false),
	COALESCE((CASE WHEN s.recovering THEN pg_catalog.pg_last_wal_replay_lsn() END)::text, '0/0'),
	COALESCE((SELECT r.pid || ' ' || EXTRACT(epoch FROM r.last_msg_receipt_time) || CASE WHEN r.last_msg_receipt_time > pg_catalog.clock_timestamp() - '` + streamTimeout + `'::interval
				AND r.last_msg_receipt_time <= pg_catalog.clock_timestamp() THEN '` + lately + `' ELSE '' END
		FROM pg_catalog.pg_stat_wal_receiver r
		WHERE s.recovering AND r.status = 'streaming' AND r.sender_host = $1 AND r.sender_port = $2
			AND r.last_msg_send_time <> r.last_msg_receipt_time), ''),
	COALESCE(pg_catalog.pg_last_wal_replay_lsn() < GREATEST(pg_catalog.pg_last_wal_receive_lsn(),
		(SELECT r.latest_end_lsn FROM pg_catalog.pg_stat_wal_receiver r)), false),
	EXTRACT(epoch FROM pg_catalog.clock_timestamp() - pg_catalog.pg_last_xact_replay_timestamp())::double precision,
	COALESCE((SELECT EXTRACT(epoch FROM r.last_msg_receipt_time - r.last_msg_send_time) FROM pg_catalog.pg_stat_wal_receiver r)::double precision, 0),
	(SELECT COALESCE(pg_catalog.json_agg(pg_catalog.json_build_object('name', l.slot_name, 'pid', COALESCE(r.pid, 0),
			'streaming', COALESCE(r.state = 'streaming', false), 'flushed', COALESCE(r.flush_lsn::text, '0/0'), 'reply', COALESCE(r.reply_time::text, ''),
			'replayed', COALESCE(r.replay_lsn::text, '0/0'),
			'lost', COALESCE(l.wal_status = 'lost', false))), '[]')::text
		FROM pg_catalog.pg_replication_slots l
		LEFT JOIN pg_catalog.pg_stat_replication r ON l.active_pid = r.pid AND l.slot_name::text = r.application_name
		WHERE l.slot_type = 'physical')
	FROM pg_catalog.pg_is_in_recovery() AS s(recovering)`

// followerRow is one follower as a writer sees it, with its session if it has one.
type followerRow struct {
	Name      string `json:"name"`
	PID       int    `json:"pid"`
	Streaming bool   `json:"streaming"`
	Flushed   string `json:"flushed"`
	Replayed  string `json:"replayed"`
	Reply     string `json:"reply"`
	Lost      bool   `json:"lost"`
}

// Look implements engine.Watcher.
func (w *watcher) Look(ctx context.Context) (engine.RoleView, error) {
	if w.alone {
		_, err := w.conn.Exec(ctx, "SELECT 1")
		return engine.RoleView{}, err
	}
	if err := w.challenge(ctx); err != nil {
		return engine.RoleView{}, fmt.Errorf("look: %w", err)
	}
	var recovering, paused, behind bool
	var ageSeconds *float64
	var apartSeconds float64
	var position, inserted, waits, replayed, received, followers string
	// The statement is always the same: planning it each time would be most of its cost.
	err := w.conn.QueryRow(ctx, lookSQL, pgx.QueryExecModeCacheStatement, w.source.Address, w.source.Port).
		Scan(&recovering, &position, &inserted, &waits, &paused, &replayed, &received, &behind, &ageSeconds, &apartSeconds, &followers)
	if err != nil {
		return engine.RoleView{}, fmt.Errorf("look: %w", err)
	}
	now := time.Now()
	v := engine.RoleView{Writing: !recovering, Following: w.stream.follows(received, now) && !paused, Paused: paused}
	durable, err := wal.ParseLSN(position)
	written, writtenErr := wal.ParseLSN(inserted)
	applied, appliedErr := wal.ParseLSN(replayed)
	var rows []followerRow
	if err := errors.Join(err, writtenErr, appliedErr, json.Unmarshal([]byte(followers), &rows)); err != nil {
		return engine.RoleView{}, fmt.Errorf("look: %w", err)
	}
	v.Position, v.Applied, v.Kept = int64(durable), int64(applied), int64(durable)
	if behind {
		v.Lag = lagOf(ageSeconds, apartSeconds)
	}
	if recovering {
		w.arrived(durable)
	}
	if v.Writing {
		v.Inserted = int64(w.segments.DropHeader(written))
		v.WaitsFor = waitedFor(w.owner, waits)
		v.Followers, err = w.followers(rows, now)
		v.Slots = slices.AppendSeq([]kurabe.InstanceID{}, maps.Keys(v.Followers))
	}
	return v, err
}

// followers takes the rows of one look, made at that time.
func (w *watcher) followers(rows []followerRow, now time.Time) (map[kurabe.InstanceID]engine.FollowerView, error) {
	views := make(map[kurabe.InstanceID]engine.FollowerView, len(rows))
	for _, row := range rows {
		id, ok := w.replicas[row.Name]
		if !ok {
			id, ok = memberOf(w.owner, row.Name)
		}
		if !ok {
			continue
		}
		flushed, err := wal.ParseLSN(row.Flushed)
		replayed, replayedErr := wal.ParseLSN(row.Replayed)
		if err = errors.Join(err, replayedErr); err != nil {
			return nil, fmt.Errorf("look at %s: %w", id, err)
		}
		last, known := w.heard[id]
		if !known || last.pid != row.PID || last.reply != row.Reply {
			last = heard{row.PID, row.Reply, now}
			w.heard[id] = last
		}
		v := engine.FollowerView{Streaming: row.Streaming, Flushed: int64(flushed), Replayed: int64(replayed), HeardAgo: now.Sub(last.at), Lost: row.Lost}
		w.silent = w.silent || row.Streaming && v.HeardAgo > nudgeAfter
		if row.Streaming {
			v.FollowedAt = w.proof.answered(id, flushed)
		}
		views[id] = v
	}
	return views, nil
}

// Close implements engine.Watcher.
func (w *watcher) Close() { closeConn(context.Background(), w.conn) }

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
