package series

import (
	"slices"
)

// Join adds the results of another host to those of one, which it may change.
func Join(results, more []Result) []Result {
	for _, m := range more {
		n := slices.IndexFunc(results, func(r Result) bool { return slices.Equal(r.Labels, m.Labels) })
		if n < 0 {
			results = append(results, m)
			continue
		}
		results[n].Buckets = joinBuckets(results[n].Buckets, m.Buckets)
	}
	return results
}

// joinBuckets merges buckets that are sorted by time.
func joinBuckets(a, b []Bucket) []Bucket {
	out := make([]Bucket, 0, max(len(a), len(b)))
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0].Start < b[0].Start:
			out, a = append(out, a[0]), a[1:]
		case a[0].Start > b[0].Start:
			out, b = append(out, b[0]), b[1:]
		default:
			one := a[0]
			one.Add(b[0])
			out, a, b = append(out, one), a[1:], b[1:]
		}
	}
	return append(append(out, a...), b...)
}
