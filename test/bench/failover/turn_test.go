package failover

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kurabe/internal/harness"
	"kurabe/test/bench/bed"
)

// fakeSide is a pair in memory: its client has every row that is asked of it.
type fakeSide struct {
	side
	n      int
	acked  int
	writes bool
	broken bool
	lost   []int64
}

func (f *fakeSide) client() writer { return f }
func (f *fakeSide) Start()         { f.writes = true }
func (f *fakeSide) Stop()          { f.writes = false }
func (f *fakeSide) Acked() int {
	if f.writes {
		f.acked += pulseRows
	}
	return f.acked
}
func (f *fakeSide) Errors(time.Time) (int, error) { return 0, nil }
func (f *fakeSide) Judge(context.Context) (harness.PulseVerdict, error) {
	if f.broken {
		return harness.PulseVerdict{}, errors.New("nobody answers")
	}
	return harness.PulseVerdict{Acked: f.acked, Missing: f.lost}, nil
}
func (f *fakeSide) pair(context.Context) (lostPair, error) {
	if f.broken {
		return lostPair{}, errors.New("it is broken")
	}
	return lostPair{}, nil
}

// fakeContender is one whose pairs are numbered, with losses that do as they are told.
func fakeContender(r *comparison, losses []*loss) (c *contender, dropped, left *[]int) {
	dropped, left = new([]int), new([]int)
	away := func(list *[]int) func(context.Context, side) error {
		return func(_ context.Context, s side) error {
			f := s.(*fakeSide)
			if f.writes {
				return fmt.Errorf("pair %d goes and its client writes", f.n)
			}
			*list = append(*list, f.n)
			return nil
		}
	}
	c = r.contender(about{Name: "Kurabe", Role: roleOwn}, losses, maker{
		make: func(_ context.Context, n int) (side, error) { return &fakeSide{n: n}, nil },
		drop: away(dropped), leave: away(left),
	})
	return c, dropped, left
}

func fakeLoss(name string, do func(*fakeSide) (float64, error)) *loss {
	return &loss{name: name, bar: 1, strike: func(s side, _ context.Context, _ lostPair) (float64, error) { return do(s.(*fakeSide)) }}
}

// After a loss that a pair does not come back from the next one happens to another pair, the
// rows of both count, and what it did not come back from is no round that is tried again.
func TestGoesOnWithAnotherPair(t *testing.T) {
	r := testRun(t, bed.Settings{Rounds: 3})
	r.Rng = rand.New(rand.NewPCG(1, 0))
	struck := map[string]int{}
	well := fakeLoss("well", func(*fakeSide) (float64, error) { struck["well"]++; return 0.5, nil })
	takesRows := fakeLoss("takes rows", func(f *fakeSide) (float64, error) {
		struck["takes rows"]++
		f.lost = append(f.lost, int64(len(f.lost)+1))
		return 0.5, nil
	})
	ends := fakeLoss("ends it", func(f *fakeSide) (float64, error) {
		struck["ends it"]++
		f.broken = true
		return 0, errors.New("gone for good")
	})
	c, dropped, left := fakeContender(r, []*loss{well, takesRows, ends})
	if err := r.inTurn(t.Context(), []*contender{c}); err != nil {
		t.Fatal(err)
	}
	if err := c.end(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := map[string]int{"well": 3, "takes rows": 3, "ends it": 3}; !maps.Equal(struck, want) {
		t.Errorf("struck %v, want %v", struck, want)
	}
	if !slices.Equal(*dropped, []int{1, 2, 3}) || len(*left) > 1 {
		t.Errorf("taken away %v, left %v", *dropped, *left)
	}
	if got := len(c.broken(ends)); got != 3 || len(c.seen(well)) != 3 || len(c.seen(ends)) != 0 {
		t.Errorf("%d of the last did not come back; strikes %+v", got, c.strikes)
	}
	acked, missing, unread, _ := c.sum()
	if missing != 3 || unread != 3 || acked == 0 {
		t.Errorf("%d of %d missing, %d unread", missing, acked, unread)
	}
	if err := c.wrong(); err == nil || !strings.Contains(err.Error(), "gone for good") {
		t.Errorf("the run does not fail: %v", err)
	}
}

// A side of which no whole pair can be had is given up after some tries, and keeps nobody
// else from being measured.
func TestNoWholePair(t *testing.T) {
	r := testRun(t, bed.Settings{Rounds: 5})
	r.Rng = rand.New(rand.NewPCG(1, 0))
	c, dropped, _ := fakeContender(r, []*loss{fakeLoss("never", func(*fakeSide) (float64, error) { t.Error("struck"); return 0, nil })})
	c.make = func(_ context.Context, n int) (side, error) { return &fakeSide{n: n, broken: true}, nil }
	if err := r.inTurn(t.Context(), []*contender{c}); err != nil {
		t.Fatal(err)
	}
	if len(*dropped) != makesMost || c.Why == "" || c.wrong() == nil {
		t.Errorf("%d pairs were taken away; %q", len(*dropped), c.Why)
	}
}

// What is cut off by a signal is no result.
func TestInterruptedLoss(t *testing.T) {
	r := testRun(t, bed.Settings{Rounds: 1})
	r.Rng = rand.New(rand.NewPCG(1, 0))
	ctx, cancel := context.WithCancel(t.Context())
	c, _, _ := fakeContender(r, []*loss{fakeLoss("cut off", func(*fakeSide) (float64, error) { cancel(); return 0, ctx.Err() })})
	if err := r.inTurn(ctx, []*contender{c}); err == nil || len(c.strikes) != 0 {
		t.Errorf("%v, strikes %+v", err, c.strikes)
	}
}

// With --abreast the peers go through each loss at the same time and say so, and nobody of
// ours goes with another.
func TestAbreast(t *testing.T) {
	r := testRun(t, bed.Settings{Rounds: 2, Abreast: true})
	r.Rng = rand.New(rand.NewPCG(1, 0))
	const forms = 3
	var met sync.WaitGroup // each of a turn waits in a loss for the others
	x := &loss{name: "met", strike: func(s side, _ context.Context, _ lostPair) (float64, error) {
		met.Done()
		met.Wait()
		return 1, nil
	}}
	alone := fakeLoss("alone", func(*fakeSide) (float64, error) { return 1, nil })
	ours, _, _ := fakeContender(r, []*loss{alone})
	all := []*contender{ours}
	for n := range forms {
		c := r.contender(about{Name: fmt.Sprintf("P%d", n), Role: rolePeer}, []*loss{x}, maker{
			make: func(_ context.Context, n int) (side, error) { return &fakeSide{n: n}, nil }})
		all = append(all, c)
	}
	for round := range r.rounds() {
		for _, turn := range r.turns(all) {
			met.Add(len(turn))
			r.round(t.Context(), turn, round)
			if turn[0] == ours {
				met.Add(-1)
			}
		}
	}
	for _, c := range all {
		want := forms - 1
		if c == ours {
			want = 0
		}
		if len(c.strikes) != r.rounds() || c.strikes[0].Abreast != want {
			t.Errorf("%s: %+v, want %d of others", c.Name, c.strikes, want)
		}
	}
	peer := r.book.role(rolePeer)[0]
	if line := peer.beside(x, nil); !strings.Contains(line.Note, "abreast of its other forms in 2") {
		t.Errorf("%+v", line)
	}
}

// Of a round that was cut off those go together that have not had it, and say so.
func TestAbreastOfTheRest(t *testing.T) {
	r := testRun(t, bed.Settings{Rounds: 1, Abreast: true})
	r.Rng = rand.New(rand.NewPCG(1, 0))
	x := fakeLoss("met", func(*fakeSide) (float64, error) { return 1, nil })
	var all []*contender
	for n := range 3 {
		all = append(all, r.contender(about{Name: fmt.Sprintf("P%d", n), Role: rolePeer}, []*loss{x}, maker{
			make: func(_ context.Context, n int) (side, error) { return &fakeSide{n: n}, nil }}))
	}
	all[0].count(strike{Side: "P0", Loss: "met", Abreast: 2})
	if err := r.inTurn(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	for n, c := range all {
		if want := []int{2, 1, 1}[n]; len(c.strikes) != 1 || c.strikes[0].Abreast != want {
			t.Errorf("%s: %+v, want one beside %d", c.Name, c.strikes, want)
		}
	}
}
