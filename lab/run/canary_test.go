package run

import (
	"testing"

	"kurabe/lab/probe"
	"kurabe/lab/result"
)

// TestTheUsualClockIsTheRunsOwn: before the first trial every clock is usual; after that
// the middle of what was seen is, so one slow moment does not move it.
func TestTheUsualClockIsTheRunsOwn(t *testing.T) {
	r := &runner{file: &result.File{}}
	now := &trial{runner: r}
	slow := probe.Canary{Ms: map[string]float64{probe.CanaryCPU: 1.18}}
	if !slow.AsFast(now.usual()) {
		t.Error("the first canary has nothing to be compared with, and was refused")
	}
	for _, both := range [][2]float64{{1.05, 1.06}, {1.18, 1.05}, {1.04, 1.05}} {
		r.file.Trials = append(r.file.Trials, result.Trial{Canary: map[string][2]float64{probe.CanaryCPU: both}})
	}
	r.file.Trials = append(r.file.Trials, result.Trial{}) // one that failed before its canary
	if got := now.usual().Ms[probe.CanaryCPU]; got != 1.05 {
		t.Errorf("usual is %g, want 1.05", got)
	}
	if slow.AsFast(now.usual()) {
		t.Error("a clock that is 12 % lower passed for the usual one")
	}
}
