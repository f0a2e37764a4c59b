package postgres

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"kurabe/internal/engine"
	"kurabe/internal/engine/postgres/wal"
	"kurabe/internal/faultpoint"
	"kurabe/internal/volume"
)

// goal is where a replay must end.
type goal struct {
	// target is the record that recovery stops at, before it or after it, or 0: at
	// the end of the log. The server itself refuses to come up short of a target.
	target    wal.LSN
	inclusive bool
	// reach is where the record after the last one begins, or would.
	reach wal.LSN
}

// Replay implements engine.Logger. Where to stop is found out beforehand, by reading
// the log between the two marks: before the first transaction end that is later than
// the moment wanted, or else after the last record. What was acknowledged by then
// lies before: its record was written before that of the later one, or its time, the
// server's, could not be the earlier one. A clock that was set back would only matter
// between the two marks.
//
// The server has a folder of its own beside the data folder meanwhile. The folder that
// both are in must let the engine's account through; its parents need not.
func (d *Driver) Replay(ctx context.Context, i engine.Instance, dataDir string, r engine.ReplayRequest) error {
	err := d.replay(ctx, i, dataDir, r, nil)
	if err == nil {
		err = volume.SyncFS(dataDir)
	}
	if err != nil {
		return fmt.Errorf("replay to %s: %w", r.At.UTC().Format(time.RFC3339Nano), err)
	}
	return nil
}

// replay lets visit look at the server before it is stopped. Only for a visit the
// folder is scratch, and nothing of it is made durable.
func (d *Driver) replay(ctx context.Context, i engine.Instance, dataDir string, r engine.ReplayRequest, visit visitor) (err error) {
	p, err := d.openPrivate(ctx, i, dataDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	p.copied = visit != nil
	if err := joinLog(r); err != nil {
		return err
	}
	s, err := spanOf(r, p.control)
	if err != nil {
		return err
	}
	if err := p.takeLog(r.Dir, s); err != nil {
		return err
	}
	g, err := p.chooseGoal(ctx, s, r.At)
	if err != nil {
		return err
	}
	if s, err = p.keepTo(s, g); err != nil {
		return err
	}
	if err := errors.Join(p.writeHistory(s.past), p.signal()); err != nil {
		return err
	}
	if err := p.run(ctx, recovery(g, s.past), visit); err != nil {
		return err
	}
	if err := p.reached(s, g); err != nil {
		return err
	}
	// Only backup_label.old and the like are left to remove.
	return d.Adopt(i, dataDir)
}

// visitor looks at a private server that is out of recovery.
type visitor func(ctx context.Context, p *private, conn *pgx.Conn) error

// run starts the server, shows it, and stops it cleanly.
func (p *private) run(ctx context.Context, extra []line, visit visitor) error {
	conn, err := p.launch(ctx, extra)
	if err != nil {
		return err
	}
	if visit != nil {
		err = visit(ctx, p, conn)
	}
	closeConn(ctx, conn)
	if err != nil {
		return err
	}
	faultpoint.Reach("before", "stop-private")
	return p.stop(ctx)
}

// chooseGoal reads the log from the older mark on.
func (p *private) chooseGoal(ctx context.Context, s span, at time.Time) (goal, error) {
	log := &wal.Scanner{Dir: filepath.Join(p.data, wal.Dir), Segments: p.control.segments, Past: s.past, Limit: s.after}
	defer log.Close()
	begin := p.scanFrom(s)
	if begin >= s.after {
		return goal{reach: log.Segments.SkipHeader(s.after)}, nil
	}
	next, err := log.First(begin)
	g := goal{inclusive: true, reach: next}
	for err == nil {
		if err := ctx.Err(); err != nil {
			return g, context.Cause(ctx)
		}
		var r wal.Record
		if r, err = log.Read(next); err != nil {
			break
		}
		next = r.Next
		if r.Resource == wal.Abandoned {
			continue
		}
		end, ok, endErr := r.TransactionEnd()
		if endErr != nil {
			return g, &recoveryError{endErr.Error()}
		}
		if ok && r.Begin >= s.before && end.After(at) {
			return s.stopBefore(r.Begin, g.reach, at)
		}
		g.reach = r.Next
		// Recovery does not stop at what the snapshot has already.
		if r.Begin >= s.from {
			g.target = r.Begin
		}
	}
	if !errors.Is(err, wal.ErrEnd) {
		return g, &recoveryError{"the log is damaged: " + err.Error()}
	}
	return g, nil
}

// scanFrom is the beginning of the older mark's segment, or of the snapshot's when
// that one is not here.
func (p *private) scanFrom(s span) wal.LSN {
	segments := p.control.segments
	if s.before != 0 {
		begin := segments.Begin(min(s.before, s.after-1))
		if _, err := volume.Lstat(filepath.Join(p.data, wal.Dir, segments.Position(s.past.At(segments, begin), begin).File)); err == nil {
			return begin
		}
	}
	return segments.Begin(s.from)
}

func (s span) stopBefore(target, reach wal.LSN, at time.Time) (goal, error) {
	if target < s.from {
		return goal{}, fmt.Errorf("the snapshot shows transactions that are later than %s", at.UTC().Format(time.RFC3339Nano))
	}
	return goal{target: target, reach: reach}, nil
}

// reached compares where the server left the old timeline with the goal.
func (p *private) reached(s span, g goal) error {
	text, err := newestHistory(filepath.Join(p.data, wal.Dir))
	if err != nil {
		return err
	}
	timeline := s.past[len(s.past)-1].Timeline
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
	for _, entry := range slices.Backward(lines) {
		fields := strings.Fields(entry)
		if len(fields) < 2 || strings.HasPrefix(entry, "#") {
			continue
		}
		left, err := wal.ParseLSN(fields[1])
		if err != nil {
			return err
		}
		if fields[0] != strconv.FormatUint(uint64(timeline), 10) || p.control.segments.SkipHeader(left) != g.reach {
			return &recoveryError{fmt.Sprintf("recovery ended at %s of timeline %s, and not at %s of %d", left, fields[0], g.reach, timeline)}
		}
		return nil
	}
	return errors.New("the server wrote no history of its timeline")
}

// newestHistory is the text of the history file that the promoted server wrote.
func newestHistory(dir string) (string, error) {
	entries, err := volume.ReadDir(dir)
	if err != nil {
		return "", err
	}
	newest := ""
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".history") {
			newest = max(newest, e.Name())
		}
	}
	if newest == "" {
		return "", &recoveryError{"the server was not promoted"}
	}
	raw, err := volume.ReadFile(filepath.Join(dir, newest))
	return string(raw), err
}
