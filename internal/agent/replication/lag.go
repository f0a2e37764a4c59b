package replication

import (
	"time"

	"kurabe/internal/engine"
)

// freshen takes in whether a follower has said that nothing is left to apply, and has nothing:
// MariaDB says so as well where the clocks are apart by more than it lags.
func (s *State) freshen(now time.Time, v engine.RoleView) {
	if v.Following && v.Lag == 0 && v.Applied >= v.Position {
		s.fresh = now
	}
}

// Lag is how old what a follower shows is. Its own word is the age of the newest transaction
// that it has applied, which is that of the last one of an idle source, too, and goes by the
// clocks of two hosts: so it is never taken for older than from when it had applied all, nor
// for younger than what it has received and not applied.
func (s *State) Lag(now time.Time) (lag time.Duration, reason string) {
	switch {
	case s.view == nil:
		return 0, "its server has not answered yet"
	case s.Current(now) == nil:
		return 0, "its server does not answer"
	case s.view.Writing:
		return 0, "it writes"
	case s.view.Paused:
		return 0, "replay is paused until a restart, because its source has a higher limit"
	case !s.view.Following:
		return 0, "it receives nothing from its source"
	}
	lag = max(s.view.Lag, 0) // also where it cannot tell
	if len(s.received) > 0 {
		lag = max(lag, s.seenAt.Sub(s.received[0].at))
	}
	if !s.fresh.IsZero() {
		lag = min(lag, s.seenAt.Sub(s.fresh))
	}
	return lag, ""
}
