package stat

import (
	"cmp"
	"slices"
)

// compare orders numbers, with NaN below all and equal to itself.
func compare(a, b float64) int { return cmp.Compare(a, b) }

// doubledRanks are twice the ranks of the values, from 1 for the smallest, in the order
// of the values. Equal ones share the mean of their ranks, and doubled that mean is a
// whole number.
func doubledRanks(values []float64) []int {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return compare(values[i], values[j]) })
	ranks := make([]int, len(values))
	for low := 0; low < len(order); {
		high := low + 1
		for high < len(order) && compare(values[order[low]], values[order[high]]) == 0 {
			high++
		}
		for _, i := range order[low:high] {
			ranks[i] = low + 1 + high
		}
		low = high
	}
	return ranks
}
