package agent

import (
	"context"
	"time"

	"kurabe"
	"kurabe/internal/agent/unit"
)

// memoryLook is how often the counters of killed processes are read. When the
// kernel kills one session of PostgreSQL, the server recovers by itself within
// milliseconds, so the end of a process does not tell.
const memoryLook = 4 * time.Second

// watchMemory wakes the worker of an instance in which the kernel killed a
// process. Beside it the disk is watched, at a pace of its own.
func (a *Agent) watchMemory(ctx context.Context) {
	a.host.Wait.Go(func() { a.watchDisk(ctx) })
	seen := map[kurabe.InstanceID]int64{}
	for unit.Wait(ctx, memoryLook) {
		for _, w := range a.workers.List() {
			assignment, _ := w.Assignment()
			e, ok := a.Engines[assignment.Engine]
			if !ok {
				continue
			}
			if kills, ok := e.OOMKills(w.ID); ok {
				if kills > seen[w.ID] {
					w.Wake()
				}
				seen[w.ID] = kills
			}
		}
	}
}
