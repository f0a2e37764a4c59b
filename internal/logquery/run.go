package logquery

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"kurabe/internal/logevents"
)

// Statistics count what was looked at.
type Statistics struct {
	Matched int64 // events that all filters kept
	Scanned int64
	Bytes   int64 // of the messages of blocks
}

// Add adds those of another part.
func (s *Statistics) Add(o Statistics) {
	s.Matched += o.Matched
	s.Scanned += o.Scanned
	s.Bytes += o.Bytes
}

const (
	// workBytesMax bounds what a run keeps of groups and of rows without duplicates.
	workBytesMax = 64 << 20
	// rowsBytesMax bounds the rows of one worker; the last in the order go.
	rowsBytesMax = 16 << 20
)

// ErrTooLarge ends a query that would keep too much.
var ErrTooLarge = errors.New("the query keeps more than 64 MiB of groups: group by fewer values or filter first")

// Run is a program over the events of one host. Its workers run at the same time.
type Run struct {
	program *Program
	span    Span
	used    atomic.Int64
	workers []*worker
}

// Span is what a run looks at.
type Span struct {
	To int64 // the time at which the events end, in Unix milliseconds; it is not included
	// Account is what @log shows before the group.
	Account string
	// Pointer is the @ptr that leads to an event of a block, by its place.
	Pointer func(b *logevents.Block, event int) []byte
}

// NewRun returns a run.
func (p *Program) NewRun(workers int, span Span) *Run {
	r := &Run{program: p, span: span}
	for range workers {
		r.workers = append(r.workers, newWorker(p.segments[0], p, &r.used))
	}
	return r
}

// worker evaluates a segment.
type worker struct {
	mu      sync.Mutex // guards the rest; a worker holds it for a block
	segment *segment
	row     *row
	search  search
	used    *atomic.Int64
	key     []byte
	groups  map[string]*grouped
	rows    rows
	stats   Statistics
}

func newWorker(s *segment, p *Program, used *atomic.Int64) *worker {
	return &worker{segment: s, row: newRow(s, p.now), search: search{literals: s.literals}, used: used,
		groups: map[string]*grouped{}, rows: rows{segment: s, kept: map[string]*kept{}}}
}

// Block evaluates the events of a block from a time on, in Unix milliseconds, in a worker. What
// they say is not kept.
func (r *Run) Block(n int, b *logevents.Block, from int64) error {
	w := r.workers[n]
	w.mu.Lock()
	defer w.mu.Unlock()
	w.row.log, w.row.stream = []byte(r.span.Account+":"+b.Group), []byte(b.Stream)
	w.stats.Bytes += int64(len(b.Text))
	all, last, before := true, int64(math.MinInt64), w.stats.Scanned
	for n := range b.Events {
		at := b.Events[n].Time
		if at < from || at >= r.span.To {
			all = false
			continue
		}
		w.stats.Scanned++
		last = max(last, at)
	}
	if w.rows.newerThan(last) && len(w.segment.filters) == 0 {
		w.stats.Matched += w.stats.Scanned - before
		return nil
	}
	if len(w.search.list) > 0 {
		w.search.begin(b.Text)
	}
	for n := w.candidate(b, 0); n < len(b.Events); n = w.candidate(b, n+1) {
		if at := b.Events[n].Time; !all && (at < from || at >= r.span.To) {
			continue
		}
		if err := w.event(r, b, n); err != nil {
			return err
		}
	}
	return nil
}

// candidate returns the next event from a place on that the filters may keep.
func (w *worker) candidate(b *logevents.Block, n int) int {
	if len(w.search.list) == 0 || n >= len(b.Events) {
		return n
	}
	at := w.search.from(b.Events[n].Start)
	if at == nowhere {
		return len(b.Events)
	}
	const near = 4
	for end := min(len(b.Events), n+near); n < end; n++ {
		if b.Events[n].End > at {
			return n
		}
	}
	return n + sort.Search(len(b.Events)-n, func(i int) bool { return b.Events[n+i].End > at })
}

func (w *worker) event(from *Run, b *logevents.Block, n int) error {
	r, e := w.row, &b.Events[n]
	r.begin()
	r.time, r.ingested, r.message = e.Time, e.Ingested, b.Text[e.Start:e.End]
	for _, f := range w.segment.filters {
		if !f(r).holds() {
			return nil
		}
	}
	w.stats.Matched++
	r.tie = b.First + int64(n)
	r.pointer = func() []byte { return from.span.Pointer(b, n) }
	return w.take(r)
}

// take takes up a row that the filters have kept.
func (w *worker) take(r *row) error {
	if w.segment.stats != nil {
		return w.aggregate(r)
	}
	if len(w.segment.dedup) > 0 {
		w.key = w.key[:0]
		for _, k := range w.segment.dedup {
			w.key = appendKey(w.key, k(r))
		}
		return w.rows.takeOnce(w, r)
	}
	w.rows.take(r)
	return nil
}

// grouped is a group of stats.
type grouped struct {
	Keys   []value
	States []state
}

// appendKey appends a value so that different values have different keys.
func appendKey(b []byte, v value) []byte {
	if v.Kind == absent {
		return append(b, 0)
	}
	b = append(b, 1)
	from := len(b)
	b = v.appendText(b)
	n := len(b) - from
	return append(b, byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
}

func (w *worker) aggregate(r *row) error {
	s := w.segment.stats
	w.key = w.key[:0]
	for _, k := range s.keys {
		w.key = appendKey(w.key, k(r))
	}
	g := w.groups[string(w.key)]
	if g == nil {
		var keys []value
		for _, k := range s.keys {
			keys = append(keys, owned(k(r)))
		}
		g = &grouped{keys, make([]state, len(s.aggs))}
		if err := w.add(string(w.key), g); err != nil {
			return err
		}
	}
	for n := range s.aggs {
		a, st := &s.aggs[n], &g.States[n]
		v := value{}
		if a.arg != nil {
			if v = a.arg(r); v.Kind == absent {
				continue
			}
		}
		if a.grows {
			before := st.bytes()
			a.add(st, v, r)
			if err := w.use(st.bytes() - before); err != nil {
				return err
			}
			continue
		}
		a.add(st, v, r)
	}
	return nil
}

// add adds a group.
func (w *worker) add(key string, g *grouped) error {
	w.groups[key] = g
	n := 2*len(key) + 100
	for i := range g.States {
		n += g.States[i].bytes()
	}
	return w.use(n)
}

func (w *worker) use(bytes int) error {
	if bytes != 0 && w.used.Add(int64(bytes)) > workBytesMax {
		return ErrTooLarge
	}
	return nil
}

// owned is a value whose text belongs to nobody else.
func owned(v value) value {
	v.Text = slices.Clone(v.Text)
	return v
}

// Partial is the result of a run, or what it is so far.
type Partial struct {
	Groups     []*grouped `json:",omitempty"`
	Rows       []*kept    `json:",omitempty"`
	Statistics Statistics
}

// Statistics are what a run has looked at so far.
func (r *Run) Statistics() (sum Statistics) {
	for _, w := range r.workers {
		w.mu.Lock()
		sum.Add(w.stats)
		w.mu.Unlock()
	}
	return sum
}

// Partial returns what a run knows so far. It shares nothing with the run.
func (r *Run) Partial() (*Partial, error) {
	m := r.program.newMerge()
	for _, w := range r.workers {
		w.mu.Lock()
		p := &Partial{Statistics: w.stats, Rows: w.rows.list}
		for _, g := range w.groups {
			p.Groups = append(p.Groups, g)
		}
		err := m.add(p)
		w.mu.Unlock()
		if err != nil {
			return nil, err
		}
	}
	return m.partial(), nil
}

// merge joins partial results.
type merge struct{ *worker }

func (p *Program) newMerge() merge { return merge{newWorker(p.segments[0], p, new(atomic.Int64))} }

func (m merge) add(p *Partial) error {
	m.stats.Add(p.Statistics)
	s := m.segment
	for _, o := range p.Groups {
		if s.stats == nil || len(o.Keys) != len(s.stats.keys) || len(o.States) != len(s.stats.aggs) {
			return fmt.Errorf("a host of another version has other groups")
		}
		m.key = m.key[:0]
		for _, k := range o.Keys {
			m.key = appendKey(m.key, k)
		}
		g := m.groups[string(m.key)]
		if g == nil {
			g = &grouped{o.Keys, make([]state, len(s.stats.aggs))}
			if err := m.worker.add(string(m.key), g); err != nil {
				return err
			}
		}
		for n := range s.stats.aggs {
			before := g.States[n].bytes()
			s.stats.aggs[n].merge(&g.States[n], &o.States[n])
			if err := m.use(g.States[n].bytes() - before); err != nil {
				return err
			}
		}
	}
	for _, k := range p.Rows {
		if len(k.Cells) != len(s.outputs) || len(k.Keys) != len(s.sort) {
			return fmt.Errorf("a host of another version has other rows")
		}
		m.rows.merge(k)
	}
	return nil
}

func (m merge) partial() *Partial {
	p := &Partial{Statistics: m.stats, Rows: m.rows.list}
	for _, g := range m.groups {
		for n := range g.States {
			g.States[n].Distinct.pack()
		}
		p.Groups = append(p.Groups, g)
	}
	return p
}

// Size is about how many bytes a group or a row has on its way between hosts.
func (g *grouped) Size() (n int) {
	for _, k := range g.Keys {
		n += 40 + 2*len(k.Text)
	}
	for i := range g.States {
		n += 2 * g.States[i].bytes()
	}
	return n
}

// Size is about how many bytes a row has on its way between hosts.
func (k *kept) Size() int { return 2 * k.bytes }
