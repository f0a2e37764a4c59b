//go:build integration

package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"kurabe"
	"kurabe/internal/drill"
	"kurabe/internal/harness"
)

// ringBed is a DB cluster that the command line made, to lose servers of.
type ringBed struct {
	*clusterBed
	binary string
}

func newRingBed(t *testing.T, s *harness.Service, engine string) *ringBed {
	t.Helper()
	b := &ringBed{&clusterBed{s: s}, harness.Binary(t)}
	c := b.command("create", "ring", "--cluster", "--engine", engine, "--database", "shop", "--class", harness.Class("micro"), "--password-stdin")
	c.Stdin = strings.NewReader(harness.Password + "\n")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("create: %v\n%s", err, out)
	}
	d := b.whole(t)
	for _, endpoint := range []string{aws.ToString(d.Endpoint), aws.ToString(d.ReaderEndpoint)} {
		if !strings.Contains(string(out), endpoint) {
			t.Errorf("it does not tell of %s:\n%s", endpoint, out)
		}
	}
	b.id = harness.Owners(s.Homes())[0]
	b.login = harness.Login{Engine: engine, Address: aws.ToString(d.Endpoint), Port: int(aws.ToInt32(d.Port)), User: "master", Password: harness.Password, Database: "shop", CAFile: filepath.Join(s.Data, "ca.pem")}
	return b
}

func (b *ringBed) command(args ...string) *exec.Cmd { return clientCommand(b.s, b.binary, args...) }

// drill runs one, with the login that create kept, and reads its report: nothing may be wrong.
func (b *ringBed) drill(t *testing.T, args ...string) drill.Report {
	t.Helper()
	b.whole(t)
	waitReaders(t, b.s)
	c := b.command(append([]string{"drill", "ring", "--yes", "--json"}, args...)...)
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.Output()
	var r drill.Report
	if err == nil {
		err = json.Unmarshal(out, &r)
	}
	if err != nil || r.Reads == nil {
		t.Fatalf("drill %v: %v\n%s%s", args, err, out, &said)
	}
	t.Logf("%s: gap %.2f s, longest commit %.2f s, whole after %.1f s, %d rows, reads %+v", r.Order, r.Gap, r.LongestCommit, r.WholeAfter, r.Rows.Acknowledged, *r.Reads)
	if wrong := r.Rows.Wrong(); wrong != "" || r.Rows.Acknowledged < 100 || r.WholeAfter <= 0 || r.Fault.IsZero() {
		t.Errorf("%s: %d rows, %s, whole after %v s", r.Order, r.Rows.Acknowledged, wrong, r.WholeAfter)
	}
	if r.Gap <= 0 || r.Gap > gapBound.Seconds() || len(r.Before.Readers) != 2 || len(r.After.Readers) != 2 || r.Reads.Answered < 100 {
		t.Errorf("%s: gap %v s, from %+v to %+v, reads %+v", r.Order, r.Gap, r.Before, r.After, r.Reads)
	}
	s, err := harness.Open(t.Context(), b.login)
	must(t, err)
	defer s.Close()
	left, err := s.Rows(t.Context(), "SELECT count(*) FROM information_schema.schemata WHERE schema_name = '"+drill.Schema+"'")
	must(t, err)
	if left[0] != "0" {
		t.Errorf("the schema %s is left", drill.Schema)
	}
	return r
}

// TestDrillCluster rehearses with a DB cluster what can happen to it: the loss of the writer,
// of a reader and of both, a reader that hangs, and a failover in order.
func TestDrillCluster(t *testing.T) {
	onceIsEnough(t)
	s := harness.Start(t, harness.Options{})
	s.EachEngine(t, func(t *testing.T, engine string) { newRingBed(t, s, engine).rehearsed(t) })
}

func (b *ringBed) rehearsed(t *testing.T) {
	inTurn(t, "what cannot be", b.refusals)
	var chosen drill.Seat // the reader that no drill takes by itself
	inTurn(t, "the writer is killed", func(t *testing.T) {
		r := b.drill(t, "--kill", "writer")
		chosen = r.After.Readers[len(r.After.Readers)-1]
		if r.After.Epoch <= r.Before.Epoch || r.After.Writer.Server == r.Before.Writer.Server || r.Errors == 0 {
			t.Errorf("%+v, then %+v, %d errors", r.Before, r.After, r.Errors)
		}
		wantTold(t, r, map[drill.Source]string{drill.FromPlanner: fmt.Sprint("epoch ", r.After.Epoch), drill.FromHost: "it does not run", drill.FromEvent: "cross AZ failover to DB instance"})
	})
	inTurn(t, "the reader of a zone is frozen", func(t *testing.T) {
		r := b.drill(t, "--freeze", "reader="+chosen.Zone, "--for", "4s")
		wantStruck(t, r, chosen.Server)
		if r.After.Epoch != r.Before.Epoch || r.LongestCommit >= 1 || r.WholeAfter < 3 {
			t.Errorf("%+v, then %+v; a commit waited for %v s, whole after %v s", r.Before, r.After, r.LongestCommit, r.WholeAfter)
		}
		wantTold(t, r, map[drill.Source]string{drill.FromDrill: ", reader", drill.FromPlanner: "commits wait for either of"})
	})
	inTurn(t, "a reader is killed by its number", func(t *testing.T) {
		r := b.drill(t, "--kill", fmt.Sprint("reader=", chosen.Server.Number()))
		if r.After.Epoch != r.Before.Epoch || r.Errors != 0 {
			t.Errorf("%+v, then %+v, %d errors", r.Before, r.After, r.Errors)
		}
		wantStruck(t, r, chosen.Server)
		b.refuse(t, map[string]refusedDrill{
			"the writer for a reader": {[]string{"ring", "--kill", fmt.Sprint("reader=", r.After.Writer.Server.Number())}, "that is the writer at this moment"},
			"no such reader":          {[]string{"ring", "--kill", "reader=99"}, "choose one of: "},
			"several on a host":       {[]string{"ring", "--kill", "reader=" + b.host(t)}, "name one by its number"},
		})
	})
	inTurn(t, "writer and reader are killed", func(t *testing.T) { b.drill(t, "--kill", "both") })
	inTurn(t, "in order", func(t *testing.T) {
		r := b.drill(t, "--failover")
		if r.After.Epoch <= r.Before.Epoch {
			t.Errorf("%+v, then %+v", r.Before, r.After)
		}
		wantTold(t, r, map[drill.Source]string{drill.FromDrill: "FailoverDBCluster", drill.FromEvent: "failover"})
	})
	if out, err := b.command("delete", "ring", "--yes").CombinedOutput(); err != nil {
		t.Errorf("delete: %v\n%s", err, out)
	}
	harness.Wait(t, gapBound, "nothing is left", func() string { return strings.Join(b.s.Homes(), " ") })
}

// wantStruck demands that one server was struck, as its host has seen.
func wantStruck(t *testing.T, r drill.Report, id kurabe.InstanceID) {
	t.Helper()
	if !slices.Equal(r.Struck, []kurabe.InstanceID{id}) {
		t.Errorf("%s: %v were struck, and %s was meant", r.Order, r.Struck, id)
	}
	wantTold(t, r, map[drill.Source]string{drill.FromDrill: fmt.Sprintf("server %d, reader", id.Number())})
}

// host is what the only host is called.
func (b *ringBed) host(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(b.s.Data, "host.json"))
	must(t, err)
	var h struct{ ID string }
	must(t, json.Unmarshal(raw, &h))
	return h.ID
}

// refusedDrill is one that is not begun, with the words that it is refused with.
type refusedDrill struct {
	args []string
	says string
}

func (b *ringBed) refusals(t *testing.T) {
	b.refuse(t, map[string]refusedDrill{
		"a server of it":     {[]string{b.named(t), "--kill", "writer"}, "kurabe drill ring --kill reader"},
		"a standby":          {[]string{"ring", "--kill", "standby"}, "use reader"},
		"none of that name":  {[]string{"rang", "--kill", "writer"}, "no DB instance and no DB cluster"},
		"no cluster of that": {[]string{"cluster:rang", "--kill", "writer"}, "no DB cluster"},
	})
	if out, err := b.command("create", "ring", "--cluster").CombinedOutput(); err == nil || !strings.Contains(string(out), "DBClusterAlreadyExists") {
		t.Errorf("another of the same name: %v\n%s", err, out)
	}
}

func (b *ringBed) refuse(t *testing.T, refused map[string]refusedDrill) {
	t.Helper()
	for name, c := range refused {
		out, err := b.command(append([]string{"drill", "--yes"}, c.args...)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), c.says) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}
