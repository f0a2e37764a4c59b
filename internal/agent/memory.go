package agent

import (
	"context"
	"time"

	"kurabe"
)

// memoryLook is how often the counters of killed processes are read. When the
// kernel kills one session of PostgreSQL, the server recovers by itself within
// milliseconds, so the end of a process does not tell.
const memoryLook = 4 * time.Second

// killCounter is an engine whose instances count what the kernel killed for
// their memory limit.
type killCounter interface {
	OOMKills(id kurabe.InstanceID) (int64, bool)
}

// watchMemory wakes the worker of an instance in which the kernel killed a
// process. Beside it the disk is watched, at a pace of its own.
func (a *Agent) watchMemory(ctx context.Context) {
	a.wait.Go(func() { a.watchDisk(ctx) })
	ticker := time.NewTicker(memoryLook)
	defer ticker.Stop()
	seen := map[kurabe.InstanceID]int64{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		a.mu.Lock()
		workers := make([]*worker, 0, len(a.workers))
		for _, w := range a.workers {
			workers = append(workers, w)
		}
		a.mu.Unlock()
		for _, w := range workers {
			assignment, known := w.assignment()
			counter, ok := a.Engines[assignment.Engine].(killCounter)
			if !known || !ok {
				continue
			}
			if kills, ok := counter.OOMKills(w.id); ok {
				if kills > seen[w.id] {
					w.wake()
				}
				seen[w.id] = kills
			}
		}
	}
}
