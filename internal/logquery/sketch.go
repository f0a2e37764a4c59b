package logquery

import (
	"hash/fnv"
	"maps"
	"math"
	"math/bits"
	"slices"
)

// quantile answers percentiles: exactly up to exactMax numbers, then from buckets whose bounds
// grow by the same factor, so that the answer is within accuracy of a number that was there.
type quantile struct {
	Numbers  []float64       `json:"n,omitempty"`
	Buckets  map[int32]int64 `json:"b,omitempty"` // of positive numbers
	Negative map[int32]int64 `json:"m,omitempty"` // of negative ones, by their size
	Zeros    int64           `json:"z,omitempty"`
	Sketched bool            `json:"s,omitempty"`
}

const (
	exactMax = 10_000
	accuracy = 0.005
	// bucketsMax bounds the buckets of one sign: a factor of e^20 between the smallest and the
	// largest number has 2000.
	bucketsMax = 4096
)

var logGamma = math.Log((1 + accuracy) / (1 - accuracy))

func (q *quantile) bytes() int {
	if q == nil {
		return 0
	}
	return 100 + 8*cap(q.Numbers) + 24*(len(q.Buckets)+len(q.Negative))
}

func (q *quantile) add(n float64) {
	if !q.Sketched {
		if len(q.Numbers) < exactMax {
			q.Numbers = append(q.Numbers, n)
			return
		}
		q.sketch()
	}
	q.count(n)
}

// sketch puts the numbers into buckets.
func (q *quantile) sketch() {
	numbers := q.Numbers
	q.Sketched, q.Numbers, q.Buckets, q.Negative = true, nil, map[int32]int64{}, map[int32]int64{}
	for _, n := range numbers {
		q.count(n)
	}
}

func (q *quantile) count(n float64) {
	switch bucket := int32(math.Ceil(math.Log(math.Abs(n)) / logGamma)); {
	case n == 0:
		q.Zeros++
	case n > 0:
		increase(q.Buckets, bucket, 1)
	default:
		increase(q.Negative, bucket, 1)
	}
}

// increase counts; when there are too many buckets, those of the smallest numbers become one.
func increase(buckets map[int32]int64, bucket int32, by int64) {
	buckets[bucket] += by
	if len(buckets) <= bucketsMax {
		return
	}
	keys := slices.Sorted(maps.Keys(buckets))
	half := keys[bucketsMax/2]
	for _, k := range keys[:bucketsMax/2] {
		buckets[half] += buckets[k]
		delete(buckets, k)
	}
}

func (q *quantile) merge(o *quantile) {
	switch {
	case o == nil:
	case !o.Sketched && !q.Sketched && len(q.Numbers)+len(o.Numbers) <= exactMax:
		q.Numbers = append(q.Numbers, o.Numbers...)
	default:
		if !q.Sketched {
			q.sketch()
		}
		for _, n := range o.Numbers {
			q.count(n)
		}
		for b, n := range o.Buckets {
			increase(q.Buckets, b, n)
		}
		for b, n := range o.Negative {
			increase(q.Negative, b, n)
		}
		q.Zeros += o.Zeros
	}
}

// at returns the percentile by nearest rank: of n numbers the one in place p/100*n, rounded up.
func (q *quantile) at(p float64) value {
	if q == nil {
		return value{}
	}
	rank := func(n int64) int64 { return max(1, int64(math.Ceil(p/100*float64(n)-1e-9))) }
	if !q.Sketched {
		if len(q.Numbers) == 0 {
			return value{}
		}
		slices.Sort(q.Numbers)
		return numberValue(q.Numbers[rank(int64(len(q.Numbers)))-1])
	}
	total := q.Zeros
	for _, n := range q.Buckets {
		total += n
	}
	for _, n := range q.Negative {
		total += n
	}
	left := rank(total)
	middle := func(bucket int32) float64 {
		return 2 * math.Exp(float64(bucket)*logGamma) / (1 + math.Exp(logGamma))
	}
	negative := slices.Sorted(maps.Keys(q.Negative))
	for _, b := range slices.Backward(negative) {
		if left -= q.Negative[b]; left <= 0 {
			return numberValue(-middle(b))
		}
	}
	if left -= q.Zeros; left <= 0 {
		return numberValue(0)
	}
	for _, b := range slices.Sorted(maps.Keys(q.Buckets)) {
		if left -= q.Buckets[b]; left <= 0 {
			return numberValue(middle(b))
		}
	}
	return value{}
}

// distinct counts different texts by their hashes: exactly up to exactMax, then by HyperLogLog
// with a standard error of 0.8 %.
type distinct struct {
	Hashes    map[uint64]struct{} `json:"-"`
	List      []uint64            `json:"h,omitempty"` // Hashes, between hosts
	Registers []byte              `json:"r,omitempty"`
}

const registerBits = 14

func (d *distinct) bytes() int {
	if d == nil {
		return 0
	}
	return 64 + 16*len(d.Hashes) + len(d.Registers)
}

// hash is the same on all hosts.
func hash(text []byte) uint64 {
	f := fnv.New64a()
	f.Write(text)
	h := f.Sum64() // of which the last bits are weak
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

func (d *distinct) add(h uint64) {
	if d.Registers == nil {
		if d.Hashes == nil {
			d.Hashes = map[uint64]struct{}{}
		}
		if d.Hashes[h] = struct{}{}; len(d.Hashes) <= exactMax {
			return
		}
		d.estimate()
	}
	d.register(h)
}

func (d *distinct) estimate() {
	d.Registers = make([]byte, 1<<registerBits)
	for h := range d.Hashes {
		d.register(h)
	}
	d.Hashes = nil
}

func (d *distinct) register(h uint64) {
	n := h >> (64 - registerBits)
	zeros := byte(bits.LeadingZeros64(h<<registerBits|1<<(registerBits-1)) + 1)
	d.Registers[n] = max(d.Registers[n], zeros)
}

// pack makes the hashes a list, which can be sent.
func (d *distinct) pack() {
	if d != nil {
		d.List = slices.Collect(maps.Keys(d.Hashes))
	}
}

func (d *distinct) merge(o *distinct) {
	if o == nil {
		return
	}
	for h := range o.Hashes {
		d.add(h)
	}
	if o.Hashes == nil { // from another host
		for _, h := range o.List {
			d.add(h)
		}
	}
	if o.Registers == nil {
		return
	}
	if d.Registers == nil {
		d.estimate()
	}
	for n, zeros := range o.Registers {
		d.Registers[n] = max(d.Registers[n], zeros)
	}
}

func (d *distinct) count() float64 {
	if d == nil {
		return 0
	}
	if d.Registers == nil {
		return float64(len(d.Hashes))
	}
	const m = float64(uint64(1) << registerBits)
	sum, empty := 0.0, 0.0
	for _, zeros := range d.Registers {
		sum += math.Pow(2, -float64(zeros))
		if zeros == 0 {
			empty++
		}
	}
	estimate := 0.7213 / (1 + 1.079/m) * m * m / sum
	if estimate < 2.5*m && empty > 0 {
		estimate = m * math.Log(m/empty)
	}
	return math.Round(estimate)
}
