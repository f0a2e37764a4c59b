package insights

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/hostread"
	"kurabe/internal/logevents"
	"kurabe/internal/logquery"
	"kurabe/internal/logread"
)

// layout numbers the form of partial results: hosts of versions with another refuse.
const layout = 1

const (
	// partsMax bounds the parts on a host, runningMax those that run at the same time: each keeps
	// up to two times 64 MiB of groups.
	partsMax   = 64
	runningMax = 2
	// unaskedMax ends a part whose server asks no more.
	unaskedMax = 30 * time.Second
	// chunkBytes ends a chunk of a partial result; the largest row behind it must fit into a
	// frame, too.
	chunkBytes = 1 << 20
)

// question asks a host for its part of a query.
type question struct {
	Layout  int
	Query   string
	Limit   int
	Now     time.Time
	To      int64 // Unix milliseconds, not included
	Groups  []Group
	Account string
}

// Group is a log group with the time of which its events are asked for.
type Group struct {
	Name string
	From int64 // Unix milliseconds
	// Deleted has the hosts that may not know of the deletion of a group of this name, which had
	// all streams that are not younger, in Unix milliseconds.
	Deleted map[kurabe.HostID]int64
}

// poll asks how far a part is. With Partial also for the partial result, from a place on.
type poll struct {
	ID      string
	Partial bool
	At      int
}

type progress struct {
	Started, Done bool
	Reason        string // why the part has failed
	Statistics    logquery.Statistics
	Partial       *logquery.Partial
	Next          int // 0: the chunk is the last
}

// The questions about parts.
var (
	startPart = hostread.Kind[question, string]{Name: "logs-part-start", Class: hostread.Insights}
	askPart   = hostread.Kind[poll, progress]{Name: "logs-part-ask", Class: hostread.Insights}
	stopPart  = hostread.Kind[string, bool]{Name: "logs-part-stop", Class: hostread.Insights}
)

// life is that of what runs beside the questions.
type life struct {
	*sync.WaitGroup
	ctx    context.Context
	cancel context.CancelFunc
}

func newLife() life {
	ctx, cancel := context.WithCancel(context.Background())
	return life{&sync.WaitGroup{}, ctx, cancel}
}

// End ends what runs, and returns when it has ended.
func (l life) End() {
	l.cancel()
	l.Wait()
}

// Parts are the parts of queries that run on a host.
type Parts struct {
	host    kurabe.HostID
	events  *logevents.Store
	workers int
	running chan struct{}
	life

	mu   sync.Mutex // guards parts, and asked and copy of each
	list map[string]*part
}

type part struct {
	run    *logquery.Run
	cancel context.CancelFunc
	began  chan struct{}
	done   chan struct{} // closed after err was set
	err    error
	asked  time.Time
	copy   *logquery.Partial // whose chunks are being asked for
}

// NewParts returns the parts of a host, with so many workers for each.
func NewParts(host kurabe.HostID, events *logevents.Store, workers int) *Parts {
	return &Parts{host: host, events: events, workers: workers, running: make(chan struct{}, runningMax), life: newLife(), list: map[string]*part{}}
}

// Handle has the host answer for parts.
func (p *Parts) Handle(h *hostread.Handlers) {
	hostread.Handle(h, startPart, func(_ context.Context, q question) (string, error) { return p.start(q) })
	hostread.Handle(h, askPart, func(_ context.Context, q poll) (progress, error) { return p.ask(q) })
	hostread.Handle(h, stopPart, func(_ context.Context, id string) (bool, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.drop(id), nil
	})
}

func (p *Parts) start(q question) (string, error) {
	if q.Layout != layout {
		return "", kurabe.Errorf(kurabe.CodeUnavailable, "the host's version has another form of queries")
	}
	parsed, err := logquery.Parse(q.Query)
	if err != nil {
		return "", err
	}
	program, err := logquery.Compile(parsed, q.Limit, q.Now)
	if err != nil {
		return "", err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.list) >= partsMax {
		return "", kurabe.Errorf(kurabe.CodeThrottled, "the host runs %d queries; try again", partsMax)
	}
	ctx, cancel := context.WithCancel(p.ctx)
	one := &part{run: program.NewRun(p.workers, logquery.Span{To: q.To, Account: q.Account, Pointer: p.pointer}), cancel: cancel, began: make(chan struct{}), done: make(chan struct{}), asked: time.Now()}
	id := rand.Text()
	p.list[id] = one
	p.Go(func() { p.serve(ctx, one, q) })
	p.Go(func() { p.watch(ctx, id, one) })
	return id, nil
}

// serve runs a part when there is room.
func (p *Parts) serve(ctx context.Context, one *part, q question) {
	defer close(one.done)
	select {
	case p.running <- struct{}{}:
		defer func() { <-p.running }()
	case <-ctx.Done():
		one.err = ctx.Err()
		return
	}
	close(one.began)
	for _, g := range q.Groups {
		block := func(worker int, b *logevents.Block) error { return one.run.Block(worker, b, g.From) }
		if one.err = p.events.Scan(ctx, g.Name, p.streams(g), g.From, q.To, p.workers, block); one.err != nil {
			return
		}
	}
}

// streams are those of a group on this host that were not deleted with an older one; nil: all.
func (p *Parts) streams(g Group) []string {
	until := g.Deleted[p.host]
	if until == 0 {
		return nil
	}
	names := []string{}
	for _, s := range p.events.Streams(g.Name, "") {
		if s.Created > until {
			names = append(names, s.Name)
		}
	}
	return names
}

// pointer is the @ptr of an event of this host.
func (p *Parts) pointer(b *logevents.Block, event int) []byte {
	at := logread.Place{Time: b.Events[event].Time, Stream: b.Stream, Host: p.host, Number: b.First + int64(event)}
	return []byte(logread.Pointer(b.Group, at))
}

// watch drops a part that is asked for no more.
func (p *Parts) watch(ctx context.Context, id string, one *part) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(unaskedMax):
		}
		p.mu.Lock()
		if time.Since(one.asked) >= unaskedMax {
			p.drop(id)
		}
		p.mu.Unlock()
	}
}

// drop forgets a part and ends it. The caller holds mu.
func (p *Parts) drop(id string) bool {
	one, ok := p.list[id]
	if ok {
		one.cancel()
		delete(p.list, id)
	}
	return ok
}

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (p *Parts) ask(q poll) (a progress, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one, ok := p.list[q.ID]
	if !ok {
		return a, kurabe.Errorf(kurabe.CodeResourceNotFound, "the host has forgotten the query: it was restarted")
	}
	one.asked = time.Now()
	a.Started, a.Done = closed(one.began), closed(one.done)
	if a.Done && one.err != nil {
		a.Reason = "the host could not read its log events"
		if errors.Is(one.err, logquery.ErrTooLarge) {
			a.Reason = one.err.Error()
		}
	}
	a.Statistics = one.run.Statistics()
	if !q.Partial {
		return a, nil
	}
	if q.At == 0 || one.copy == nil {
		if one.copy, err = one.run.Partial(); err != nil {
			return a, err
		}
	}
	a.Partial, a.Next = chunk(one.copy, q.At)
	if a.Next == 0 {
		one.copy = nil
	}
	return a, nil
}

// chunk cuts groups and rows from a place on out of a partial result.
func chunk(p *logquery.Partial, at int) (part *logquery.Partial, next int) {
	part = &logquery.Partial{}
	if at == 0 {
		part.Statistics = p.Statistics
	}
	all := len(p.Groups) + len(p.Rows)
	for bytes := 0; at < all; at++ {
		if bytes >= chunkBytes {
			return part, at
		}
		if at < len(p.Groups) {
			part.Groups = append(part.Groups, p.Groups[at])
			bytes += p.Groups[at].Size()
		} else {
			row := p.Rows[at-len(p.Groups)]
			part.Rows = append(part.Rows, row)
			bytes += row.Size()
		}
	}
	return part, 0
}

// fetch asks a host for a whole partial result.
func fetch(ctx context.Context, hosts hostread.Hosts, host kurabe.HostID, id string) (whole logquery.Partial, err error) {
	q := poll{ID: id, Partial: true}
	for a, err := range hostread.Stream(ctx, hosts, host, askPart, q, func(q *poll, a progress) bool {
		more := a.Next > q.At
		q.At = cmp.Or(a.Next, q.At)
		return more
	}) {
		if err != nil {
			return whole, err
		}
		whole.Groups, whole.Rows = append(whole.Groups, a.Partial.Groups...), append(whole.Rows, a.Partial.Rows...)
		if a.Partial.Statistics.Bytes > 0 {
			whole.Statistics = a.Partial.Statistics
		}
	}
	return whole, nil
}
