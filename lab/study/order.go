package study

import (
	"hash/fnv"
	"math/bits"
	"slices"
)

// Cell is one variant under one workload, by their names.
type Cell struct {
	Variant  string `json:"variant"`
	Workload string `json:"workload"`
}

// Cells are the combinations that some engine of the study can have, workload by
// workload.
func Cells(s *Study) []Cell {
	var cells []Cell
	for _, w := range s.Workloads {
		for _, v := range s.Variants {
			meet := slices.ContainsFunc(s.Engines, func(e string) bool { return covers(v.Engines, e) && covers(w.Engines, e) })
			if meet {
				cells = append(cells, Cell{v.Name, w.Name})
			}
		}
	}
	return cells
}

// Order is that of the cells in a block, every one once. It depends on the seed and the
// block only, so a resumed run goes on where it was and a reader can check it.
func Order(s *Study, seed uint64, block int) []Cell {
	cells := Cells(s)
	random := stream{seed ^ mix(uint64(block))}
	for i := len(cells) - 1; i > 0; i-- {
		j := random.below(uint64(i + 1))
		cells[i], cells[j] = cells[j], cells[i]
	}
	return cells
}

// TrialSeed is the same for all variants of a workload in a block: they get the same
// arrivals and the same keys, so what differs is the variant.
func TrialSeed(seed uint64, block int, workload string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(workload)) // never fails
	return mix(mix(seed^mix(uint64(block))) ^ h.Sum64())
}

// stream is SplitMix64 (Steele, Lea, Flood 2014). math/rand may change what it makes of
// a seed with a release of Go, and the order of an old run could then not be checked.
type stream struct{ state uint64 }

func (r *stream) next() uint64 {
	r.state += 0x9e3779b97f4a7c15
	return mix(r.state)
}

// below gives 0 to n-1. What the multiplication prefers is n in 2^64, which no number of
// blocks can show.
func (r *stream) below(n uint64) uint64 {
	high, _ := bits.Mul64(r.next(), n)
	return high
}

// mix is the finish of SplitMix64: each bit of the result hangs on all of x.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
