//go:build fault

package fault

import (
	"os/exec"
	"sync"
	"testing"
	"time"
)

// TestClockOfPrograms sets the clock again and again while processes begin, become other
// programs and end: it never fails by them, and who lives on has the clock that was set.
func TestClockOfPrograms(t *testing.T) {
	c := newClock(t)
	var busy sync.WaitGroup
	over := make(chan struct{})
	var mu sync.Mutex // guards lasting
	var lasting []*exec.Cmd
	for range 3 {
		busy.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				_ = exec.Command("sh", "-c", "sh -c true; exec true").Run() // however it ends
				mu.Lock()
				if len(lasting) < 100 {
					cmd := exec.CommandContext(t.Context(), "sh", "-c", "exec sleep 1000")
					if cmd.Start() == nil {
						lasting = append(lasting, cmd)
					}
				}
				mu.Unlock()
			}
		})
	}
	for n := range 200 {
		c.set(t, time.Duration(n%2+1)*time.Hour)
	}
	close(over)
	busy.Wait()
	c.set(t, 3*time.Hour)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cmd := range lasting {
		if !c.isSetLocked(cmd.Process.Pid) {
			t.Errorf("process %d has another clock", cmd.Process.Pid)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}
