package engine

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"kurabe"
)

func TestRebuild(t *testing.T) {
	p := newPlace(t, following)
	if err := p.do(StepDiscardData); err == nil || !exists(p.home().DataDir()) {
		t.Fatalf("it discards data that nobody has judged: %v", err)
	}
	p.unrewindable = errors.New("no answer")
	if err := p.do(StepReattach); !errors.Is(err, p.unrewindable) || !p.applied().Rejoining || p.applied().Rebuild {
		t.Fatalf("%v, %+v", err, p.applied())
	}
	p.unrewindable = fmt.Errorf("no common ancestor: %w", ErrRebuild)
	p.must(StepReattach, StepDiscardData)
	if exists(p.home().DataDir()) {
		t.Fatal("there is data")
	}
	leftover := p.home().DataDir() + ".earlier"
	if err := os.Mkdir(leftover, 0o700); err != nil {
		t.Fatal(err)
	}
	p.unclonable = errors.New("no answer")
	if err := p.do(StepClone); !errors.Is(err, p.unclonable) {
		t.Fatal(err)
	}
	if left := p.home().unnamed(); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	p.unclonable = nil
	p.must(StepClone, StepClone)
	if n := p.applied(); !n.Master || n.PasswordSeq != 0 || n.Rejoining || n.Rebuild || !p.IsFollower(p.home()) {
		t.Errorf("%+v", n)
	}
}

func TestRebuildOrdered(t *testing.T) {
	p := newPlace(t, following)
	p.must(StepReattach)
	ordered := following
	ordered.RebuildSeq = 2
	p.a.Role = &ordered
	p.away = errors.New("connection refused")
	if err := p.do(StepDiscardData); !errors.Is(err, p.away) || !exists(p.home().DataDir()) || p.applied().Rebuild {
		t.Fatalf("its source is away, and the data goes: %v", err)
	}
	p.away = nil
	p.must(StepDiscardData)
	if exists(p.home().DataDir()) || !p.applied().Rebuild || p.applied().Rebuilt != 0 {
		t.Fatalf("%+v", p.applied())
	}
	p.unclonable = errors.New("no answer")
	if err := p.do(StepClone); !errors.Is(err, p.unclonable) || p.applied().Rebuilt != 0 {
		t.Fatalf("it passes for made anew: %v, %+v", err, p.applied())
	}
	p.unclonable = nil
	p.must(StepClone)
	if n := p.applied(); n.Rebuilt != 2 || n.Rebuild || !p.IsFollower(p.home()) {
		t.Errorf("%+v", n)
	}
	if err := p.do(StepDiscardData); err == nil || !exists(p.home().DataDir()) {
		t.Errorf("it obeys twice: %v", err)
	}
}

func TestRejoin(t *testing.T) {
	p := newPlace(t, waiting)
	p.must(StepStart)
	p.a.Role = &following
	if err := p.do(StepReattach); err == nil || p.IsFollower(p.home()) {
		t.Fatalf("it changes the data of a running server: %v", err)
	}
	p.must(StepFence, StepReattach, StepStart)
	if n := p.applied(); n.Rejoining || n.ClientsKeptOut || !n.Master || n.PasswordSeq != 0 || !p.IsFollower(p.home()) {
		t.Errorf("%+v", n)
	}
}

func TestReckon(t *testing.T) {
	p := newPlace(t, following)
	away := errors.New("the source is away")
	for n, c := range []struct {
		alone         int64
		err, rejoined error
		want          kurabe.DiscardedCommits
	}{
		{7, nil, nil, kurabe.DiscardedCommits{Seq: 1, Transactions: 7}},
		{0, nil, nil, kurabe.DiscardedCommits{Seq: 1, Transactions: 7}},
		{0, fmt.Errorf("the log: %w", ErrUncounted), nil, kurabe.DiscardedCommits{Seq: 2, Transactions: kurabe.DiscardedUnknown}},
		{0, away, nil, kurabe.DiscardedCommits{Seq: 2, Transactions: kurabe.DiscardedUnknown}},
		{2, nil, away, kurabe.DiscardedCommits{Seq: 3, Transactions: 2}},
		{9, nil, nil, kurabe.DiscardedCommits{Seq: 3, Transactions: 2}}, // the second try of the one before
	} {
		p.alone, p.uncounted, p.unrewindable = c.alone, c.err, c.rejoined
		err := p.do(StepReattach)
		if failed := errors.Is(c.err, away) || c.rejoined != nil; failed != errors.Is(err, away) || !failed && err != nil {
			t.Errorf("%d: %v", n, err)
		}
		if got := p.applied(); got.GivenUp != c.want || got.Rejoining != (c.rejoined != nil) {
			t.Errorf("%d: %+v, want %+v", n, got, c.want)
		}
	}
	if p.counted != 5 {
		t.Errorf("counted %d times", p.counted)
	}
}
