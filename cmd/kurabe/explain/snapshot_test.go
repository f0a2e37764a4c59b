package explain

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"kurabe"
)

func TestPrintSnapshots(t *testing.T) {
	var out bytes.Buffer
	printSnapshots(&out, nil)
	if out.Len() > 0 {
		t.Errorf("of none: %q", out.String())
	}
	taken := time.Date(2026, 7, 1, 5, 0, 0, 0, time.Local)
	printSnapshots(&out, []Snapshot{
		{Name: "cloned", Kind: "manual", State: "available", Facts: kurabe.SnapshotFacts{Method: kurabe.SnapshotCloned, SizeBytes: 3 << 30, OccupiedBytes: 1 << 20, Percent: 100, TakenAt: taken}},
		{Name: "under-way", Kind: "manual", State: "creating", Facts: kurabe.SnapshotFacts{SizeBytes: 2 << 30, Percent: 40}},
		{Name: "lost", Kind: "manual", State: "failed", Reason: "the disk is full", Failure: &kurabe.Failure{Step: "take-snapshot", Attempts: 5, Message: "no space left on device"}},
	})
	for _, want := range []string{
		"snapshots   cloned ", "2026-07-01 05:00:00", "clone of 3 GiB, occupies 1 MiB\n", "40 % of 2 GiB\n", "lost: the disk is full\n",
		"step take-snapshot failed 5 times: no space left on device\n", "together they occupy 1 MiB\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
}
