//go:build fault

package fault

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kurabe/internal/harness"
)

// setOn sets the clock of one machine by so much beside the true time: that of every process
// on it but MariaDB's programs, which wait until a time of the kernel's clock, and would turn
// without a rest.
func (c *clock) setOn(t *testing.T, m *harness.Machine, by time.Duration) {
	t.Helper()
	name, err := m.Namespace()
	if err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hosts[name] = int64(by / time.Second)
	if err := c.setAllLocked(); err != nil {
		t.Fatal(err)
	}
}

// secondsLocked is by how much the clock of a process is to be wrong; false when it is to be
// left alone, or has ended.
func (c *clock) secondsLocked(pid int) (int64, bool) {
	if len(c.hosts) == 0 {
		return c.seconds, true
	}
	name, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		return 0, false
	}
	seconds, apart := c.hosts[name]
	if !apart {
		return c.seconds, true
	}
	program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return seconds, err == nil && !strings.HasPrefix(filepath.Base(program), "maria")
}
