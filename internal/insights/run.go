package insights

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/hostread"
	"kurabe/internal/logquery"
)

// hostPart is the part of a query on one host, as the server of the query knows it.
type hostPart struct {
	host kurabe.HostID

	mu      sync.Mutex // guards the rest
	id      string
	heard   time.Time
	started bool
	done    bool
	reason  string // why it failed
	stats   logquery.Statistics
}

// follow starts the part and asks how far it is until it is done. A host that is busy is asked
// again; the part of one that stays away for a time has failed.
func (p *hostPart) follow(ctx context.Context, hosts hostread.Hosts, ask question) {
	for ctx.Err() == nil {
		one, cancel := context.WithTimeout(ctx, hostread.AnswerTime)
		var err error
		var a progress
		id := p.id
		if id == "" {
			id, err = hostread.Ask(one, hosts, p.host, startPart, ask)
		} else {
			a, err = hostread.Ask(one, hosts, p.host, askPart, poll{ID: id})
		}
		cancel()
		if p.take(id, a, err) {
			return
		}
		select {
		case <-time.After(pollTime):
		case <-ctx.Done():
		}
	}
}

// take takes what the host has said, and says whether the part is done.
func (p *hostPart) take(id string, a progress, err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch code := kurabe.CodeOf(err); {
	case err == nil && p.id == "":
		p.id, p.heard = id, time.Now()
	case err == nil:
		p.heard = time.Now()
		p.started, p.done, p.stats, p.reason = a.Started, a.Done, a.Statistics, a.Reason
	case code == kurabe.CodeThrottled:
		p.heard = time.Now()
	case code == kurabe.CodeUnavailable && time.Since(p.heard) < awayTime, errors.Is(err, context.Canceled):
	case code == kurabe.CodeResourceNotFound, code == kurabe.CodeUnavailable:
		p.done, p.reason = true, err.Error()
	default:
		p.done, p.reason = true, "the host does not answer"
	}
	return p.done
}

// run runs a query on all hosts and merges.
func (s *Queries) run(ctx context.Context, q *query, ask question) {
	var parts []*hostPart
	var wait sync.WaitGroup
	for _, h := range s.Hosts() {
		p := &hostPart{host: h, heard: time.Now()}
		parts = append(parts, p)
		wait.Go(func() { p.follow(ctx, s.Ask, ask) })
	}
	all := make(chan struct{})
	go func() { // ends with the parts, which end with ctx
		wait.Wait()
		close(all)
	}()
	for done := false; !done; {
		select {
		case <-time.After(pollTime):
		case <-all:
			done = true
		}
		s.count(q, parts)
		if ctx.Err() == nil && (done || s.due(q)) {
			s.merge(ctx, q, parts, done)
		}
	}
	s.mu.Lock()
	q.end(Timeout, "the query has run for 15 minutes, the longest that one may") // unless it has ended
	s.mu.Unlock()
	for _, p := range parts {
		if p.id != "" { // a host that is away ends the part when nobody asks for it
			end, cancel := context.WithTimeout(s.ctx, listTime)
			_, _ = hostread.Ask(end, s.Ask, p.host, stopPart, p.id)
			cancel()
		}
	}
}

// count brings state and statistics of a query up to date.
func (s *Queries) count(q *query, parts []*hostPart) {
	var sum logquery.Statistics
	started := false
	for _, p := range parts {
		p.mu.Lock()
		started = started || p.started
		sum.Add(p.stats)
		p.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.Status == Scheduled && started {
		q.Status = Running
	}
	q.Statistics = sum
}

// due says that somebody waits for newer rows of a query.
func (s *Queries) due(q *query) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return q.wanted && q.Status == Running && time.Since(q.fresh) >= freshTime
}

// merge makes rows of the partial results, and ends the query when they are complete.
func (s *Queries) merge(ctx context.Context, q *query, parts []*hostPart, done bool) {
	rows, reasons, err := s.finish(ctx, q, parts, done)
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.ended() || ctx.Err() != nil {
		return
	}
	if err != nil {
		q.rows, q.bytes = nil, 0
		q.fail(err.Error())
		return
	}
	q.wanted, q.fresh = false, time.Now()
	q.rows, q.bytes = nil, 0
	for _, row := range rows {
		if q.bytes += size(row); q.bytes > resultBytes {
			break
		}
		q.rows = append(q.rows, row)
	}
	switch {
	case !done:
	case len(reasons) > 0:
		q.fail("the rows are of a part of the events; " + strings.Join(reasons, "; "))
	default:
		q.end(Complete, "")
	}
}

// fail ends a query; the last of its rows says why. The caller holds mu.
func (q *query) fail(reason string) {
	q.rows = append(q.rows, []logquery.Field{{Name: "@message", Value: reason}})
	q.end(Failed, reason)
}

// finish fetches the partial results of the parts and completes them. While the query runs, a host
// that does not answer soon is left out.
func (s *Queries) finish(ctx context.Context, q *query, parts []*hostPart, done bool) (rows [][]logquery.Field, reasons []string, err error) {
	if !done {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, freshTime)
		defer cancel()
	}
	var mu sync.Mutex // guards list and reasons
	var list []*logquery.Partial
	var wait sync.WaitGroup
	for _, p := range parts {
		p.mu.Lock()
		id, reason := p.id, p.reason
		p.mu.Unlock()
		if reason != "" {
			mu.Lock()
			reasons = append(reasons, fmt.Sprintf("host %s: %s", p.host, reason))
			mu.Unlock()
		}
		if id == "" || reason != "" {
			continue
		}
		wait.Go(func() {
			part, err := fetch(ctx, s.Ask, p.host, id)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				reasons = append(reasons, fmt.Sprintf("host %s: %s", p.host, err))
				return
			}
			list = append(list, &part)
		})
	}
	wait.Wait()
	result, err := q.program.Finish(list)
	return result.Rows, reasons, err
}
