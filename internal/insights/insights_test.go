package insights

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/hostread"
	"kurabe/internal/logevents"
	"kurabe/internal/logquery"
	"kurabe/internal/logread"
)

// fleet is two servers, each with events of its host. A link that is cut answers nothing.
type fleet struct {
	servers map[kurabe.HostID]*Queries
	events  map[kurabe.HostID]*logevents.Store
	parts   map[kurabe.HostID]*Parts
	cut     chan struct{} // closed: the second host does not answer
}

var hostIDs = []kurabe.HostID{"h1", "h2"}

func newFleet(t *testing.T) *fleet {
	f := &fleet{map[kurabe.HostID]*Queries{}, map[kurabe.HostID]*logevents.Store{}, map[kurabe.HostID]*Parts{}, make(chan struct{})}
	handlers := map[kurabe.HostID]*hostread.Handlers{}
	for _, h := range hostIDs {
		store, err := logevents.Open(logevents.Config{Dir: t.TempDir(), GroupBytes: 1 << 30, TotalBytes: 1 << 30, Now: time.Now, Lost: func(string, string, int64, string) {}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(store.Close)
		f.events[h], handlers[h] = store, hostread.NewHandlers(h)
		f.parts[h] = NewParts(h, store, 2)
		f.parts[h].Handle(handlers[h])
		f.servers[h] = NewQueries(h)
		f.servers[h].Hosts = func() []kurabe.HostID { return hostIDs }
		f.servers[h].Ask = hostread.Hosts{Here: handlers[h], Far: func(ctx context.Context, q hostread.Frame) (hostread.Frame, error) {
			if closed(f.cut) {
				return hostread.Frame{}, errors.New("the link is cut")
			}
			q.ID = fmt.Sprint(time.Now().UnixNano())
			back := make(chan hostread.Frame, 1)
			handlers[q.Host].Take(ctx, q, func(_ context.Context, a hostread.Frame) { back <- a })
			select {
			case a := <-back:
				return a, nil
			case <-ctx.Done():
				return hostread.Frame{}, ctx.Err()
			}
		}}
		f.servers[h].Handle(handlers[h])
		t.Cleanup(func() { // before the store is closed
			f.servers[h].End()
			f.parts[h].End()
		})
	}
	return f
}

// fill puts events a second apart on a host: one for each number.
func (f *fleet) fill(t *testing.T, host kurabe.HostID, from, to int, message func(int) string) {
	t.Helper()
	if err := f.events[host].Create("group", "s"); err != nil {
		t.Fatal(err)
	}
	var list []logevents.Event
	for n := from; n < to; n++ {
		list = append(list, logevents.Event{Time: int64(n) * 1000, Ingested: int64(n) * 1000, Message: []byte(message(n))})
	}
	if err := f.events[host].Append("group", "s", list, nil); err != nil {
		t.Fatal(err)
	}
}

func ask(query string) Request {
	return Request{Query: query, Groups: []Group{{Name: "group"}}, Account: "0", To: 1 << 40, Limit: 10_000}
}

// until asks a server for results until they are as they should be.
func until(t *testing.T, s *Queries, id, what string, is func(Answer) bool) Answer {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		a, err := s.Results(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if is(a) {
			return a
		}
		if time.Now().After(end) {
			t.Fatalf("%s: %s, %v, %d rows", what, a.Status, a.Statistics, len(a.Rows))
		}
	}
}

func ended(a Answer) bool { return a.Status != Scheduled && a.Status != Running }

func TestQueryOverHosts(t *testing.T) {
	f := newFleet(t)
	f.fill(t, "h1", 0, 6000, func(n int) string { return fmt.Sprintf(`{"n":%d,"text":"%s"}`, n, strings.Repeat("x", 300)) })
	f.fill(t, "h2", 6000, 8000, func(n int) string { return fmt.Sprintf(`{"n":%d,"text":"%s"}`, n, strings.Repeat("y", 300)) })
	here, there := f.servers["h1"], f.servers["h2"]

	id, err := here.Start(ask("filter n >= 10 | stats count(*) as c, max(n) as m, pct(n, 50) as p"))
	if err != nil {
		t.Fatal(err)
	}
	a := until(t, there, id, "the end", ended)
	if got := fmt.Sprint(a.Rows); a.Status != Complete || got != "[[{c 7990} {m 7999} {p 4004}]]" || a.Statistics.Matched != 7990 || a.Statistics.Scanned != 8000 {
		t.Errorf("%s: %s, %+v", a.Status, got, a.Statistics)
	}

	// Rows are more than a chunk, in order; @ptr leads to the event on its host.
	if id, err = there.Start(ask("fields n, @message")); err != nil {
		t.Fatal(err)
	}
	if a = until(t, here, id, "the end", ended); len(a.Rows) != 8000 {
		t.Fatalf("%d rows, %s", len(a.Rows), a.Reason)
	}
	for n, row := range a.Rows {
		if row[0].Value != fmt.Sprint(7999-n) {
			t.Fatalf("row %d is %s", n, row[0].Value)
		}
	}
	for _, n := range []int{0, 7999} {
		row := a.Rows[n]
		group, at, err := logread.ReadPointer(row[2].Value)
		if err != nil {
			t.Fatal(err)
		}
		if e, _, err := f.events[at.Host].Get(group, at.Stream, at.Number); err != nil || string(e.Message) != row[1].Value {
			t.Errorf("%+v: %q, %v", at, e.Message, err)
		}
	}
	if list := here.List(t.Context()); len(list) != 2 || list[0].ID != id || list[0].Status != Complete {
		t.Errorf("the list is %+v", list)
	}
	if err := here.Stop(t.Context(), id); kurabe.CodeOf(err) != kurabe.CodeInvalidParameterValue {
		t.Errorf("stop after the end: %v", err)
	}
	for _, unknown := range []string{"", "x", strings.Repeat("0", idLength) + "-h1", strings.Repeat("0", idLength) + "-h9"} {
		if _, err := here.Results(t.Context(), unknown); kurabe.CodeOf(err) != kurabe.CodeResourceNotFound {
			t.Errorf("%q: %v", unknown, err)
		}
	}
	var mistake *logquery.Error
	if _, err := here.Start(ask("fields | x")); !errors.As(err, &mistake) || mistake.Start != 7 {
		t.Errorf("a wrong query: %v", err)
	}
}

// While a host is away the rows of the others are shown; at the end the query says what is missing.
func TestHostAway(t *testing.T) {
	f := newFleet(t)
	f.fill(t, "h1", 0, 100, func(n int) string { return "x" })
	f.fill(t, "h2", 100, 200, func(n int) string { return "y" })
	close(f.cut)
	s := f.servers["h1"]
	id, err := s.Start(ask("stats count(*) as c by @log"))
	if err != nil {
		t.Fatal(err)
	}
	until(t, s, id, "partial rows", func(a Answer) bool { return a.Status == Running && fmt.Sprint(a.Rows) == "[[{@log 0:group} {c 100}]]" })
	a := until(t, s, id, "the end", ended)
	if a.Status != Failed || len(a.Rows) != 2 || a.Rows[0][1].Value != "100" || !strings.Contains(a.Rows[1][0].Value, "host h2") {
		t.Errorf("%s: %v", a.Status, a.Rows)
	}
}

// A query that waits for room is scheduled; stopped, it gives its places back. There are not more
// than a number of them.
func TestStopAndBounds(t *testing.T) {
	f := newFleet(t)
	f.fill(t, "h1", 0, 100, func(n int) string { return "x" })
	for range runningMax {
		f.parts["h1"].running <- struct{}{}
		f.parts["h2"].running <- struct{}{}
	}
	s := f.servers["h1"]
	var ids []string
	for range underWayMax {
		id, err := s.Start(ask("stats count(*)"))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if _, err := s.Start(ask("stats count(*)")); kurabe.CodeOf(err) != kurabe.CodeThrottled {
		t.Errorf("one too many: %v", err)
	}
	if a, err := s.Results(t.Context(), ids[0]); err != nil || a.Status != Scheduled {
		t.Errorf("%s, %v", a.Status, err)
	}
	for _, id := range ids {
		if err := f.servers["h2"].Stop(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		until(t, s, id, "the end", func(a Answer) bool { return a.Status == Cancelled })
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		left := 0
		for _, p := range f.parts {
			p.mu.Lock()
			left += len(p.list)
			p.mu.Unlock()
		}
		if left == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d parts are left", left)
		}
	}
	for range runningMax {
		<-f.parts["h1"].running
		<-f.parts["h2"].running
	}
	id, err := s.Start(ask("stats count(*) as c"))
	if err != nil {
		t.Fatal(err)
	}
	if a := until(t, s, id, "the end", ended); fmt.Sprint(a.Rows) != "[[{c 100}]]" {
		t.Errorf("%s: %v", a.Status, a.Rows)
	}
}

// A query that would keep too much fails, and says why.
func TestTooManyGroups(t *testing.T) {
	f := newFleet(t)
	for n := range 20 {
		f.fill(t, "h1", n*1000, n*1000+1000, func(n int) string { return fmt.Sprintf("%d%s", n, strings.Repeat("x", 2000)) })
	}
	s := f.servers["h1"]
	id, err := s.Start(ask("stats count(*), count_distinct(@timestamp) by @message"))
	if err != nil {
		t.Fatal(err)
	}
	if a := until(t, s, id, "the end", ended); a.Status != Failed || !strings.Contains(a.Reason, "64 MiB") {
		t.Errorf("%s: %s", a.Status, a.Reason)
	}
}
