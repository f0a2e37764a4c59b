//go:build integration

package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/enginetest"
	"kurabe/internal/volume"
)

// archive is the smallest thing that stores a log: files in a folder, and the marks.
type archive struct {
	b     *enginetest.Bed
	d     *Driver
	dir   string
	log   engine.Log
	at    kurabe.LogPosition
	mu    sync.Mutex // guards marks
	marks []kurabe.LogMark
}

func newArchive(t *testing.T, b *enginetest.Bed) *archive {
	t.Helper()
	a := &archive{b: b, d: b.Driver.(*Driver), dir: t.TempDir()}
	t.Cleanup(func() {
		if a.log != nil {
			_ = a.log.Close()
		}
	})
	return a
}

// step brings the archive up to where the server's log is durable now. It opens the
// log again after an error of the session.
func (a *archive) step(ctx context.Context) (err error) {
	defer func() {
		if err != nil && a.log != nil {
			_ = a.log.Close()
			a.log = nil
		}
	}()
	if a.log == nil {
		if a.log, err = a.d.OpenLog(ctx, a.b.Instance()); err != nil {
			a.log = nil
			return err
		}
		if a.at.File == "" {
			a.at, err = a.log.Begin(ctx)
		} else {
			err = a.log.Resume(ctx, a.at)
		}
		if err != nil {
			return err
		}
	}
	mark, err := a.log.Mark(ctx)
	if err != nil {
		return err
	}
	for a.at.Compare(mark.Position) < 0 {
		if a.at, err = a.copy(ctx, mark.Position); err != nil {
			return err
		}
	}
	a.mu.Lock()
	a.marks = append(a.marks, mark)
	a.mu.Unlock()
	return a.log.Release(ctx, a.at)
}

func (a *archive) copy(ctx context.Context, to kurabe.LogPosition) (kurabe.LogPosition, error) {
	file, err := os.OpenFile(filepath.Join(a.dir, a.at.File), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return a.at, err
	}
	defer file.Close()
	if _, err := file.Seek(a.at.Offset, 0); err != nil {
		return a.at, err
	}
	next, err := a.log.Copy(ctx, a.at, to, file)
	if err == nil && next == a.at {
		err = fmt.Errorf("nothing was copied from %s up to %s", a.at, to)
	}
	return next, err
}

// follow steps until the context ends. Errors are those of a server that is down;
// what must not be is ErrLogGone.
func (a *archive) follow(ctx context.Context) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		if err := a.step(ctx); errors.Is(err, engine.ErrLogGone) {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// newest is how many marks there are, and the last.
func (a *archive) newest() (int, kurabe.LogMark) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.marks) == 0 {
		return 0, kurabe.LogMark{}
	}
	return len(a.marks), a.marks[len(a.marks)-1]
}

// request is what brings a snapshot to a moment, with a copy of the log it takes.
func (a *archive) request(t *testing.T, from kurabe.LogPosition, at time.Time) engine.ReplayRequest {
	t.Helper()
	r := engine.ReplayRequest{Dir: t.TempDir(), From: from, At: at}
	for _, m := range a.marks {
		if !m.Until.After(at) { // as logstream chooses it
			r.Before = m
		}
	}
	n := slices.IndexFunc(a.marks, func(m kurabe.LogMark) bool { return !m.At.Before(at) })
	if n < 0 {
		t.Fatalf("no mark after %s", at)
	}
	r.After = a.marks[n]
	entries, err := os.ReadDir(a.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() < from.File || e.Name() > r.After.Position.File {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(a.dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if e.Name() == r.After.Position.File {
			raw = raw[:r.After.Position.Offset]
		}
		if err := os.WriteFile(filepath.Join(r.Dir, e.Name()), raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// restored is a fresh copy of a snapshot, as a restore makes it.
func restored(t *testing.T, b *enginetest.Bed, snapshot string) string {
	t.Helper()
	home := filepath.Join(enginetest.Reachable(t), "home")
	if err := volume.EnsureDir(home, 0o755, -1, -1); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(home, "data")
	opts := volume.TransferOptions{Cached: true}
	if b.Account() != nil {
		opts.Owner = &volume.Owner{UID: b.Account().UID, GID: b.Account().GID}
	}
	if _, _, err := volume.Transfer(t.Context(), snapshot, dir, opts); err != nil {
		t.Fatal(err)
	}
	return dir
}

// readLedger is a visitor that reads the ledger.
func readLedger(rows map[int]bool) visitor {
	return func(ctx context.Context, p *private, _ *pgx.Conn) error {
		config, err := sessionConfig("/", privatePort, adminRole)
		if err != nil {
			return err
		}
		config.Database = "shop"
		config.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialSocket(ctx, p.home().RunDir(), privatePort)
		}
		conn, err := pgx.ConnectConfig(ctx, config)
		if err != nil {
			return err
		}
		defer closeConn(ctx, conn)
		answer, err := conn.Query(ctx, "SELECT n FROM ledger")
		if err != nil {
			return err
		}
		all, err := pgx.CollectRows(answer, pgx.RowTo[int])
		for _, n := range all {
			rows[n] = true
		}
		return err
	}
}

// written is one row of a ledger: when its INSERT was sent, and when acknowledged.
type written struct {
	n           int
	sent, acked time.Time // acked is zero when nobody knows
}

// ledger is what clients wrote, in order of their sending.
type ledger struct {
	mu   sync.Mutex // guards what follows
	rows []written
}

func (l *ledger) acked() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, w := range l.rows {
		if !w.acked.IsZero() {
			n++
		}
	}
	return n
}

// write keeps one session busy until the context ends, over restarts of the server.
func (l *ledger) write(ctx context.Context, b *enginetest.Bed, client int) {
	var conn *pgx.Conn
	for n := client; ctx.Err() == nil; n += 100 {
		if conn == nil {
			config, err := clientConfig(b.Login())
			if err == nil {
				conn, err = pgx.ConnectConfig(ctx, config)
			}
			if err != nil {
				conn = nil
				continue
			}
		}
		w := written{n: n, sent: time.Now()}
		// Long enough that records cross pages.
		_, err := conn.Exec(ctx, "INSERT INTO ledger VALUES ($1, pg_catalog.repeat($2, 60))", n, fmt.Sprint(n))
		if err == nil {
			w.acked = time.Now()
		}
		l.mu.Lock()
		l.rows = append(l.rows, w)
		l.mu.Unlock()
		if err != nil {
			closeConn(ctx, conn)
			conn = nil
		}
	}
	if conn != nil {
		closeConn(ctx, conn)
	}
}

// compare demands what was acknowledged by then, and refuses what was sent later.
func (l *ledger) compare(t *testing.T, rows map[int]bool, at time.Time) {
	t.Helper()
	must, mustNot := 0, 0
	for _, w := range l.rows {
		switch {
		case !w.acked.IsZero() && !w.acked.After(at):
			must++
			if !rows[w.n] {
				t.Errorf("row %d is missing, acknowledged %v before", w.n, at.Sub(w.acked))
			}
		case w.sent.After(at):
			mustNot++
			if rows[w.n] {
				t.Errorf("row %d is there, sent %v after", w.n, w.sent.Sub(at))
			}
		}
	}
	t.Logf("%d rows, %d of them acknowledged before, %d later ones absent", len(rows), must, mustNot)
}

func until(t *testing.T, what string, true func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(time.Minute); !true(); <-ticker.C {
		if time.Now().After(deadline) {
			t.Fatalf("no %s within a minute", what)
		}
	}
}
