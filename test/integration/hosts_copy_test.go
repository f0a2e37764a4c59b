//go:build integration

package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kurabe/internal/harness"
)

// copyIsRefused starts what the second machine has of its identity and its orders on a third
// one: it ends before it has made a server, and clients of the first one notice nothing.
func (b *hostsBed) copyIsRefused(t *testing.T, i *harness.Instance) {
	t.Helper()
	pulse := i.Pulse(t)
	defer pulse.Stop()
	pulse.WaitMore(t, beatsBefore)
	third, data := b.network.Machine(t), filepath.Join(harness.Folder(t, false), "data")
	if err := os.Mkdir(data, 0o711); err != nil {
		t.Fatal(err)
	}
	// Not the databases: their files come and go while they are copied.
	for _, part := range []string{"host.json", "link", "assignments"} {
		if out, err := exec.Command("cp", "-a", filepath.Join(b.host.Data, part), data).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	from := time.Now()
	copied := exec.Command(harness.Binary(t), "agent", "--data", data)
	var out strings.Builder
	copied.Stdout, copied.Stderr = &out, &out
	if err := third.Start(t, copied); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(hostTime, func() { copied.Process.Kill() }) // it runs on, which it must not
	defer late.Stop()
	if err := copied.Wait(); err == nil || !strings.Contains(out.String(), "another machine with this host's identity is connected") {
		t.Errorf("a copy of the host: %v\n%s", err, out.String())
	}
	if _, err := os.Stat(filepath.Join(data, "instances", i.ID)); !os.IsNotExist(err) {
		t.Errorf("the copy has done what its orders say (%v):\n%s", err, out.String())
	}
	b.waitHost(t, "ready, a copy of it at "+third.Address+" is refused")
	i.WaitEvent(t, "Another machine, at "+third.Address)
	pulse.WaitMore(t, beatsAfter)
	if n, err := pulse.Errors(from); n > 0 {
		t.Errorf("the client has met %d errors, the last was %v", n, err)
	}
	pulse.Verify(t)
}
