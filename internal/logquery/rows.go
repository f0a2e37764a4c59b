package logquery

import (
	"cmp"
	"slices"
)

// kept is a row that is among the first so far.
type kept struct {
	Keys  []value `json:"k,omitempty"` // of the order
	Time  int64   `json:"t,omitempty"`
	Tie   int64   `json:"i,omitempty"`
	Once  []byte  `json:"o,omitempty"` // key of dedup
	Cells []value `json:"c"`           // of the outputs
	bytes int
}

// rows keep the first rows in the order of a segment: a heap whose root is the last of them.
// Without a sort, events are in the order of time, newest first; tables stay as they are.
type rows struct {
	segment *segment
	list    []*kept
	kept    map[string]*kept // by the key of dedup; then list is not a heap
	bytes   int
	room    int // rows, where bytes have ended the room; 0: as many as the limit
	keys    []value
}

// compare orders rows by what sort asks, then by time and place: events of one time that are sorted by it,
// the oldest first, are in their order in the log.
func (w *rows) compare(a, b *kept) int {
	for n, o := range w.segment.sort {
		c := a.Keys[n].order(b.Keys[n])
		if o.descending {
			c = -c
		}
		if c != 0 {
			return c
		}
	}
	if w.segment.table {
		return cmp.Compare(a.Tie, b.Tie)
	}
	c := cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Tie, b.Tie))
	if n := len(w.segment.sort); n == 0 || w.segment.sort[n-1].descending {
		return -c
	}
	return c
}

func (w *rows) full() bool {
	return len(w.list) > 0 && (len(w.list) == w.segment.limit || w.room > 0 && len(w.list) >= w.room)
}

// newerThan says that events up to a time cannot be among the first any more.
func (w *rows) newerThan(last int64) bool {
	return w.segment.newest && w.segment.stats == nil && len(w.segment.dedup) == 0 && w.full() && w.list[0].Time > last
}

// take keeps a row if it is among the first.
func (w *rows) take(r *row) {
	w.keys = w.keys[:0]
	for _, o := range w.segment.sort {
		w.keys = append(w.keys, o.node(r))
	}
	k := kept{Keys: w.keys, Time: r.time, Tie: r.tie}
	if w.full() && w.compare(&k, w.list[0]) >= 0 {
		return
	}
	w.push(k.own(w.segment, r))
}

// takeOnce keeps a row if it is the first of those with its key.
func (w *rows) takeOnce(by *worker, r *row) error {
	k := kept{Time: r.time, Tie: r.tie}
	for _, o := range w.segment.sort {
		k.Keys = append(k.Keys, o.node(r))
	}
	have := w.kept[string(by.key)]
	if have != nil && w.compare(&k, have) >= 0 {
		return nil
	}
	made := k.own(w.segment, r)
	made.Once = slices.Clone(by.key)
	before := 0
	if have != nil {
		before = have.bytes
	}
	w.once(made, have)
	return by.use(made.bytes - before)
}

// once puts a row where the one with the same key was, or behind the others.
func (w *rows) once(k, have *kept) {
	w.kept[string(k.Once)] = k
	if have == nil {
		w.list = append(w.list, k)
		return
	}
	w.list[slices.Index(w.list, have)] = k
}

// own makes the row independent of the block.
func (k kept) own(s *segment, r *row) *kept {
	k.Keys = slices.Clone(k.Keys)
	k.bytes = 100
	for n := range k.Keys {
		k.Keys[n] = owned(k.Keys[n])
		k.bytes += 40 + len(k.Keys[n].Text)
	}
	k.Cells = make([]value, len(s.outputs))
	for n, o := range s.outputs {
		k.Cells[n] = owned(o.node(r))
		k.bytes += 40 + len(k.Cells[n].Text)
	}
	return &k
}

// merge takes a row of another.
func (w *rows) merge(k *kept) {
	if len(w.segment.dedup) > 0 {
		if have := w.kept[string(k.Once)]; have == nil || w.compare(k, have) < 0 {
			w.once(k, have)
		}
		return
	}
	if k.bytes == 0 { // from another host
		for n := range k.Cells {
			k.bytes += 40 + len(k.Cells[n].Text)
		}
	}
	if !w.full() || w.compare(k, w.list[0]) < 0 {
		w.push(k)
	}
}

// push adds a row to the heap, and drops the last ones when there are too many.
func (w *rows) push(k *kept) {
	if w.full() {
		w.bytes -= w.list[0].bytes
		w.list[0] = k
		w.down(0)
	} else {
		w.list = append(w.list, k)
		for n := len(w.list) - 1; n > 0; {
			up := (n - 1) / 2
			if w.compare(w.list[up], w.list[n]) >= 0 {
				break
			}
			w.list[up], w.list[n] = w.list[n], w.list[up]
			n = up
		}
	}
	for w.bytes += k.bytes; w.bytes > rowsBytesMax && len(w.list) > 1 && !w.segment.table; {
		last := len(w.list) - 1
		w.bytes -= w.list[0].bytes
		w.list[0], w.list = w.list[last], w.list[:last]
		w.down(0)
		w.room = last
	}
}

func (w *rows) down(n int) {
	for {
		worst := n
		for _, child := range []int{2*n + 1, 2*n + 2} {
			if child < len(w.list) && w.compare(w.list[child], w.list[worst]) > 0 {
				worst = child
			}
		}
		if worst == n {
			return
		}
		w.list[n], w.list[worst] = w.list[worst], w.list[n]
		n = worst
	}
}

// sorted are the rows in their order, up to the limit.
func (w *rows) sorted() []*kept {
	slices.SortFunc(w.list, w.compare)
	if w.segment.limit > 0 && len(w.list) > w.segment.limit {
		return w.list[:w.segment.limit]
	}
	return w.list
}
