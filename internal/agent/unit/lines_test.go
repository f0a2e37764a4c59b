package unit

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
)

// One is let in at a time, in no line for anything else, and nothing is left of a line.
func TestLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Lines
		leave, err := l.Enter(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		other, err := l.Enter(t.Context(), "b")
		if err != nil {
			t.Fatal(err)
		}
		other()
		var wait sync.WaitGroup
		in := false
		wait.Go(func() {
			leave, err := l.Enter(t.Context(), "a")
			if err != nil {
				t.Error(err)
				return
			}
			in = true
			leave()
		})
		short, end := context.WithCancelCause(t.Context())
		wait.Go(func() {
			if _, err := l.Enter(short, "a"); err != ErrCut {
				t.Error(err)
			}
		})
		synctest.Wait()
		if in {
			t.Error("two are in")
		}
		end(ErrCut)
		synctest.Wait()
		leave()
		wait.Wait()
		if !in || len(l.waiting) != 0 {
			t.Errorf("let in: %v, %d lines are left", in, len(l.waiting))
		}
	})
}
