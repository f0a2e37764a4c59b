//go:build fault

package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"kurabe/internal/harness"
	"kurabe/test/appends"
)

const (
	// historyClients work at the same time, each with a session of its own and with a pause
	// of historyPause at most after each transaction.
	historyClients = 5
	historyPause   = 20 * time.Millisecond
	// historyKeys are in use at a time. After historyAppends appends the next ones are, so
	// that the search for an order stays short.
	historyKeys    = 3
	historyAppends = 120
	historyRows    = 20000
	// historySearch bounds the search for an order of all keys.
	historySearch = 30 * time.Second
)

// historyTime is how long a history is by default, a part of that unless all is asked for;
// KURABE_HISTORY_TIME says otherwise.
var historyTime = map[bool]time.Duration{true: 45 * time.Second, false: 30 * time.Second}[harness.Whole()]

// history is what clients did to two tables that each transaction changes alike, and when.
type history struct {
	login harness.Login
	began time.Time
	next  atomic.Int64 // values, and clients whose outcome is unknown
	tries atomic.Int64

	mu   sync.Mutex // guards the rest
	ops  []porcupine.Operation
	torn []string // reads that saw one half of a transaction
}

func newHistory(t *testing.T, login harness.Login) *history {
	t.Helper()
	s, err := harness.Open(t.Context(), login)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rows := map[string]string{
		"postgres": "SELECT n, '' FROM generate_series(0, %d) n",
		"mariadb":  "SELECT seq, '' FROM seq_0_to_%d",
	}[login.Engine]
	for _, table := range []string{"one", "two"} {
		for _, statement := range []string{"CREATE TABLE " + table + " (id int PRIMARY KEY, list text NOT NULL)", "INSERT INTO " + table + " " + fmt.Sprintf(rows, historyRows-1)} {
			if err := s.Exec(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
	}
	return &history{login: login, began: time.Now()}
}

// key is one of those in use.
func (h *history) key(random *rand.Rand) int {
	window := int(h.tries.Load()) / historyAppends
	return (window*historyKeys + random.IntN(historyKeys)) % historyRows
}

func (h *history) now() int64 { return int64(time.Since(h.began)) }

// client works until ctx ends, with a new session whenever one fails.
func (h *history) client(ctx context.Context, id int, random *rand.Rand) {
	for ctx.Err() == nil {
		s, err := harness.Open(ctx, h.login)
		if err != nil {
			harness.Pause(ctx, historyPause)
			continue
		}
		for err == nil && ctx.Err() == nil {
			if random.IntN(2) == 0 {
				err = h.read(ctx, s, id, h.key(random))
			} else {
				err = h.append(s, id, h.key(random))
			}
			harness.Pause(ctx, time.Duration(random.Int64N(int64(historyPause))))
		}
		s.Close()
	}
}

// append changes both tables in one transaction.
func (h *history) append(s harness.Session, id, key int) error {
	value, call := h.begin()
	sent, err := transact(s, value, key)
	h.appended(porcupine.Operation{ClientId: id, Input: appends.Op{Key: key, Value: value}, Call: call}, sent, err)
	return err
}

// begin is of an append: a value of its own, and when it was called.
func (h *history) begin() (value int, call int64) {
	h.tries.Add(1)
	return int(h.next.Add(1)), h.now()
}

// transact says whether the commit was sent. It is never called off: a commit that waits and
// is cancelled is there at once, as the documentation of PostgreSQL says of synchronous
// replication. A server that hangs loses its sessions at the failover.
func transact(s harness.Session, value, key int) (sent bool, err error) {
	ctx := context.Background()
	for _, statement := range []string{
		"BEGIN",
		fmt.Sprintf("UPDATE one SET list = CONCAT(list, ',%d') WHERE id = %d", value, key),
		fmt.Sprintf("UPDATE two SET list = CONCAT(list, ',%d') WHERE id = %d", value, key),
	} {
		if err := s.Exec(ctx, statement); err != nil {
			return false, err
		}
	}
	return true, s.Exec(ctx, "COMMIT")
}

// appended notes how an append has ended. An error before the commit is sent means that
// nothing happened; afterwards nobody knows, and it may still happen at any time.
func (h *history) appended(o porcupine.Operation, sent bool, err error) {
	switch {
	case err == nil:
		o.Return = h.now()
	case sent:
		o.ClientId, o.Return = historyClients+o.Input.(appends.Op).Value, appends.Never
	default:
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, o)
}

func (h *history) read(ctx context.Context, s harness.Session, id, key int) error {
	call := h.now()
	rows, err := s.Rows(ctx, fmt.Sprintf("SELECT CONCAT(one.list, '|', two.list) FROM one JOIN two ON two.id = one.id WHERE one.id = %d", key))
	if err != nil {
		return err // it may have been called off, and says nothing
	}
	at := h.now()
	first, second, _ := strings.Cut(rows[0], "|")
	h.mu.Lock()
	defer h.mu.Unlock()
	if first != second {
		h.torn = append(h.torn, fmt.Sprintf("key %d: %s and %s", key, first, second))
	}
	h.ops = append(h.ops, porcupine.Operation{ClientId: id, Input: appends.Op{Key: key}, Output: first, Call: call, Return: at})
	return nil
}

// acknowledged is how many appends were.
func (h *history) acknowledged() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, o := range h.ops {
		if o.Input.(appends.Op).Value != 0 && o.Return != appends.Never {
			n++
		}
	}
	return n
}

// verify demands that one order explains all that clients saw.
func (h *history) verify(t *testing.T) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.torn) > 0 {
		t.Errorf("reads of half a transaction: %q", h.torn)
	}
	wrong, told := appends.Check(h.ops, historySearch)
	t.Log(told)
	for _, w := range wrong {
		t.Error(w)
	}
}
