package load

import (
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"kurabe/lab/study"
)

// arrivals is the schedule of open load: points in time after the start, nanoseconds.
// Each follows from the seed and its number; nothing that happens moves it.
type arrivals struct {
	period   float64 // ns, on average
	constant bool
	until    atomic.Int64 // arrivals from here on do not exist

	mu     sync.Mutex // guards what follows
	chance *rand.Rand
	number uint64  // of the next one
	at     float64 // of the next one
}

func newArrivals(rate float64, kind string, seed uint64) *arrivals {
	a := &arrivals{period: float64(time.Second) / rate, constant: kind == study.ArrivalConstant, chance: rand.New(rand.NewPCG(seed, scheduleStream))}
	a.until.Store(math.MaxInt64)
	if !a.constant {
		a.at = a.chance.ExpFloat64() * a.period
	}
	return a
}

// next takes the arrival that is next; ok is false when there is none any more.
func (a *arrivals) next() (due int64, number uint64, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	due, number = int64(a.at), a.number
	if due >= a.until.Load() {
		return 0, 0, false
	}
	a.number++
	if a.constant {
		a.at = float64(a.number) * a.period
	} else {
		a.at += a.chance.ExpFloat64() * a.period
	}
	return due, number, true
}

// Streams keep the numbers that one seed gives to different purposes apart.
const (
	scheduleStream = 0x5ced
	dataStream     = 0xda7a
)

// mix spreads neighbouring numbers over all 64 bits (the finalizer of splitmix64), so
// that transactions n and n+1 draw unrelated keys.
func mix(n uint64) uint64 {
	n += 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}
