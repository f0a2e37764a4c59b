//go:build integration

package integration

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe"
	"kurabe/internal/harness"
	"kurabe/internal/volume"
)

const (
	// storageTime is how long the figure may be late on a busy machine: looks are half a
	// minute apart.
	storageTime = 2 * time.Minute
	// storageSlack is what a figure may be off: a file system that has moved by less than
	// 64 MiB is not counted again, a change of less than 16 MiB is not told, and a figure
	// in GiB has three digits.
	storageSlack = 96 << 20
	// freeStatements of the big table are far more than the slack.
	freeStatements = 20
)

// told is what a user reads of an instance's storage.
type told struct{ used, free, limit int64 }

var storageLine = regexp.MustCompile(`(?m)^storage +(\S+ \S+) used, (\S+ \S+) free, cap (\S+ [^\s,;]+)`)

// storageTold reads `kurabe explain`, and demands that `kurabe ls` says the same.
func storageTold(t *testing.T, i *harness.Instance) told {
	t.Helper()
	var is told
	harness.Wait(t, storageTime, "explain and ls agree on the storage of "+i.Name, func() string {
		text, err := kurabeCommand(i.Service, harness.Binary(t), "explain", i.Name)
		if err != nil {
			t.Fatalf("explain: %v\n%s", err, text)
		}
		list, err := kurabeCommand(i.Service, harness.Binary(t), "ls")
		if err != nil {
			t.Fatalf("ls: %v\n%s", err, list)
		}
		m := storageLine.FindStringSubmatch(text)
		if m == nil {
			return "explain tells nothing of it:\n" + text
		}
		is = told{asBytes(t, m[1]), asBytes(t, m[2]), asBytes(t, m[3])}
		listed := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(i.Name) + ` .*  ` + regexp.QuoteMeta(m[1]) + `  +` + regexp.QuoteMeta(m[2]) + `  `)
		if !listed.MatchString(list) {
			return fmt.Sprintf("explain says %q, ls\n%s", m[0], list)
		}
		return ""
	})
	return is
}

// asBytes reads what kurabe.FormatBytes wrote.
func asBytes(t *testing.T, text string) int64 {
	t.Helper()
	number, unit, _ := strings.Cut(text, " ")
	n, err := strconv.ParseFloat(number, 64)
	factor, known := map[string]int64{"GiB": kurabe.GiB, "MiB": 1 << 20, "bytes": 1}[unit]
	if err != nil || !known {
		t.Fatalf("%q is no size: %v", text, err)
	}
	return int64(n * float64(factor))
}

// about says if two sizes differ by no more than the slack.
func about(a, b int64) bool { return max(a-b, b-a) <= storageSlack }

// waitFree waits until the figures are true: against the files, which are counted here
// too, and against what free should be.
func waitFree(t *testing.T, i *harness.Instance, what string, right func(told) bool) told {
	t.Helper()
	var is told
	took := harness.Wait(t, storageTime, what, func() string {
		is = storageTold(t, i)
		truth, err := volume.UsedBytes(i.Home())
		if err != nil || !about(is.used, truth) || !right(is) {
			return fmt.Sprintf("told %+v, the files have %d, %v", is, truth, err)
		}
		return ""
	})
	t.Logf("%s after %v: %s used, %s free, cap %s", what, took.Round(time.Millisecond), kurabe.FormatBytes(is.used), kurabe.FormatBytes(is.free), kurabe.FormatBytes(is.limit))
	return is
}

// What RDS calls FreeStorageSpace is told by `kurabe explain` and `kurabe ls`: it falls by
// what a client writes, comes back with a larger cap or a dropped table, and is never
// more than the disk has.
func TestFreeStorageIsTrue(t *testing.T) {
	needRoot(t)
	// Nearly all of it is waiting for the next look.
	eachEngineBeside(t, func(t *testing.T, engine string) {
		disk := smallDisk(t, 9<<30)
		s := harness.Start(t, harness.Options{Data: filepath.Join(disk, "data")})
		in := harness.Request("free-"+engine, engine)
		in.AllocatedStorage = aws.Int32(testCapGiB)
		i := s.MustCreate(t, in)
		ofCap := func(is told) bool { return about(is.free, is.limit-is.used) }
		begin := waitFree(t, i, "new", func(is told) bool { return ofCap(is) && is.limit == testCapGiB<<30 })

		session := i.Open(t)
		insert := bigTable(t, session, engine)
		for range freeStatements {
			if err := session.Exec(t.Context(), insert); err != nil {
				t.Fatal(err)
			}
		}
		// No more than the rows on half-filled pages, and as much log again.
		const least, most = freeStatements*bigBytes - storageSlack, 3*freeStatements*bigBytes + storageSlack
		written := waitFree(t, i, "written", func(is told) bool {
			fell := begin.free - is.free
			return ofCap(is) && fell >= least && fell <= most
		})
		i.Modify(t, func(in *rds.ModifyDBInstanceInput) { in.AllocatedStorage = aws.Int32(testCapGiB + 1) })
		grown := waitFree(t, i, "grown", func(is told) bool {
			return ofCap(is) && is.limit == (testCapGiB+1)<<30 && about(is.free, written.free+kurabe.GiB)
		})

		ofDisk(t, i, disk, func() {
			waitFree(t, i, "the disk is free again", func(is told) bool { return ofCap(is) && about(is.free, grown.free) })
		})
		i.Delete(t)
	})
}

// ofDisk has somebody else take the disk: what is free is then what the disk has.
func ofDisk(t *testing.T, i *harness.Instance, disk string, again func()) {
	t.Helper()
	free, err := volume.FreeBytes(disk)
	if err != nil {
		t.Fatal(err)
	}
	const left = 3 << 30 // less than the cap leaves, and more than a disk that is nearly full
	remove := ballast(t, filepath.Join(disk, "other-"+i.Engine), free-left)
	waitFree(t, i, "the disk is another's", func(is told) bool { return about(is.free, left) })
	remove()
	again()
}
