package postgres

import (
	"math"
	"strings"
	"time"

	"kurabe/internal/engine"
)

// stream is what a follower hears of its source. The hour at which it has heard something is
// that of its wall clock: after that was set back it lies ahead, and would be believed for
// hours. So it only tells words apart, and they count from when they were first seen here.
type stream struct {
	word string // the process that receives, and the hour
	at   time.Time
}

// lately is at the end of a word that has come within streamTimeout, as far as the clock says.
const lately = " lately"

// streamWithin is streamTimeout.
const streamWithin = 3 * time.Second

// follows says whether something has come lately, "" is nothing. Of the first word that is
// seen the clock alone says how old it is, and a clock that is wrong says that it is not of
// now; the next one comes soon.
func (s *stream) follows(word string, now time.Time) bool {
	word, fresh := strings.CutSuffix(word, lately)
	if word != s.word {
		first := s.word == ""
		s.word = word
		if s.at = now; first && !fresh {
			s.at = time.Time{}
		}
	}
	return word != "" && !s.at.IsZero() && now.Sub(s.at) < streamWithin
}

// clocksApart is from where on the time between a message's hours, of the source's clock when
// it was sent and of the follower's when it came, says how far these are apart. What is less
// may be the way of a message that waited behind others.
const clocksApart = 60.0

// lagOf is how old the newest transaction is that a follower has applied, which is behind. The
// hour of that is one of the source's clock. Where a clock was set since, no time need come of
// it: a server that cannot tell.
func lagOf(ageSeconds *float64, apartSeconds float64) time.Duration {
	if ageSeconds == nil {
		return engine.LagUnknown
	}
	age := *ageSeconds
	if math.Abs(apartSeconds) > clocksApart {
		age -= apartSeconds
	}
	if age < 0 {
		return engine.LagUnknown
	}
	return time.Duration(age * float64(time.Second))
}
