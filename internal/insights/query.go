package insights

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/hostread"
	"kurabe/internal/logquery"
)

// Status is the state of a query.
type Status string

// The states, by CloudWatch's names.
const (
	Scheduled Status = "Scheduled"
	Running   Status = "Running"
	Complete  Status = "Complete"
	Failed    Status = "Failed"
	Cancelled Status = "Cancelled"
	Timeout   Status = "Timeout"
)

const (
	// underWayMax bounds the queries of a server that have not ended.
	underWayMax = 30
	// queryTime bounds a query.
	queryTime = 15 * time.Minute
	// keptTime is for how long results are kept, keptMax how many, keptBytes how large, together.
	keptTime  = time.Hour
	keptMax   = 200
	keptBytes = 64 << 20
	// resultBytes bounds the rows of one result: those behind are left out.
	resultBytes = 8 << 20
	// awayTime is for how long a host may be away before its part fails.
	awayTime = 5 * time.Second
	pollTime = 100 * time.Millisecond
	// freshTime is how old a partial result may be.
	freshTime = time.Second
)

// Request is what a query is started with.
type Request struct {
	Query   string
	Groups  []Group
	Account string
	To      int64 // Unix milliseconds, not included
	Limit   int   // rows
}

// Query is what is told of one.
type Query struct {
	ID         string
	Text       string
	Groups     []string
	Created    time.Time
	Took       time.Duration
	Status     Status
	Reason     string // why it failed
	Statistics logquery.Statistics
}

// Answer is what a query has found, or has found so far: rows from a place on. Next is the place
// behind them when there are more.
type Answer struct {
	Query
	Rows [][]logquery.Field
	Next int
}

type place struct {
	ID string
	At int
}

// The questions to the server that has started a query.
var (
	readQuery = hostread.Kind[place, Answer]{Name: "logs-query-results", Class: hostread.Insights}
	stopQuery = hostread.Kind[string, bool]{Name: "logs-query-stop", Class: hostread.Insights}
	listQuery = hostread.Kind[struct{}, []Query]{Name: "logs-queries", Class: hostread.Insights}
)

// Queries are the queries that this server has started, and the way to those of others. Ask and
// Hosts are set before the first one.
type Queries struct {
	Ask   hostread.Hosts
	Hosts func() []kurabe.HostID

	host kurabe.HostID // of this server
	life
	mu   sync.Mutex // guards the rest, and what is under way of each
	list []*query   // oldest first
}

type query struct {
	Query
	program *logquery.Program
	cancel  context.CancelFunc
	rows    [][]logquery.Field
	bytes   int
	wanted  bool      // somebody asked for results since the last ones
	fresh   time.Time // of rows
}

// NewQueries returns the queries of the server on a host.
func NewQueries(host kurabe.HostID) *Queries { return &Queries{host: host, life: newLife()} }

// Handle has this server answer for its queries.
func (s *Queries) Handle(h *hostread.Handlers) {
	hostread.Handle(h, readQuery, func(_ context.Context, q place) (Answer, error) { return s.read(q) })
	hostread.Handle(h, stopQuery, func(_ context.Context, id string) (bool, error) { return true, s.stop(id) })
	hostread.Handle(h, listQuery, func(context.Context, struct{}) ([]Query, error) { return s.own(), nil })
}

// Start starts a query and returns its id. Errors: *logquery.Error, CodeThrottled when too many
// queries are under way.
func (s *Queries) Start(r Request) (string, error) {
	parsed, err := logquery.Parse(r.Query)
	if err != nil {
		return "", err
	}
	now := time.Now()
	program, err := logquery.Compile(parsed, r.Limit, now)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(now)
	underWay := 0
	for _, q := range s.list {
		if !q.ended() {
			underWay++
		}
	}
	if underWay >= underWayMax {
		return "", kurabe.Errorf(kurabe.CodeThrottled, "%d queries are under way, the most that a server runs at a time; wait for one, or stop it", underWayMax)
	}
	ctx, cancel := context.WithTimeout(s.ctx, queryTime)
	q := &query{Query: Query{ID: s.newID(), Text: r.Query, Created: now, Status: Scheduled}, program: program, cancel: cancel}
	for _, g := range r.Groups {
		q.Groups = append(q.Groups, g.Name)
	}
	s.list = append(s.list, q)
	part := question{Layout: layout, Query: r.Query, Limit: r.Limit, Now: now, To: r.To, Groups: r.Groups, Account: r.Account}
	s.Go(func() { s.run(ctx, q, part) })
	return q.ID, nil
}

func (q *query) ended() bool { return q.Status != Scheduled && q.Status != Running }

// forget drops old queries and results. The caller holds mu.
func (s *Queries) forget(now time.Time) {
	bytes := 0
	for _, q := range s.list {
		bytes += q.bytes
	}
	over := len(s.list) - keptMax
	s.list = slices.DeleteFunc(s.list, func(q *query) bool {
		if !q.ended() || now.Sub(q.Created) < keptTime && over <= 0 && bytes <= keptBytes {
			return false
		}
		over--
		bytes -= q.bytes
		return true
	})
}

// idLength is that of the random part of an id, which has the form of a UUID.
const idLength = 36

func (s *Queries) newID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:])
	return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:], string(s.host)}, "-")
}

// hostOf is the host whose server has started a query.
func hostOf(id string) (kurabe.HostID, error) {
	if len(id) <= idLength+1 || id[idLength] != '-' {
		return "", unknown(id)
	}
	return kurabe.HostID(id[idLength+1:]), nil
}

func unknown(id string) error {
	return kurabe.Errorf(kurabe.CodeResourceNotFound, "there is no query with the id %.100q: results are kept for an hour, in the memory of the server that ran the query", id)
}

// find returns a query of this server. The caller holds mu.
func (s *Queries) find(id string) (*query, error) {
	for _, q := range s.list {
		if q.ID == id {
			return q, nil
		}
	}
	return nil, unknown(id)
}

func (q *query) told() Query {
	t := q.Query
	if !q.ended() {
		t.Took = time.Since(t.Created)
	}
	return t
}

func (s *Queries) read(p place) (a Answer, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(p.ID)
	if err != nil {
		return a, err
	}
	q.wanted = true
	a.Query = q.told()
	bytes := 0
	for n := p.At; n < len(q.rows); n++ {
		if bytes > chunkBytes {
			if q.ended() {
				a.Next = n
			}
			break
		}
		a.Rows = append(a.Rows, q.rows[n])
		bytes += size(q.rows[n])
	}
	return a, nil
}

func size(row []logquery.Field) (n int) {
	for _, f := range row {
		n += len(f.Name) + len(f.Value) + 20
	}
	return n
}

func (s *Queries) stop(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(id)
	if err != nil {
		return err
	}
	if q.ended() {
		return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "the query %s has ended already: its status is %s", id, q.Status)
	}
	q.end(Cancelled, "")
	return nil
}

// end ends a query that has not ended. The caller holds mu.
func (q *query) end(status Status, reason string) {
	if q.ended() {
		return
	}
	q.Took = time.Since(q.Created)
	q.Status, q.Reason = status, reason
	q.cancel()
}

func (s *Queries) own() (list []Query) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(time.Now())
	for _, q := range s.list {
		list = append(list, q.told())
	}
	return list
}

// Results returns what a query has found. Errors: CodeResourceNotFound; CodeUnavailable when its
// server does not answer.
func (s *Queries) Results(ctx context.Context, id string) (whole Answer, err error) {
	host, err := s.hostOf(id)
	if err != nil {
		return whole, err
	}
	for a, err := range hostread.Stream(ctx, s.Ask, host, readQuery, place{ID: id}, func(q *place, a Answer) bool {
		more := a.Next > q.At
		q.At = a.Next
		return more
	}) {
		if err != nil {
			return whole, err
		}
		a.Rows = append(whole.Rows, a.Rows...)
		whole = a
	}
	return whole, nil
}

// Stop stops a query. Errors are those of Results, and CodeInvalidParameterValue after its end.
func (s *Queries) Stop(ctx context.Context, id string) error {
	host, err := s.hostOf(id)
	if err == nil {
		_, err = hostread.Ask(ctx, s.Ask, host, stopQuery, id)
	}
	return err
}

// hostOf is the host whose server has started a query; the id may name none of the service.
func (s *Queries) hostOf(id string) (kurabe.HostID, error) {
	host, err := hostOf(id)
	if err == nil && host != s.host && !slices.Contains(s.Hosts(), host) {
		err = unknown(id)
	}
	return host, err
}

// List returns the queries of all servers that answer, newest first.
func (s *Queries) List(ctx context.Context) (list []Query) {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	var mu sync.Mutex // guards list
	var wait sync.WaitGroup
	for _, host := range s.Hosts() {
		wait.Go(func() {
			own, err := hostread.Ask(ctx, s.Ask, host, listQuery, struct{}{})
			if err == nil { // a host without a server has none
				mu.Lock()
				list = append(list, own...)
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	slices.SortFunc(list, func(a, b Query) int { return b.Created.Compare(a.Created) })
	return list
}

const listTime = 2 * time.Second
