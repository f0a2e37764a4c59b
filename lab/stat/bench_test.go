package stat

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func BenchmarkPairedRatio(b *testing.B) {
	for _, n := range []int{12, 24, 100, 300, MaxPairs} {
		b.Run(fmt.Sprintf("pairs=%d", n), func(b *testing.B) {
			x := simulated{blocks: n, effect: 1.05, noise: noises["log-normal"]}.run(rand.New(rand.NewPCG(1, 2)))
			for b.Loop() {
				PairedRatio(x[cellB], x[cellA], 0.95)
			}
		})
	}
}

func BenchmarkSettled(b *testing.B) {
	for _, n := range []int{60, 180, settledMost} {
		b.Run(fmt.Sprintf("points=%d", n), func(b *testing.B) {
			series := correlated(rand.New(rand.NewPCG(1, 2)), n, 0)
			for b.Loop() {
				Settled(series, 20)
			}
		})
	}
	b.Run("points=2048 of a stair", func(b *testing.B) {
		series := make([]float64, settledMost)
		for i := range series {
			series[i] = float64(i / settledStretch)
		}
		for b.Loop() {
			Settled(series, 20)
		}
	})
}

func BenchmarkSignedRankP(b *testing.B) {
	values := correlated(rand.New(rand.NewPCG(1, 2)), MaxPairs, 0)
	for b.Loop() {
		SignedRankP(values)
	}
}
