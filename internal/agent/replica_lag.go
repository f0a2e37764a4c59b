package agent

import (
	"slices"
	"strings"

	"kurabe"
)

// Lags says how far each server of this host that follows another one is behind, by id. It
// asks no server: what is told is of the newest look.
func (a *Agent) Lags() []kurabe.ReplicaLag {
	list := []kurabe.ReplicaLag{}
	for _, w := range a.workers.List() {
		have, known := w.Assignment()
		if known && have.Goal == kurabe.GoalRunning && have.Role != nil && have.Role.Duty == kurabe.DutyFollow {
			list = append(list, w.lag())
		}
	}
	slices.SortFunc(list, func(a, b kurabe.ReplicaLag) int { return strings.Compare(string(a.Server), string(b.Server)) })
	return list
}

func (w *worker) lag() kurabe.ReplicaLag {
	g := w.watched.Load()
	if g == nil || g.alone {
		return kurabe.ReplicaLag{Server: w.ID, Seconds: kurabe.ReplicaLagNone, Reason: "its server is not running"}
	}
	g.mu.Lock()
	lag, reason := g.state.Lag(w.agent.Now())
	g.mu.Unlock()
	if reason != "" {
		return kurabe.ReplicaLag{Server: w.ID, Seconds: kurabe.ReplicaLagNone, Reason: reason}
	}
	return kurabe.ReplicaLag{Server: w.ID, Seconds: lag.Seconds()}
}
