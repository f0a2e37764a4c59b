//go:build fault

package fault

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe"
	"kurabe/internal/harness"
)

// diskBytes is the disk of a host: an instance of either engine, and what it writes meanwhile, take
// less than half of it. Of a disk below 2 GiB an eighth is the reserve.
const diskBytes = 2000 << 20

// disk is the file system of a host's data, and reserve what Kurabe keeps of it.
func (h *apartHost) disk() string { return h.Data }

const diskReserve = diskBytes / 8

// leftAgain is how long a disk that was left is no place to go to (decision 50), and a little.
const leftAgain = 65 * time.Second

// diskCases are in the order in which they come: those of the standby's disk take a part of the
// minute in which the disk that was left first is no place to go to.
var diskCases = []struct {
	name string
	run  func(*testing.T, *apart)
}{
	{"the writer's disk is nearly full", caseWriterNearlyFull},
	{"the standby's disk is nearly full", caseStandbyNearlyFull},
	{"the standby's disk is full to the last byte", caseStandbyFull},
	{"the standby's disk is nearly full, and commits wait", caseStandbyFullBlocks},
	{"the writer's disk is full to the last byte", caseWriterFull},
}

// TestFullDiskOfOneHost has the disks of the two hosts of a pair fill, one at a time: clients are
// served by whoever has room, nothing acknowledged is lost, and with room the pair is whole again
// by itself.
func TestFullDiskOfOneHost(t *testing.T) {
	kinds := []string{"xfs", "ext4"}
	b := newApartBed(t, hostChange{prepare: func(t *testing.T, _ *apartBed, h *apartHost) {
		fileSystem(t, h.disk(), kinds[0], diskBytes)
		kinds = kinds[1:]
	}})
	b.service.EachEngine(t, func(t *testing.T, engine string) {
		p := b.create(t, "full", engine)
		p.pulse = p.Pulse(t)
		for _, c := range diskCases {
			t.Run(c.name, func(t *testing.T) { c.run(t, p) })
			p.waitWhole(t)
			p.pulse.WaitMore(t, pairBeats)
			p.pulse.Verify(t)
		}
		p.pulse.Stop()
		p.tidy(t)
	})
}

// grower writes about a megabyte a second until it is stopped, as whoever fills a disk does.
func (p *apart) grower(t *testing.T) (stop func()) {
	t.Helper()
	series, random := "seq_1_to_3000", "md5(rand())"
	if p.Engine == "postgres" {
		series, random = "generate_series(1, 3000)", "md5(random()::text)"
	}
	p.Query(t, "CREATE TABLE IF NOT EXISTS growing (x varchar(200))")
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() {
		var s harness.Session
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			within, done := context.WithTimeout(ctx, 5*time.Second)
			var err error
			if s == nil {
				s, err = harness.Open(within, p.login)
			}
			if err == nil {
				err = s.Exec(within, "INSERT INTO growing SELECT concat("+random+", "+random+") FROM "+series)
			}
			if done(); err != nil && s != nil {
				s.Close()
				s = nil
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
		if s != nil {
			s.Close()
		}
	})
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			work.Wait()
		})
	}
	t.Cleanup(stop)
	return stop
}

// grown ends what a grower began.
func (p *apart) grown(t *testing.T, stop func()) {
	t.Helper()
	stop()
	p.Query(t, "DROP TABLE growing")
}

// reserved waits until a host has its reserve, without which a disk that fills is no surprise.
func (h *apartHost) reserved(t *testing.T) {
	t.Helper()
	harness.Wait(t, settleTime, "the reserve of zone "+h.zone, func() string {
		if list, _ := filepath.Glob(filepath.Join(h.Data, "reserve")); len(list) == 0 {
			return "it is not made"
		}
		return ""
	})
}

// leftBy demands that clients find the other host soon, that nobody has called the instance
// storage-full, and that the former writer is a standby again when there is room.
func (p *apart) leftBy(t *testing.T, from time.Time, other *apartHost, free func()) {
	t.Helper()
	harness.Wait(t, pairSettleTime, "the other host serves", func() string {
		if zone, _ := p.Zones(t); zone != other.zone {
			return "zone " + zone + " does"
		}
		return ""
	})
	p.pulse.WaitMore(t, pairBeats)
	gap := p.pulse.Gap(from)
	t.Logf("clients waited for %v, %v after the disk was full they were served elsewhere", gap.Round(time.Millisecond), time.Since(from).Round(time.Millisecond))
	if gap > apartBar+apartMargin {
		t.Errorf("clients waited for %v", gap)
	}
	p.WaitEventsFrom(t, from, "is stopped: the disk of host")
	p.neverFull(t, from)
	p.WaitStatus(t, "available") // with one server
	p.left = time.Now()
	from = time.Now()
	free()
	p.isServedBy(t, other)
	t.Logf("whole again %v after there was room", time.Since(from).Round(time.Millisecond))
}

// neverFull demands that nobody has shut the instance down.
func (p *apart) neverFull(t *testing.T, from time.Time) {
	t.Helper()
	if all := p.EventsFrom(t, from); slices.ContainsFunc(all, func(e string) bool { return strings.Contains(e, "has been shut down") }) {
		t.Errorf("the instance was shut down:\n%s", strings.Join(all, "\n"))
	}
}

func caseWriterNearlyFull(t *testing.T, p *apart) {
	writer, standby := p.roles(t)
	writer.reserved(t)
	defer p.grown(t, p.grower(t))
	p.pulse.WaitMore(t, pairBeats)
	from := time.Now()
	free := leave(t, writer.disk(), diskReserve*3/4)
	defer free()
	p.leftBy(t, from, standby, free)
}

// caseWriterFull: a neighbour takes all, the reserve too.
func caseWriterFull(t *testing.T, p *apart) {
	harness.After(t, time.Until(p.left.Add(leftAgain)))
	writer, standby := p.roles(t)
	writer.reserved(t)
	p.pulse.WaitMore(t, pairBeats)
	from := time.Now()
	free := hog(t, writer.disk())
	p.leftBy(t, from, standby, free)
}

// goesOn demands that clients are served by the writer while its standby's disk is full, and
// that the standby is back when it is not.
func (p *apart) goesOn(t *testing.T, from time.Time, writer *apartHost, free func()) {
	t.Helper()
	p.WaitEventsFrom(t, from, "is stopped: the disk of host")
	p.WaitLike(t, "says why it has no standby", func(d types.DBInstance) string {
		for _, s := range d.StatusInfos {
			if strings.Contains(aws.ToString(s.Message), "is nearly full") {
				return ""
			}
		}
		return "it does not"
	})
	p.pulse.WaitMore(t, pairBeats)
	gap := p.pulse.Gap(from)
	t.Logf("clients waited for %v", gap.Round(time.Millisecond))
	if gap > degradeBar+apartMargin {
		t.Errorf("clients waited for %v", gap)
	}
	p.neverFull(t, from)
	from = time.Now()
	free()
	p.isServedBy(t, writer)
	t.Logf("whole again %v after there was room", time.Since(from).Round(time.Millisecond))
}

// degradeBar is how long commits may wait for a standby that is lost.
const degradeBar = 2 * time.Second

func caseStandbyNearlyFull(t *testing.T, p *apart) {
	writer, standby := p.roles(t)
	standby.reserved(t)
	defer p.grown(t, p.grower(t))
	p.pulse.WaitMore(t, pairBeats)
	from := time.Now()
	free := leave(t, standby.disk(), diskReserve*3/4)
	defer free()
	p.goesOn(t, from, writer, free)
}

func caseStandbyFull(t *testing.T, p *apart) {
	writer, standby := p.roles(t)
	standby.reserved(t)
	defer p.grown(t, p.grower(t))
	p.pulse.WaitMore(t, pairBeats)
	from := time.Now()
	p.goesOn(t, from, writer, hog(t, standby.disk()))
}

// caseStandbyFullBlocks: the policy says that commits wait, and they go on with the standby.
func caseStandbyFullBlocks(t *testing.T, p *apart) {
	writer, standby := p.roles(t)
	standby.reserved(t)
	set := func(value string) {
		t.Helper()
		if err := p.bed.setStandbyLost(t.Context(), p.Name, value); err != nil {
			t.Fatal(err)
		}
	}
	set(kurabe.StandbyLostBlock)
	defer set(kurabe.StandbyLostDegrade)
	server, _ := p.server(standby)
	pid, err := server.Server()
	if err != nil {
		t.Fatal(err)
	}
	stop := p.grower(t)
	p.pulse.WaitMore(t, pairBeats)
	from := time.Now()
	free := leave(t, standby.disk(), diskReserve*3/4)
	defer free()
	p.WaitEventsFrom(t, from, "is stopped: the disk of host", "Commits wait until it is back")
	harness.WaitEnded(t, settleTime, "the standby ends", pid) // until then it has what is written
	before := time.Now()
	harness.After(t, staleTime)
	for _, beat := range p.pulse.Beats() {
		if beat.Began.After(before) {
			t.Fatalf("a row was acknowledged without the standby")
		}
	}
	p.neverFull(t, from)
	from = time.Now()
	free()
	p.pulse.WaitMore(t, pairBeats)
	t.Logf("clients were served %v after there was room", p.servedAfter(from).Sub(from).Round(time.Millisecond))
	p.grown(t, stop)
	p.isServedBy(t, writer)
}
