package agent

import (
	"errors"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/engine"
)

// A restore of what is damaged is tried twice and then left alone, until another
// assignment comes; one that something hinders is tried for ever.
func TestRestoreOfWhatIsDamagedIsGivenUp(t *testing.T) {
	inBubble(t, func(b *bed) {
		tried := b.failAt(engine.StepMakeHome, &engine.RestoreError{Kind: kurabe.FailureSnapshot, Err: errors.New("a pack is missing")})
		b.start()
		b.send(wanted(1))
		time.Sleep(24 * time.Hour) // virtual
		if n := len(tried()); n != kurabe.RestoreTries {
			b.Errorf("%d tries in a day", n)
		}
		r := b.last()
		if !r.Failure.Final() || r.Failure.Kind != kurabe.FailureSnapshot || r.Failure.Message != "a pack is missing" {
			b.Errorf("reported %+v", r.Failure)
		}
		b.send(wanted(2))
		time.Sleep(time.Hour)
		if n := len(tried()); n != 2*kurabe.RestoreTries {
			b.Errorf("%d tries after another assignment", n)
		}
	})
}
