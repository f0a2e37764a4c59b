//go:build integration

package mariadb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/mariadb/sqltext"
)

// cloneBed is a serving instance on a file system that clones.
func cloneBed(t *testing.T, settings map[string]string) *enginetest.Bed {
	t.Helper()
	b := enginetest.NewBed(t, setup(t, enginetest.LoopXFS(t, enginetest.Reachable(t))))
	b.Want.Log = true
	b.Set(settings)
	b.Satisfy(t)
	return b
}

// crowd is clients of all kinds: two keep a ledger, others move money, write to tables
// without transactions, and define tables.
type crowd struct {
	book   *book
	stop   func()
	counts map[string]*counter // of the tables without transactions
	stall  atomic.Int64        // the longest that a client has waited, in ns
	ddl    atomic.Int64        // tables that were defined
}

// counter is numbers that were acknowledged one after the other.
type counter struct {
	mu   sync.Mutex // guards acks
	acks []entry
}

const (
	purses      = 50
	purseAmount = 1000
	fill        = 20_000 // rows beside, which are more than the smallest buffer pool and redo log
	bigClients  = 2      // that change them
)

// gather makes the tables and starts the clients.
func gather(t *testing.T, b *enginetest.Bed) *crowd {
	t.Helper()
	for _, statement := range []string{
		"CREATE TABLE ledger (n INT, half INT, r DOUBLE, KEY (n)) ENGINE=InnoDB",
		"CREATE TABLE here (id INT PRIMARY KEY, amount INT) ENGINE=InnoDB",
		"CREATE TABLE there LIKE here",
		fmt.Sprintf("INSERT INTO here SELECT seq, %d FROM seq_1_to_%d", purseAmount, purses),
		"INSERT INTO there SELECT * FROM here",
		"CREATE TABLE big (id INT PRIMARY KEY, v INT, pad VARCHAR(900)) ENGINE=InnoDB",
		fmt.Sprintf("INSERT INTO big SELECT seq, 0, REPEAT(MD5(seq), 28) FROM seq_1_to_%d", fill),
		"CREATE TABLE aria (n INT PRIMARY KEY, pad VARCHAR(200)) ENGINE=Aria",
		"CREATE TABLE plain (n INT PRIMARY KEY, pad VARCHAR(200)) ENGINE=Aria TRANSACTIONAL=0",
		"CREATE TABLE myisam (n INT PRIMARY KEY, pad VARCHAR(200)) ENGINE=MyISAM",
	} {
		b.MustQuery(t, statement)
	}
	db, err := open(b.Login())
	if err != nil {
		t.Fatal(err)
	}
	c := &crowd{book: keepBook(t, b, 1), counts: map[string]*counter{}}
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	client := func(do func(ctx context.Context, n int) error) {
		done.Go(func() {
			for n := 1; ctx.Err() == nil; n++ {
				begun := time.Now()
				if err := do(ctx, n); err != nil && ctx.Err() == nil {
					t.Errorf("a client: %v", err)
					return
				}
				c.waited(time.Since(begun))
			}
		})
	}
	client(func(ctx context.Context, n int) error { return move(ctx, db, n) })
	// These do not notice that no commit goes on; what they do takes long by itself.
	for n := range bigClients {
		done.Go(func() {
			for ctx.Err() == nil {
				if err := undo(ctx, db, n); err != nil && ctx.Err() == nil {
					t.Errorf("a client: %v", err)
					return
				}
			}
		})
	}
	client(func(ctx context.Context, n int) error { return c.define(ctx, db, n) })
	for _, table := range []string{"aria", "plain", "myisam"} {
		k := &counter{}
		c.counts[table] = k
		client(func(ctx context.Context, n int) error { return k.write(ctx, db, table, n) })
	}
	c.stop = func() {
		cancel()
		done.Wait()
		c.book.stop()
		_ = db.Close()
	}
	return c
}

func (c *crowd) waited(d time.Duration) {
	for have := c.stall.Load(); int64(d) > have && !c.stall.CompareAndSwap(have, int64(d)); have = c.stall.Load() {
	}
}

// move takes from a purse of one table and gives to one of the other.
func move(ctx context.Context, db *sql.DB, n int) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	from, to := "here", "there"
	if n%2 == 0 {
		from, to = to, from
	}
	for _, statement := range []string{
		fmt.Sprintf("UPDATE %s SET amount = amount - 7 WHERE id = %d", from, 1+n%purses),
		fmt.Sprintf("UPDATE %s SET amount = amount + 7 WHERE id = %d", to, 1+(n*31)%purses),
	} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return tx.Commit()
}

// undo changes much, and takes it back.
func undo(ctx context.Context, db *sql.DB, n int) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "UPDATE big SET v = v + 1, pad = REVERSE(pad) WHERE id BETWEEN ? AND ?", 1+n*fill/bigClients, (n+1)*fill/bigClients)
	return errors.Join(err, tx.Rollback())
}

// define makes, changes and drops tables.
func (c *crowd) define(ctx context.Context, db *sql.DB, n int) error {
	table := fmt.Sprintf("made%d", n%3)
	kind := []string{"InnoDB", "Aria", "MyISAM"}[n%3]
	for _, statement := range []string{
		"CREATE TABLE " + table + " (a INT) ENGINE=" + kind,
		"INSERT INTO " + table + " VALUES (1), (2)",
		"ALTER TABLE " + table + " ADD COLUMN b INT DEFAULT 5, ADD KEY (b)",
		"RENAME TABLE " + table + " TO other, other TO " + table,
		"DROP TABLE " + table,
	} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	c.ddl.Add(1)
	return nil
}

func (k *counter) write(ctx context.Context, db *sql.DB, table string, n int) error {
	e := entry{begun: time.Now()}
	if _, err := db.ExecContext(ctx, "INSERT INTO "+table+" VALUES (?, REPEAT('x', 150))", n); err != nil {
		return err
	}
	e.acked = time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.acks = append(k.acks, e)
	return nil
}

// holds compares a restored instance with what was acknowledged: at the least what was
// before at, at the most what was begun by until, in one piece.
func (c *crowd) holds(t *testing.T, n *enginetest.Bed, at, until time.Time) {
	t.Helper()
	c.book.mu.Lock()
	verify(t, n, at, until, c.book)
	c.book.mu.Unlock()
	sum := n.MustQuery(t, "SELECT (SELECT SUM(amount) FROM here) + (SELECT SUM(amount) FROM there)")
	if want := fmt.Sprint(2 * purses * purseAmount); sum != want {
		t.Errorf("there is %s, and was %s: half a transaction", sum, want)
	}
	for table, k := range c.counts {
		var least, most int
		k.mu.Lock()
		for _, e := range k.acks {
			if e.acked.Before(at) {
				least++
			}
			if e.begun.Before(until) {
				most++
			}
		}
		k.mu.Unlock()
		var rows, last int
		got := n.MustQuery(t, "SELECT CONCAT(COUNT(*), ' ', COALESCE(MAX(n), 0)) FROM "+table)
		if _, err := fmt.Sscan(got, &rows, &last); err != nil || rows != last || rows < least || rows > most+1 {
			t.Errorf("%s: rows and last number are %s, from %d to %d were acknowledged", table, got, least, most)
		}
	}
	soundTables(t, n)
}

// soundTables is what mariadb-check --extended does.
func soundTables(t *testing.T, n *enginetest.Bed) {
	t.Helper()
	tables := looking(t, n, "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE = 'BASE TABLE' AND TABLE_SCHEMA NOT IN ('information_schema', 'performance_schema', 'sys')")
	if len(tables) < 10 {
		t.Errorf("only %d tables", len(tables))
	}
	for _, table := range tables {
		for _, row := range looking(t, n, "CHECK TABLE "+sqltext.Name(table[0])+"."+sqltext.Name(table[1])+" EXTENDED") {
			if kind := strings.ToLower(row[2]); kind != "note" && row[3] != "OK" {
				t.Errorf("%v", row)
			}
		}
	}
}

// Clones in a row under all kinds of load, with the log flushed at each commit and
// without: each is whole, and the log goes on from where it says.
func TestCloneRunning(t *testing.T) {
	for name, settings := range map[string]map[string]string{
		"flushed at each commit": {"innodb_flush_log_at_trx_commit": "1"},
		"flushed each second":    {"innodb_flush_log_at_trx_commit": "0"},
		// Pages and checkpoints are written all the time, and the redo log is overwritten.
		"short of room": {"innodb_log_file_size": "4194304", "innodb_buffer_pool_size": "8388608", "innodb_max_dirty_pages_pct": "0"},
	} {
		t.Run(name, func(t *testing.T) {
			b := cloneBed(t, settings)
			cloneInARow(t, b, b.Take)
		})
	}
}

func cloneInARow(t *testing.T, b *enginetest.Bed, take func(*testing.T) (kurabe.SnapshotID, kurabe.SnapshotFacts)) {
	s := openStream(t, b)
	s.mark(t)
	c := gather(t, b)
	c.book.until(t, 20, time.Time{})
	usual := time.Duration(c.stall.Swap(0))
	type taken struct {
		id    kurabe.SnapshotID
		facts kurabe.SnapshotFacts
		until time.Time
	}
	var all []taken
	pid := b.Process(t).PID
	for n := range 12 {
		begin := time.Now()
		id, facts := take(t)
		t.Logf("clone %d: %v", n, time.Since(begin).Round(time.Millisecond))
		if facts.Method != kurabe.SnapshotCloned || facts.Position.Offset == 0 || facts.TakenAt.Before(begin) {
			t.Fatalf("%+v", facts)
		}
		all = append(all, taken{id, facts, time.Now()})
		c.book.until(t, 0, time.Now().Add(100*time.Millisecond))
	}
	t.Logf("longest wait of a client: %v, and %v before the first clone; %d tables defined", time.Duration(c.stall.Load()).Round(time.Millisecond), usual.Round(time.Millisecond), c.ddl.Load())
	c.book.until(t, 0, time.Now().Add(time.Second))
	c.stop()
	if b.Process(t).PID != pid {
		t.Error("the server is another one")
	}
	s.mark(t)
	still := s.mark(t)
	for n, k := range all {
		r := b.Restore(t, k.id)
		c.holds(t, r, k.facts.TakenAt, k.until)
		r.Discard(t)
		if n%4 != 0 {
			continue
		}
		r = restore(t, b, k.id, s.request(t, k.facts.Position, still.At))
		c.holds(t, r, still.At, still.Until)
		for _, table := range []string{"ledger", "here", "there", "big", "aria", "plain", "myisam"} {
			sum := "CHECKSUM TABLE " + table
			if have, want := looking(t, r, "USE shop", sum)[0][1], looking(t, b, "USE shop", sum)[0][1]; have != want {
				t.Errorf("%s after a replay: checksum %s, want %s", table, have, want)
			}
		}
		r.Discard(t)
	}
}
