package simulated

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kurabe"
	"kurabe/test/appends"
)

// shapes are the worlds of which each seed has one.
var shapes = func() (all []shape) {
	for _, block := range []bool{false, true} {
		for _, cluster := range []bool{false, true} {
			for _, engine := range []kurabe.EngineName{kurabe.Postgres, kurabe.MariaDB} {
				all = append(all, shape{engine, 3, cluster, block}, shape{engine, 1, cluster, block})
			}
		}
	}
	return all
}()

// fixedSeeds are those of every run of the tests, one of each shape, and runTime how long each is
// in simulated time.
var fixedSeeds = len(shapes)

const runTime = 4 * time.Minute

// spentAfter is real time, after which the fixed seeds begin nothing more: a machine that is busy
// with other things sees less of them, and nothing else. KURABE_SIMULATED_SPEND is another one, in
// which seeds that nobody has seen have their turn.
const spentAfter = 20 * time.Second

// spent says that it is over.
var spent atomic.Bool

// searchMost bounds the search for an order.
const searchMost = time.Second

// result is what came of a run.
type result struct {
	history *history
	lines   []string
	told    string
}

// TestHistory has clients append and read while faults come, in simulated time.
func TestHistory(t *testing.T) {
	seeds, length := []uint64{}, runTime
	for n := range fixedSeeds {
		seeds = append(seeds, uint64(n))
	}
	if given := os.Getenv("KURABE_SIMULATED_SEED"); given != "" {
		seeds = nil
		for _, text := range strings.Split(given, ",") {
			seed, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				t.Fatalf("KURABE_SIMULATED_SEED: %v", err)
			}
			seeds = append(seeds, seed)
		}
	}
	if given := os.Getenv("KURABE_SIMULATED_TIME"); given != "" {
		var err error
		if length, err = time.ParseDuration(given); err != nil {
			t.Fatalf("KURABE_SIMULATED_TIME: %v", err)
		}
	}
	most, fresh := spentAfter, false
	if given := os.Getenv("KURABE_SIMULATED_SPEND"); given != "" {
		var err error
		if most, err = time.ParseDuration(given); err != nil {
			t.Fatalf("KURABE_SIMULATED_SPEND: %v", err)
		}
		if os.Getenv("KURABE_SIMULATED_SEED") == "" {
			seeds, fresh = freshSeeds(), true
		}
	} else if os.Getenv("KURABE_SIMULATED_SEED")+os.Getenv("KURABE_SIMULATED_TIME") != "" {
		most = math.MaxInt64
	}
	timer := time.AfterFunc(most, func() { spent.Store(true) })
	t.Cleanup(func() { timer.Stop(); spent.Store(false) })
	for _, seed := range seeds {
		s := shapes[seed%uint64(len(shapes))]
		t.Run(fmt.Sprintf("%d, %s", seed, s), func(t *testing.T) {
			t.Parallel()
			if fresh && spent.Load() {
				t.Skip("the time for seeds that nobody has seen is over")
			}
			r := run(t, s, seed, length, nil)
			if check(t, r); t.Failed() {
				again(t, seed, length, r.lines)
			}
		})
	}
}

// freshSeeds are others each day, several of each shape.
func freshSeeds() (seeds []uint64) {
	const rounds = 4
	first := uint64(time.Now().Unix()) / uint64(len(shapes)) * uint64(len(shapes))
	for n := range rounds * len(shapes) {
		seeds = append(seeds, first+uint64(n))
	}
	return seeds
}

// run is one history.
func run(t *testing.T, s shape, seed uint64, length time.Duration, flaw func(*world)) (r result) {
	dir := memoryFolder(t)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, s, seed, dir)
		if w.flawed = flaw != nil; w.flawed {
			flaw(w)
		}
		h := &history{w: w, keys: map[int64]int{}}
		w.history = h
		n := &nemesis{world: w, counts: map[string]int{}}
		ctx, cancel := context.WithCancel(context.Background())
		var working sync.WaitGroup
		if w.wait(wholeMost, "it is made", w.whole) {
			w.findEndpoint()
			for id := range clients {
				random := rand.New(rand.NewPCG(seed, uint64(id)+100))
				working.Go(func() { h.client(ctx, id, random) })
			}
			for began := time.Now(); time.Since(began) < length && !t.Failed() && !spent.Load(); {
				if n.rand.IntN(2) == 0 {
					n.tolerable()
				} else {
					n.wild()
				}
			}
			if !t.Failed() {
				n.served(h.now(), healedMost, "all faults")
				w.wait(wholeMost, "it is whole", w.whole)
			}
		}
		cancel()
		working.Wait()
		if !t.Failed() {
			w.wait(healedMost, "every list is read", h.readAll)
		}
		w.end()
		if t.Failed() {
			again(t, seed, length, w.lines)
		}
		r = result{h, w.lines, n.told()}
	})
	return r
}

// again says how a run that has failed is run again, and where to read what happened.
func again(t *testing.T, seed uint64, length time.Duration, lines []string) {
	t.Logf("again: KURABE_SIMULATED_SEED=%d KURABE_SIMULATED_TIME=%v go test ./test/simulated -run TestHistory -count=1", seed, length)
	path := fmt.Sprintf("%s/kurabe-simulated-%d.log", os.TempDir(), seed)
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err == nil {
		t.Logf("what happened: %s", path)
	}
}

// check judges what the clients saw.
func check(t *testing.T, r result) {
	const most = 20
	wrong, told := r.wrong()
	t.Logf("%s; %s", r.told, told)
	for _, text := range wrong[:min(len(wrong), most)] {
		t.Error(text)
	}
}

func (r result) wrong() (wrong []string, told string) {
	wrong, told = appends.Check(r.history.ops, searchMost)
	return append(wrong, two(r.history.acks)...), told
}

// memoryFolder is a folder whose files need no disk: agents sync what they save.
func memoryFolder(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "kurabe-simulated-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
