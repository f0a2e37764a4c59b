package activity

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"kurabe"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/threadwait"
)

// Reader lists the sessions of one process of a server.
type Reader struct {
	admin   *guard.Session
	threads *threadwait.Threads
	// own says which users are the service's.
	own func(user string) bool
	// short is until when statements are read by their first 100 characters only: the server
	// copies the whole of each for an answer.
	short time.Time
	locks time.Time // when lock waits were read last
	now   func() time.Time
	// Clients is how many sessions of clients there were at Listed, in the process list.
	Clients int
	Listed  time.Time
}

// threadName begins the name that the guard gives the thread of a connection.
const threadName = "sql-"

const (
	// textsMax is how much text of statements may be read each second. A server that runs
	// statements with more is asked for it once in shortTime.
	textsMax  = 1 << 20
	shortTime = time.Minute
)

// NewReader returns the reader of the process that serves an administrative session, over
// that session; nothing else uses it meanwhile.
func NewReader(ctx context.Context, admin *guard.Session, own func(user string) bool) (*Reader, error) {
	pid, err := admin.PID()
	if err != nil {
		return nil, fmt.Errorf("open the reader of sessions: %w", err)
	}
	// A table of information_schema that does not fit into memory goes into a file of a name
	// that another session of the service may have as well (guard.Threads).
	if err := admin.Exec(ctx, "SET SESSION tmp_memory_table_size = 67108864, max_heap_table_size = 67108864"); err != nil {
		return nil, fmt.Errorf("open the reader of sessions: %w", err)
	}
	return &Reader{admin: admin, threads: threadwait.New(pid, threadName), own: own, now: time.Now}, nil
}

// process is a row of the process list.
type process struct {
	id, seconds                                     int64
	user, host, database, command, state, statement string
}

// List lists the active sessions.
func (r *Reader) List(ctx context.Context) (list []kurabe.ActiveSession, err error) {
	all, err := r.processes(ctx)
	if err != nil {
		return nil, err
	}
	r.Clients, r.Listed = 0, r.now()
	var looked bool
	var waiting []int // for another thread, by their number in list
	for _, p := range all {
		if !guard.OfClient(p.user, p.command) || r.own(p.user) {
			continue
		}
		r.Clients++
		if !p.active() {
			continue
		}
		s := kurabe.ActiveSession{ID: p.id, Statement: p.statement, Seconds: max(0, p.seconds), User: p.user, Host: hostOf(p.host), Database: p.database, Kind: strings.ToLower(p.command)}
		var state threadwait.State
		if thread := r.threads.Find(p.id, &looked); thread != "" {
			state = r.threads.State(thread)
		}
		s.WaitType, s.Wait = classify(p.state, state)
		if state.Call == threadwait.Wait || state.Call == "" && state.Run != 'R' {
			waiting = append(waiting, len(list))
		}
		list = append(list, s)
	}
	if len(waiting) > 0 {
		err = r.addRowLocks(ctx, list, waiting, all)
	}
	return list, err
}

// active says whether a connection is within a statement. What only sends or receives a log
// waits for work between two events, and is no load of clients.
func (p process) active() bool {
	return p.command != "Sleep" && p.command != "Connect" && p.user != ""
}

// processes reads the process list.
func (r *Reader) processes(ctx context.Context) ([]process, error) {
	show := "SHOW FULL PROCESSLIST"
	if r.now().Before(r.short) {
		show = "SHOW PROCESSLIST"
	}
	rows, err := r.admin.Query(ctx, show)
	if err != nil {
		r.short = r.now().Add(shortTime) // its answer may be too large
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	bytes := 0
	list := make([]process, 0, len(rows))
	for _, row := range rows {
		if len(row) < 8 { // Id, User, Host, db, Command, Time, State, Info
			return nil, errors.New("SHOW PROCESSLIST answers in an unknown form")
		}
		id, err := strconv.ParseInt(row[0], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("list sessions: %w", err)
		}
		bytes += len(row[7])
		seconds, _ := strconv.ParseInt(row[5], 10, 64) // NULL of the server's own threads
		list = append(list, process{id, seconds, row[1], row[2], row[3], row[4], row[6], row[7]})
	}
	if bytes > textsMax {
		r.short = r.now().Add(shortTime)
	}
	return list, nil
}

// hostOf drops the port of a client.
func hostOf(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		return h
	}
	return host
}

// rowLocksSQL lists which transaction waits for which.
const rowLocksSQL = `SELECT r.trx_mysql_thread_id, b.trx_mysql_thread_id
	FROM information_schema.INNODB_LOCK_WAITS w
	JOIN information_schema.INNODB_TRX r ON r.trx_id = w.requesting_trx_id
	JOIN information_schema.INNODB_TRX b ON b.trx_id = w.blocking_trx_id`

// locksEvery is the least time between two reads of lock waits: InnoDB makes them anew only when
// nobody has read them for 100 ms (CACHE_MIN_IDLE_TIME of trx0i_s.cc, 10.11), and shows the old
// ones for as long as somebody reads more often.
const locksEvery = 120 * time.Millisecond

// RowLock is the wait of a session for a lock of InnoDB.
const RowLock = "InnoDB row lock"

// addRowLocks tells those that wait for a row lock, and for whom.
func (r *Reader) addRowLocks(ctx context.Context, list []kurabe.ActiveSession, waiting []int, all []process) error {
	timer := time.NewTimer(locksEvery - r.now().Sub(r.locks))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	rows, err := r.admin.Query(ctx, rowLocksSQL)
	r.locks = r.now()
	if err != nil {
		return fmt.Errorf("list lock waits: %w", err)
	}
	blockers := map[int64]int64{}
	for _, row := range rows {
		waits, err := strconv.ParseInt(row[0], 10, 64)
		blocks, err2 := strconv.ParseInt(row[1], 10, 64)
		if err := errors.Join(err, err2); err != nil {
			return fmt.Errorf("list lock waits: %w", err)
		}
		if have, known := blockers[waits]; !known || blocks < have {
			blockers[waits] = blocks
		}
	}
	for _, n := range waiting {
		s := &list[n]
		blocker, waits := blockers[s.ID]
		if !waits {
			continue
		}
		s.WaitType, s.Wait, s.Blocker = kurabe.WaitLock, RowLock, blocker
		if at := slices.IndexFunc(all, func(p process) bool { return p.id == blocker }); at >= 0 {
			s.BlockerUser, s.BlockerStatement = all[at].user, all[at].statement
		}
	}
	return nil
}
