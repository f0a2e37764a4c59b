package load

import (
	"cmp"
	"slices"

	"kurabe/internal/must"
)

// builder counts sessions for the slots of a chunk.
type builder struct {
	start, step int64
	index       map[Key]int
	keys        []Key
	slots       []map[int]uint64 // counts by the number of a key
	sampled     []uint64
}

func newBuilder(start, step int64, slots int) *builder {
	return &builder{start: start, step: step, index: map[Key]int{}, slots: make([]map[int]uint64, slots), sampled: make([]uint64, slots)}
}

// add counts sessions with a key at a time within the chunk. Its callers bound the keys.
func (b *builder) add(at int64, k Key, count uint64) {
	n, known := b.index[k]
	if !known {
		must.True(len(b.keys) < keysMax, "a chunk has few keys: samples and minutes are bounded")
		n = len(b.keys)
		b.index[k] = n
		b.keys = append(b.keys, k)
	}
	s := (at - b.start) / b.step
	if b.slots[s] == nil {
		b.slots[s] = map[int]uint64{}
	}
	b.slots[s][n] += count
}

// coarse is a key of which only what a session waits for is told.
func (k Key) coarse() Key { return Key{WaitType: k[WaitType], Wait: k[Wait]} }

// chunk returns what was counted. A slot keeps its limit largest keys; of the others the sum
// stays, by what was waited for.
func (b *builder) chunk(limit int) *chunk {
	out := newBuilder(b.start, b.step, len(b.slots))
	c := &chunk{start: b.start, step: b.step}
	for s, counts := range b.slots {
		list := make([]row, 0, len(counts))
		for n, count := range counts {
			list = append(list, row{n, count})
		}
		slices.SortFunc(list, func(x, y row) int {
			return cmp.Or(cmp.Compare(y.count, x.count), compareKeys(b.keys[x.key], b.keys[y.key]))
		})
		for n, r := range list {
			k := b.keys[r.key]
			if n >= limit {
				k = k.coarse()
			}
			out.add(b.start+int64(s)*b.step, k, r.count)
		}
	}
	c.number(out.keys)
	for s, counts := range out.slots {
		rows := make([]row, 0, len(counts))
		for n, count := range counts {
			rows = append(rows, row{n, count})
		}
		slices.SortFunc(rows, func(x, y row) int { return cmp.Compare(x.key, y.key) })
		c.slots = append(c.slots, slot{b.sampled[s], rows})
	}
	return c
}

func compareKeys(a, b Key) int {
	for d := range a {
		if c := cmp.Compare(a[d], b[d]); c != 0 {
			return c
		}
	}
	return 0
}
