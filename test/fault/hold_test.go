//go:build fault

package fault

import (
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"kurabe/internal/harness"
)

// hold is a point at which the service waits, so that a test breaks something else
// just there.
type hold struct{ point, file string }

// holdAt arms it: whoever comes to the point next waits for release.
func holdAt(t *testing.T, s *harness.Service, point string) *hold {
	t.Helper()
	h := &hold{point, filepath.Join(harness.Folder(t, false), "held")}
	s.Arm(t, point+" "+h.file)
	return h
}

// holdTime is long, since sums of a snapshot are made when nobody else wants the disk.
const holdTime = 2 * time.Minute

func (h *hold) reached(t *testing.T) {
	t.Helper()
	harness.Wait(t, holdTime, "the service comes to "+h.point, func() string {
		if _, err := os.Lstat(h.file); err != nil {
			return "it does not"
		}
		return ""
	})
}

func (h *hold) release(t *testing.T) {
	t.Helper()
	if err := os.Remove(h.file); err != nil {
		t.Fatal(err)
	}
}

// killServers kills the first process of a database, as soon as there is one.
func killServers(t *testing.T, s *harness.Service, id string) {
	t.Helper()
	var servers []int
	harness.Wait(t, settleTime, "a server runs", func() string {
		if servers = s.Servers(id); len(servers) == 0 {
			return "none does"
		}
		return ""
	})
	for _, pid := range servers {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
}

// recordOf is where the service notes the private server of a restore.
var recordOf = map[string]string{
	"postgres": filepath.Join("data.fresh.tmp.private.tmp", "process.json"),
	"mariadb":  "data.fresh.tmp.private.json",
}

// killPrivateServer kills the server that recovers the data of an instance in the making.
func killPrivateServer(t *testing.T, i *harness.Instance) {
	t.Helper()
	var record struct {
		PID int `json:"pid"`
	}
	raw, err := os.ReadFile(filepath.Join(i.Home(), recordOf[i.Engine]))
	if err == nil {
		err = json.Unmarshal(raw, &record)
	}
	if err == nil {
		err = syscall.Kill(record.PID, syscall.SIGKILL)
	}
	if err != nil {
		t.Fatalf("kill the private server: %v", err)
	}
}
