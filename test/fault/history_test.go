//go:build fault

package fault

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"kurabe/internal/harness"
)

const (
	// historyTime is how long a history is by default; KURABE_HISTORY_TIME says otherwise.
	historyTime = 45 * time.Second
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

// appended is one transaction on a key: an append of a value that nobody else appends, or,
// with 0, a read.
type appended struct{ key, value int }

// listModel is a list for each key: an append adds to its end, a read is of the whole.
var listModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		keys := map[int][]porcupine.Operation{}
		for _, o := range history {
			k := o.Input.(appended).key
			keys[k] = append(keys[k], o)
		}
		var parts [][]porcupine.Operation
		for _, part := range keys {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		if in := input.(appended); in.value != 0 {
			return true, fmt.Sprintf("%s,%d", state, in.value)
		}
		return output == state, state
	},
	DescribeOperation: func(input, output any) string {
		in := input.(appended)
		if in.value != 0 {
			return fmt.Sprintf("append %d to %d", in.value, in.key)
		}
		return fmt.Sprintf("read %d: %v", in.key, output)
	},
}

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
	h.appended(porcupine.Operation{ClientId: id, Input: appended{key, value}, Call: call}, sent, err)
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
		o.ClientId, o.Return = historyClients+o.Input.(appended).value, math.MaxInt64
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
	h.ops = append(h.ops, porcupine.Operation{ClientId: id, Input: appended{key: key}, Output: first, Call: call, Return: at})
	return nil
}

// acknowledged is how many appends were.
func (h *history) acknowledged() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, o := range h.ops {
		if o.Input.(appended).value != 0 && o.Return != math.MaxInt64 {
			n++
		}
	}
	return n
}

// verify demands an order of all transactions in which each happens between its call and
// its return, and every read sees exactly what was appended before it.
func (h *history) verify(t *testing.T) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.torn) > 0 {
		t.Errorf("reads of half a transaction: %q", h.torn)
	}
	unknown := 0
	for _, o := range h.ops {
		if o.Return == math.MaxInt64 {
			unknown++
		}
	}
	for _, w := range explain(h.ops) {
		t.Error(w)
	}
	result, info := porcupine.CheckOperationsVerbose(listModel, h.ops, historySearch)
	t.Logf("%d transactions, %d of them with an unknown outcome: %s", len(h.ops), unknown, result)
	switch result {
	case porcupine.Ok:
	case porcupine.Unknown:
		t.Logf("no order was found in %v; there is one, or explain would have said why not", historySearch)
	default:
		path := filepath.Join(os.TempDir(), fmt.Sprintf("kurabe-history-%d.html", time.Now().UnixNano()))
		if err := porcupine.VisualizePath(listModel, info, path); err != nil {
			path = err.Error()
		}
		t.Errorf("there is no order of these transactions that explains what the clients saw: %s", path)
	}
}

// TestHistoryFindsLosses: what must never be seen is found when it is.
func TestHistoryFindsLosses(t *testing.T) {
	add := func(value int, call, end int64) porcupine.Operation {
		return porcupine.Operation{Input: appended{1, value}, Call: call, Return: end}
	}
	read := func(list string, call, end int64) porcupine.Operation {
		return porcupine.Operation{Input: appended{key: 1}, Output: list, Call: call, Return: end}
	}
	const never = math.MaxInt64
	for name, c := range map[string]struct {
		ops  []porcupine.Operation
		want porcupine.CheckResult
	}{
		"all is well":                           {[]porcupine.Operation{add(1, 0, 1), read(",1", 2, 3), add(2, 4, 5), read(",1,2", 6, 7)}, porcupine.Ok},
		"at the same time, in either order":     {[]porcupine.Operation{add(1, 0, 5), add(2, 0, 5), read(",2,1", 6, 7)}, porcupine.Ok},
		"an unknown one happened":               {[]porcupine.Operation{add(1, 0, never), read("", 2, 3), read(",1", 4, 5)}, porcupine.Ok},
		"an unknown one did not happen":         {[]porcupine.Operation{add(1, 0, never), add(2, 1, 2), read(",2", 4, 5)}, porcupine.Ok},
		"an acknowledged one is missing":        {[]porcupine.Operation{add(1, 0, 1), add(2, 2, 3), read(",2", 4, 5)}, porcupine.Illegal},
		"one that was read is gone":             {[]porcupine.Operation{add(1, 0, never), read(",1", 2, 3), read("", 4, 5)}, porcupine.Illegal},
		"a server that was deposed is read":     {[]porcupine.Operation{add(1, 0, 1), add(2, 2, 3), read(",1", 4, 5)}, porcupine.Illegal},
		"one is there twice":                    {[]porcupine.Operation{add(1, 0, 1), read(",1,1", 2, 3)}, porcupine.Illegal},
		"one is there before it was asked for":  {[]porcupine.Operation{read(",1", 0, 1), add(1, 2, 3)}, porcupine.Illegal},
		"two came in the order they did not go": {[]porcupine.Operation{add(1, 0, 1), add(2, 2, 3), read(",2,1", 4, 5)}, porcupine.Illegal},
	} {
		if got := porcupine.CheckOperationsTimeout(listModel, c.ops, time.Minute); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if wrong := explain(c.ops); (len(wrong) > 0) != (c.want == porcupine.Illegal) {
			t.Errorf("%s: explained by %q", name, wrong)
		}
	}
}
