package agent

import (
	"time"

	"kurabe"
)

// What an instance occupies is measured by a walk over its files, which is most
// of an idle service's work. While the free space of the disk has hardly moved,
// no instance can have grown, and the last figure holds.
const (
	usageMove = 64 << 20
	usageAge  = 10 * time.Minute
)

// measure learns what the instance occupies.
func (w *worker) measure(a kurabe.Assignment) {
	now, free := w.agent.Now(), int64(0)
	if w.agent.Free != nil {
		free = w.agent.Free()
	}
	if moved := free - w.usedFree; w.agent.Free != nil && free >= 0 && moved < usageMove && moved > -usageMove && now.Sub(w.usedAt) < usageAge {
		return
	}
	if used, err := w.agent.Usage(a.Instance); err == nil {
		w.used, w.usedAt, w.usedFree = used, now, free
	}
}
