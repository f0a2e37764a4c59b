package postgres

import (
	"strings"
	"time"
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
