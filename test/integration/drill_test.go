//go:build integration

package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/drill"
	"kurabe/internal/harness"
)

// drillBed is an instance in two zones to lose servers of.
type drillBed struct {
	*harness.Instance
	binary string
}

// command is a drill that is about to run.
func (b *drillBed) command(name string, args ...string) *exec.Cmd {
	c := clientCommand(b.Service, b.binary, append([]string{"drill", name}, args...)...)
	c.Env = append(c.Env, "KURABE_DRILL_PASSWORD="+b.Password)
	return c
}

// drill runs one, which must find nothing wrong, and reads its report.
func (b *drillBed) drill(t *testing.T, args ...string) drill.Report {
	t.Helper()
	b.WaitWhole(t)
	return b.rehearse(t, args...)
}

// rehearse is drill of an instance that is whole.
func (b *drillBed) rehearse(t *testing.T, args ...string) drill.Report {
	t.Helper()
	c := b.command(b.Name, append(args, "--yes", "--json")...)
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.Output()
	var r drill.Report
	if err == nil {
		err = json.Unmarshal(out, &r)
	}
	if err != nil {
		t.Fatalf("drill %v: %v\n%s%s", args, err, out, &said)
	}
	t.Logf("%s: gap %.2f s, longest commit %.2f s, whole after %.1f s, %d rows", r.Order, r.Gap, r.LongestCommit, r.WholeAfter, r.Rows.Acknowledged)
	if wrong := r.Rows.Wrong(); wrong != "" || r.Rows.Acknowledged < 100 {
		t.Errorf("%s: %d rows, %s", r.Order, r.Rows.Acknowledged, wrong)
	}
	if r.Gap <= 0 || r.Gap > gapBound.Seconds() || r.LongestCommit <= 0 || r.WholeAfter <= 0 || r.Fault.IsZero() {
		t.Errorf("%s: gap %v s, longest commit %v s, whole after %v s, fault at %v", r.Order, r.Gap, r.LongestCommit, r.WholeAfter, r.Fault)
	}
	b.wantCleared(t)
	return r
}

// wantCleared demands that the database has nothing of a drill.
func (b *drillBed) wantCleared(t *testing.T) {
	t.Helper()
	if left := b.Query(t, "SELECT count(*) FROM information_schema.schemata WHERE schema_name = '"+drill.Schema+"'"); left != "0" {
		t.Errorf("the schema %s is left", drill.Schema)
	}
}

// wantTold demands entries of the timeline with these words.
func wantTold(t *testing.T, r drill.Report, told map[drill.Source]string) {
	t.Helper()
	for source, words := range told {
		if !slices.ContainsFunc(r.Timeline, func(e drill.Entry) bool { return e.Source == source && strings.Contains(e.Text, words) }) {
			t.Errorf("%s: no entry of %s tells of %q in %+v", r.Order, source, words, r.Timeline)
		}
	}
}

// frozen says whether the first process of a server is stopped.
func frozen(pid int) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	return strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))[0] == "T"
}

// A drill loses what it was told to, tells what it cost, and leaves nothing: no table, and
// no server that hangs, also when it is interrupted or killed.
func TestDrill(t *testing.T) {
	onceIsEnough(t)
	s := shared(t)
	s.NeedEngine(t, "postgres", s.Engines(t))
	solo := s.Create(t, harness.Request("drill-solo", "postgres"))
	b := &drillBed{s.MustCreate(t, harness.MultiAZRequest("drill-pair", "postgres")), harness.Binary(t)}
	inTurn(t, "made by the command", b.madeByCommand)
	inTurn(t, "what cannot be", func(t *testing.T) { b.refusals(t, solo) })
	inTurn(t, "the writer is killed", b.writerKilled)
	inTurn(t, "the standby is frozen", b.standbyFrozen)
	inTurn(t, "interrupted", b.interrupted)
	inTurn(t, "killed itself", b.killed)
	inTurn(t, "in order, after one that was killed", func(t *testing.T) {
		wantTold(t, b.inOrder(t), map[drill.Source]string{drill.FromDrill: "had left"})
	})
	solo.AskDelete(t)
	b.AskDelete(t)
}

// What differs between engines is the schema, and what they do.
func TestDrillMariaDB(t *testing.T) {
	onceIsEnough(t)
	s := shared(t)
	s.NeedEngine(t, "mariadb", s.Engines(t))
	b := &drillBed{s.MustCreate(t, harness.MultiAZRequest("drill-mariadb", "mariadb")), harness.Binary(t)}
	inTurn(t, "the writer is killed", b.writerKilled)
	inTurn(t, "the standby is frozen", b.standbyFrozen)
	inTurn(t, "in order", func(t *testing.T) { b.inOrder(t) })
	b.AskDelete(t)
}

func (b *drillBed) madeByCommand(t *testing.T) {
	c := clientCommand(b.Service, b.binary, "create", "drill-made", "--multi-az", "--class", harness.Class("micro"), "--password-stdin")
	c.Stdin = strings.NewReader(harness.Password + "\n")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("create: %v\n%s", err, out)
	}
	made := &harness.Instance{Service: b.Service, Name: "drill-made"}
	made.WaitWhole(t)
	made.AskDelete(t)
	if out, err := clientCommand(b.Service, b.binary, "create", "never-made", "--multi-az", "--cluster").CombinedOutput(); err == nil || !strings.Contains(string(out), "multi-az") {
		t.Errorf("an instance that is a cluster: %v\n%s", err, out)
	}
}

func (b *drillBed) writerKilled(t *testing.T) {
	r := b.drill(t, "--kill", "writer")
	if r.After.Epoch <= r.Before.Epoch || r.After.Writer.Server != r.Before.Standby.Server || r.Errors == 0 {
		t.Errorf("%+v, then %+v, %d errors", r.Before, r.After, r.Errors)
	}
	wantTold(t, r, map[drill.Source]string{
		drill.FromDrill: fmt.Sprint("kills process ", r.Before.Writer.Process), drill.FromPlanner: fmt.Sprint("epoch ", r.After.Epoch),
		drill.FromHost: "it does not run", drill.FromEvent: "failover started", drill.FromClient: "", // an error, in any words
	})
	if r.Gap >= 0.1 { // shorter ones are not told of
		wantTold(t, r, map[drill.Source]string{drill.FromClient: "an acknowledgement, the first in"})
	}
}

func (b *drillBed) standbyFrozen(t *testing.T) {
	r := b.drill(t, "--freeze", "standby", "--for", "3s")
	if r.After.Epoch != r.Before.Epoch || r.LongestCommit < 1 || r.WholeAfter < 3 {
		t.Errorf("%+v, then %+v; a commit waited for %v s, whole after %v s", r.Before, r.After, r.LongestCommit, r.WholeAfter)
	}
	wantTold(t, r, map[drill.Source]string{drill.FromDrill: "resumes", drill.FromPlanner: "commits do not wait", drill.FromEvent: "standby does not answer"})
}

func (b *drillBed) inOrder(t *testing.T) drill.Report {
	r := b.drill(t, "--failover")
	if r.After.Epoch <= r.Before.Epoch {
		t.Errorf("%+v, then %+v", r.Before, r.After)
	}
	wantTold(t, r, map[drill.Source]string{drill.FromPlanner: fmt.Sprint("epoch ", r.After.Epoch), drill.FromEvent: "failover completed"})
	return r
}

// refusals leave everything as it is.
func (b *drillBed) refusals(t *testing.T, solo *harness.Instance) {
	solo.WaitLike(t, "is available", func(d types.DBInstance) string {
		if d.Endpoint == nil || *d.DBInstanceStatus != "available" {
			return *d.DBInstanceStatus
		}
		return ""
	})
	b.WaitWhole(t)
	from := time.Now()
	for name, c := range map[string]struct {
		command *exec.Cmd
		says    string
	}{
		"one zone":             {b.command(solo.Name, "--kill", "writer", "--yes"), "--multi-az"},
		"nobody confirms":      {b.command(b.Name, "--kill", "writer"), "nothing was done"},
		"nothing is asked for": {b.command(b.Name, "--yes"), "name the fault"},
		"two things":           {b.command(b.Name, "--failover", "--kill", "both", "--yes"), "failover"},
	} {
		out, err := c.command.CombinedOutput()
		if err == nil || !strings.Contains(string(out), c.says) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	wrong := b.command(b.Name, "--kill", "writer", "--yes")
	wrong.Env = append(wrong.Env, "KURABE_DRILL_PASSWORD=wrong")
	if out, err := wrong.CombinedOutput(); err == nil || !strings.Contains(string(out), "log in as") {
		t.Errorf("a wrong password: %v\n%s", err, out)
	}
	if told := b.EventsFrom(t, from); len(told) > 0 {
		t.Errorf("a refused drill did something: %q", told)
	}
	b.wantCleared(t)
}

// freezing begins a drill that freezes the standby for long, and returns once it has.
func (b *drillBed) freezing(t *testing.T) (c *exec.Cmd, said *bytes.Buffer, standby int) {
	t.Helper()
	b.WaitWhole(t)
	_, m := b.Pair(t)
	standby, err := m.Server()
	must(t, err)
	c, said = b.command(b.Name, "--freeze", "standby", "--for", "10m", "--yes"), &bytes.Buffer{}
	c.Stdout, c.Stderr = said, said
	must(t, c.Start())
	t.Cleanup(func() { c.Process.Kill() }) // an error means that it is over
	harness.Wait(t, gapBound, "the standby is frozen", func() string {
		if !frozen(standby) {
			return "it is not"
		}
		return ""
	})
	return c, said, standby
}

// interrupted by Ctrl-C, it has the standby go on and tells what it saw.
func (b *drillBed) interrupted(t *testing.T) {
	c, said, standby := b.freezing(t)
	must(t, c.Process.Signal(syscall.SIGINT))
	if err := c.Wait(); err == nil || c.ProcessState.ExitCode() != 130 {
		t.Errorf("%v\n%s", err, said)
	}
	if frozen(standby) {
		t.Error("the standby is left frozen")
	}
	if !strings.Contains(said.String(), "interrupted") || !strings.Contains(said.String(), "of these missing") {
		t.Errorf("it tells\n%s", said)
	}
	b.wantCleared(t)
}

// killed, it leaves the standby to its guard, and the schema to the next drill.
func (b *drillBed) killed(t *testing.T) {
	c, _, standby := b.freezing(t)
	must(t, c.Process.Kill())
	_ = c.Wait() // it was killed
	harness.Wait(t, gapBound, "the guard has the standby go on", func() string {
		if frozen(standby) {
			return "it is frozen"
		}
		return ""
	})
}
