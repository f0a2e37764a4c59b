//go:build integration

package integration

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"kurabe/internal/drill"
	"kurabe/internal/harness"
	"kurabe/internal/netcut"
)

func (d *drilledApart) apartStandbyFrozen(t *testing.T) {
	r := d.rehearseApart(t, 1, "--freeze", "standby", "--for", "4s")
	if r.After.Epoch != r.Before.Epoch || r.After.Writer != r.Before.Writer || r.LongestCommit < 1 || r.WholeAfter < 4 {
		t.Errorf("%+v, then %+v; a commit waited for %v s, whole after %v s", r.Before, r.After, r.LongestCommit, r.WholeAfter)
	}
	wantTold(t, r, map[drill.Source]string{drill.FromDrill: "has frozen process", drill.FromPlanner: "commits do not wait", drill.FromEvent: "frozen for 4s"})
}

// apartWriterFrozen: another one takes its place, and nothing that it had acknowledged is lost.
func (d *drilledApart) apartWriterFrozen(t *testing.T) {
	r := d.rehearseApart(t, 1, "--freeze", "writer", "--for", "15s")
	if r.After.Epoch <= r.Before.Epoch || r.After.Writer.Server != r.Before.Standby.Server {
		t.Errorf("%+v, then %+v", r.Before, r.After)
	}
	wantTold(t, r, map[drill.Source]string{drill.FromDrill: "has frozen process", drill.FromPlanner: fmt.Sprint("epoch ", r.After.Epoch)})
}

// apartCut: each host has its own server not reach the other one.
func (d *drilledApart) apartCut(t *testing.T) {
	if err := netcut.Probe(); err != nil {
		t.Skip("this machine cannot cut servers off from each other: ", err)
	}
	r := d.rehearseApart(t, 2, "--cut", "standby", "--for", "6s")
	if r.After.Epoch != r.Before.Epoch || r.After.Writer != r.Before.Writer || r.LongestCommit < 1 || r.WholeAfter < 6 {
		t.Errorf("%+v, then %+v; a commit waited for %v s, whole after %v s", r.Before, r.After, r.LongestCommit, r.WholeAfter)
	}
	wantTold(t, r, map[drill.Source]string{drill.FromDrill: "packets were dropped", drill.FromPlanner: "commits do not wait", drill.FromEvent: "cut off from another server for 6s"})
}

// frozenFar begins a drill that has the standby frozen for long, and returns once it is.
func (d *drilledApart) frozenFar(t *testing.T) (c *exec.Cmd, said *bytes.Buffer, standby *apartHost, pid int) {
	t.Helper()
	d.apart.waitWhole(t)
	_, standby = d.roles(t)
	m, err := standby.member(t, d.apart.ID).Server()
	must(t, err)
	c, said = d.command(d.apart.Name, "--freeze", "standby", "--for", "9m", "--yes"), &bytes.Buffer{}
	c.Stdout, c.Stderr = said, said
	must(t, c.Start())
	t.Cleanup(func() { c.Process.Kill() }) // an error means that it is over
	waitFrozen(t, m, true)
	return c, said, standby, m
}

func waitFrozen(t *testing.T, pid int, want bool) {
	t.Helper()
	harness.Wait(t, gapBound, fmt.Sprintf("process %d is frozen: %v", pid, want), func() string {
		if frozen(pid) != want {
			return fmt.Sprint(!want)
		}
		return ""
	})
}

// apartDrillDies: without a word of the drill the host has the server go on.
func (d *drilledApart) apartDrillDies(t *testing.T) {
	c, _, _, pid := d.frozenFar(t)
	must(t, c.Process.Kill())
	_ = c.Wait() // it was killed
	waitFrozen(t, pid, false)
}

// apartAgentDies: a guard has the server go on when the agent that froze it has died, and the
// next agent knows nothing of it.
func (d *drilledApart) apartAgentDies(t *testing.T) {
	c, said, standby, pid := d.frozenFar(t)
	standby.Kill(t)
	waitFrozen(t, pid, false)
	standby.Start(t)
	must(t, c.Process.Signal(syscall.SIGINT))
	if err := c.Wait(); err == nil || !strings.Contains(said.String(), "of these missing") || !strings.Contains(said.String(), "was restarted, which ended the fault") {
		t.Errorf("%v\n%s", err, said)
	}
	if frozen(pid) {
		t.Error("the standby is frozen again")
	}
	d.apart.waitWhole(t)
}
