package hostlink

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A word counts as confirmed that was said after it was asked for, at once, and not the one that
// was under way then.
func TestConfirm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLeases(func() int64 { return time.Now().UnixNano() })
		var mute atomic.Bool
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = l.Beat(ctx, func(context.Context, Alive) (AliveAnswer, error) {
				if time.Sleep(300 * time.Millisecond); mute.Load() {
					return AliveAnswer{}, errors.New("nobody answers")
				}
				return AliveAnswer{}, nil
			})
		}()
		time.Sleep(100 * time.Millisecond) // the first one is under way
		asked := time.Now()
		if err := l.Confirm(ctx); err != nil || time.Since(asked) != 500*time.Millisecond {
			t.Errorf("confirmed after %v: %v", time.Since(asked), err)
		}
		mute.Store(true)
		limited, end := context.WithTimeout(ctx, 10*time.Second)
		if err := l.Confirm(limited); err == nil {
			t.Error("confirmed although nobody answers")
		}
		end()
		mute.Store(false)
		if err := l.Confirm(ctx); err != nil {
			t.Error(err)
		}
		cancel()
		<-ended
	})
}

// A host that says that its words are not answered is one to be expected to obey no more than
// one that says nothing; it is not lost.
func TestAHostThatHearsNothingIsNotExpectedToObey(t *testing.T) {
	b := newHearingBed(t)
	b.say(Alive{})
	before, _ := b.Heard("h1")
	b.at = b.at.Add(4 * time.Second)
	b.say(Alive{Unheard: true})
	if spoke, _ := b.Heard("h1"); !spoke.Equal(before) {
		t.Errorf("it can be expected to obey since %v, not %v", spoke, before)
	}
	b.at = b.at.Add(4 * time.Second)
	b.look()
	b.want("lost", b.lost(), false)
	b.say(Alive{})
	if spoke, _ := b.Heard("h1"); !spoke.Equal(b.at) {
		t.Errorf("it hears again, and spoke at %v", spoke)
	}
}

// A word after one that was not answered says so, and the next one follows at once.
func TestUnheard(t *testing.T) {
	l := NewLeases(Boottime)
	var said []bool
	fails := errors.New("nobody answers")
	say := func(err error) func(context.Context, Alive) (AliveAnswer, error) {
		return func(_ context.Context, q Alive) (AliveAnswer, error) {
			said = append(said, q.Unheard)
			return AliveAnswer{}, err
		}
	}
	_ = l.say(t.Context(), say(nil), 0)
	_ = l.say(t.Context(), say(fails), 0)
	_ = l.say(t.Context(), say(fails), 0)
	if len(l.poked) > 0 {
		t.Error("it says the next word at once although nobody answers")
	}
	_ = l.say(t.Context(), say(nil), 0)
	if len(l.poked) != 1 {
		t.Error("the next word comes a beat later")
	}
	_ = l.say(t.Context(), say(nil), 0)
	for n, want := range []bool{false, false, true, true, false} {
		if said[n] != want {
			t.Errorf("word %d: unheard %v", n, said[n])
		}
	}
}
