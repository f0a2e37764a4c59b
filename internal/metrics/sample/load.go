package sample

import (
	"runtime"

	"kurabe"
)

// Load are the samples of the sessions that are active at a moment. Without vcpus, those of the
// machine count.
func Load(sessions []kurabe.ActiveSession, vcpus float64) []Value {
	if vcpus == 0 {
		vcpus = float64(runtime.NumCPU())
	}
	all, cpu := float64(len(sessions)), 0.0
	for _, s := range sessions {
		if s.WaitType == kurabe.WaitCPU {
			cpu++
		}
	}
	return []Value{
		{Metric: "DBLoad", Value: all}, {Metric: "DBLoadCPU", Value: cpu}, {Metric: "DBLoadNonCPU", Value: all - cpu},
		{Metric: "DBLoadRelativeToNumVCPUs", Value: all / vcpus},
	}
}
