package snapshot

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"kurabe/lab/stat"
	"kurabe/test/bench/bed"
)

const (
	// loadSessions are enough for the rate while each update takes less than 32 ms;
	// beyond that they queue, and the queue counts.
	loadSessions = 32
	// rowBytes is what a row of the table takes in either engine, roughly.
	rowBytes = 1000
	padBytes = 896
)

// fillRows makes the table that is copied and updated, of that many bytes.
func fillRows(ctx context.Context, t bed.Target, size float64) (rows int, err error) {
	rows = int(size * 1e9 / rowBytes)
	source := "generate_series(%d, %d) AS g(n)"
	if t.Engine == bed.MariaDB {
		source = "(SELECT seq AS n FROM seq_%d_to_%d) AS g"
	}
	statements := []string{"CREATE TABLE kept (id int PRIMARY KEY, v int NOT NULL, pad varchar(896) NOT NULL)"}
	// In pieces: MariaDB would keep the undo of one large transaction.
	const piece = 100_000
	for from := 1; from <= rows; from += piece {
		statements = append(statements, fmt.Sprintf("INSERT INTO kept SELECT n, 0, repeat(md5(concat(n, 'x')), %d) FROM "+source, padBytes/32, from, min(rows, from+piece-1)))
	}
	return rows, t.Exec(ctx, statements...)
}

// openLoad updates random rows by a schedule that does not wait for answers. A
// latency counts from the moment that the schedule gave, so that what queued behind
// a stall is counted as its client would.
type openLoad struct {
	began  time.Time
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu      sync.Mutex // guards the rest
	samples []loadSample
	err     error
}

type loadSample struct {
	at time.Time // scheduled
	ms float64
}

// updater is a session that updates one row.
type updater interface {
	update(ctx context.Context, id int) error
	close()
}

type postgresUpdater struct{ *pgx.Conn }

func (u postgresUpdater) update(ctx context.Context, id int) error {
	_, err := u.Exec(ctx, "UPDATE kept SET v = v + 1 WHERE id = $1", id)
	return err
}

func (u postgresUpdater) close() { _ = u.Close(context.Background()) } // it ends with the bench

type mariadbUpdater struct{ *sql.DB }

func (u mariadbUpdater) update(ctx context.Context, id int) error {
	_, err := u.ExecContext(ctx, "UPDATE kept SET v = v + 1 WHERE id = ?", id)
	return err
}

func (u mariadbUpdater) close() { _ = u.Close() } // as above

func newUpdater(ctx context.Context, t bed.Target) (updater, error) {
	if t.Engine == bed.Postgres {
		c, err := pgx.Connect(ctx, fmt.Sprintf("host=%s port=%d user=%s password=%s dbname=%s sslmode=require", t.Host, t.Port, bed.MasterUser, bed.MasterPassword, bed.Database))
		return postgresUpdater{c}, err
	}
	db, err := sql.Open("mysql", fmt.Sprintf("%s:%s@tcp(%s:%d)/%s?tls=skip-verify&interpolateParams=true", bed.MasterUser, bed.MasterPassword, t.Host, t.Port, bed.Database))
	if err == nil {
		db.SetMaxOpenConns(1)
		err = db.PingContext(ctx)
	}
	return mariadbUpdater{db}, err
}

// startOpenLoad starts the clients.
func startOpenLoad(ctx context.Context, t bed.Target, rows, perSecond int, seed uint64) (*openLoad, error) {
	var sessions []updater
	for range loadSessions {
		u, err := newUpdater(ctx, t)
		if err != nil {
			for _, s := range sessions {
				s.close()
			}
			return nil, fmt.Errorf("open a session of the load: %w", err)
		}
		sessions = append(sessions, u)
	}
	ctx, cancel := context.WithCancel(ctx)
	l := &openLoad{began: time.Now(), cancel: cancel}
	// Deep enough for a stall of a minute; then the schedule itself would wait, and say so.
	due := make(chan time.Time, 60*perSecond)
	l.done.Go(func() { l.schedule(ctx, due, perSecond) })
	for n, s := range sessions {
		random := rand.New(rand.NewPCG(seed, uint64(n)))
		l.done.Go(func() { l.work(s, due, random, rows) })
	}
	return l, nil
}

// schedule hands out the moments until ctx ends.
func (l *openLoad) schedule(ctx context.Context, due chan<- time.Time, perSecond int) {
	defer close(due)
	pause := time.Second / time.Duration(perSecond)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for next := l.began; ; {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			for ; !next.After(now); next = next.Add(pause) {
				select {
				case due <- next:
				default:
					l.fail(errors.New("the server is a minute behind the schedule of its clients"))
					return
				}
			}
		}
	}
}

// work takes moments until there are none: what was scheduled is also done, so that
// a stall at the end is not left out.
func (l *openLoad) work(u updater, due <-chan time.Time, random *rand.Rand, rows int) {
	defer u.close()
	for at := range due {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		err := u.update(ctx, 1+random.IntN(rows))
		cancel()
		if err != nil {
			l.fail(err)
			continue
		}
		sample := loadSample{at, float64(time.Since(at)) / float64(time.Millisecond)}
		l.mu.Lock()
		l.samples = append(l.samples, sample)
		l.mu.Unlock()
	}
}

func (l *openLoad) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = fmt.Errorf("the load: %w", err)
	}
}

// stop ends the schedule, waits for what was scheduled and returns the first error.
func (l *openLoad) stop() error {
	l.cancel()
	l.done.Wait()
	return l.err
}

// p99 is the 99th percentile of what was scheduled in between, in ms.
func (l *openLoad) p99(from, until time.Time) float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []float64
	for _, s := range l.samples {
		if !s.at.Before(from) && s.at.Before(until) {
			list = append(list, s.ms)
		}
	}
	if len(list) == 0 {
		return math.NaN()
	}
	return stat.Quantile(list, 0.99)
}
