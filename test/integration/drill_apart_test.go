//go:build integration

package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/drill"
	"kurabe/internal/harness"
)

// drilledApart is a pair of which the machine that drills has no server.
type drilledApart struct {
	*apart
	drillBed
}

// TestDrillApart loses servers that are on other machines than the service: their hosts kill
// them, once, and freeze them and cut them off, for a time.
func TestDrillApart(t *testing.T) {
	onceIsEnough(t)
	b := newApartBed(t)
	b.service.EachEngine(t, func(t *testing.T, engine string) {
		p := b.create(t, engine)
		d := &drilledApart{p, drillBed{p.Instance, harness.Binary(t)}}
		inTurn(t, "what cannot be", d.apartRefusals)
		inTurn(t, "the writer is killed", d.apartWriter)
		inTurn(t, "the standby of a zone is killed", d.apartStandby)
		inTurn(t, "both are killed", d.apartBoth)
		inTurn(t, "the standby is frozen", d.apartStandbyFrozen)
		inTurn(t, "the writer is frozen", d.apartWriterFrozen)
		inTurn(t, "the standby is cut off", d.apartCut)
		inTurn(t, "a freeze without its drill", d.apartDrillDies)
		inTurn(t, "a freeze without its agent", d.apartAgentDies)
		p.pulse.Stop()
		p.pulse.Verify(t)
		p.Delete(t)
	})
}

// rehearseApart rehearses once nothing is missing, and demands that users were told of each
// server that its host was to strike, once.
func (d *drilledApart) rehearseApart(t *testing.T, hosts int, args ...string) drill.Report {
	t.Helper()
	d.apart.waitWhole(t)
	harness.Wait(t, gapBound, "a drill is not refused", func() string {
		out, err := d.command(d.apart.Name, "--kill", "writer").CombinedOutput()
		if err != nil && strings.Contains(string(out), "nothing was done") { // nobody has confirmed it
			return ""
		}
		return fmt.Sprint(string(out), err)
	})
	from := time.Now()
	r := d.rehearse(t, args...)
	for _, e := range r.Timeline {
		t.Logf("%+9.3f  %-8s %s", e.Seconds, e.Source, e.Text)
	}
	d.apart.waitWhole(t)
	told := slices.DeleteFunc(d.apart.EventsFrom(t, from), func(e string) bool { return !strings.Contains(e, "A drill has the server") })
	if len(told) != hosts || len(r.Struck) == 0 {
		t.Errorf("%v were struck, and users were told %q", r.Struck, told)
	}
	for _, id := range r.Struck {
		wantTold(t, r, map[drill.Source]string{drill.FromEvent: fmt.Sprintf("A drill has the server %d", id.Number())})
		if args[0] == "--kill" {
			wantTold(t, r, map[drill.Source]string{drill.FromDrill: "has killed process", drill.FromHost: fmt.Sprintf("server %d: it does not run", id.Number())})
		}
	}
	return r
}

func (d *drilledApart) apartRefusals(t *testing.T) {
	d.apart.waitWhole(t)
	from := time.Now()
	writer, _ := d.roles(t)
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"a freeze for long":   {[]string{"--freeze", "standby", "--for", "1h"}, "is not between"},
		"where nobody is":     {[]string{"--kill", "standby=us-east-1z"}, "--kill standby=us-east-1z: there is no such standby; choose of: "},
		"the writer's zone":   {[]string{"--kill", "standby=" + writer.zone}, "that is the writer at this moment"},
		"no number":           {[]string{"--kill", "standby=0"}, "numbers begin with 1"},
		"a reader of a pair":  {[]string{"--kill", "reader=2"}, "use standby"},
		"one of two for both": {[]string{"--kill", "both=2"}, "chooses the second server of both"},
	} {
		out, err := d.command(d.apart.Name, append(c.args, "--yes")...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), c.says) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	if told := d.apart.EventsFrom(t, from); len(told) > 0 {
		t.Errorf("a refused drill did something: %q", told)
	}
}

func (d *drilledApart) apartWriter(t *testing.T) {
	was, _ := d.roles(t)
	r := d.rehearseApart(t, 1, "--kill", "writer")
	if r.After.Epoch <= r.Before.Epoch || r.After.Writer.Server != r.Before.Standby.Server || r.Errors == 0 || !slices.Equal(r.Struck, []kurabe.InstanceID{r.Before.Writer.Server}) {
		t.Errorf("%+v, then %+v, %d errors, struck %v", r.Before, r.After, r.Errors, r.Struck)
	}
	wantTold(t, r, map[drill.Source]string{drill.FromDrill: fmt.Sprintf("kills process %d: ", r.Before.Writer.Process), drill.FromPlanner: fmt.Sprint("epoch ", r.After.Epoch)})
	if now, _ := d.roles(t); now == was {
		t.Errorf("the writer is in zone %s yet", was.zone)
	}
}

// apartStandby: an agent that is started anew does not repeat what it did.
func (d *drilledApart) apartStandby(t *testing.T) {
	_, standby := d.roles(t)
	r := d.rehearseApart(t, 1, "--kill", "standby="+standby.zone)
	if r.After.Epoch != r.Before.Epoch || r.After.Standby.Process == r.Before.Standby.Process || !slices.Equal(r.Struck, []kurabe.InstanceID{r.Before.Standby.Server}) {
		t.Errorf("%+v, then %+v, struck %v", r.Before, r.After, r.Struck)
	}
	before, err := standby.member(t, d.apart.ID).Server()
	must(t, err)
	standby.Kill(t)
	standby.Start(t)
	d.apart.waitWhole(t)
	if after, err := standby.member(t, d.apart.ID).Server(); err != nil || after != before {
		t.Errorf("the standby was process %d, and is %d: %v", before, after, err)
	}
}

func (d *drilledApart) apartBoth(t *testing.T) {
	if r := d.rehearseApart(t, 2, "--kill", "both"); len(r.Struck) != 2 {
		t.Errorf("%+v, then %+v, struck %v", r.Before, r.After, r.Struck)
	}
}
