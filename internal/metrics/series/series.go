package series

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Label is one name and value of a series. The label "metric" is the metric's name.
type Label struct{ Name, Value string }

// Labels tell series apart; they are sorted by name, and each name occurs once.
type Labels []Label

// NewLabels returns the labels of names and values in turn. An empty value is no label.
func NewLabels(pairs ...string) Labels {
	l := make(Labels, 0, len(pairs)/2)
	for n := 0; n+1 < len(pairs); n += 2 {
		if pairs[n+1] != "" {
			l = append(l, Label{pairs[n], pairs[n+1]})
		}
	}
	slices.SortFunc(l, func(a, b Label) int { return cmp.Compare(a.Name, b.Name) })
	return l
}

// Get returns the value of a label, "" of one that is absent.
func (l Labels) Get(name string) string {
	for _, one := range l {
		if one.Name == name {
			return one.Value
		}
	}
	return ""
}

// key is a text that no other labels have.
func (l Labels) key() string {
	var b strings.Builder
	for _, one := range l {
		b.WriteString(one.Name)
		b.WriteByte(0)
		b.WriteString(one.Value)
		b.WriteByte(0)
	}
	return b.String()
}

func (l Labels) equal(o Labels) bool {
	// As a rule the same array comes each second.
	return len(l) == len(o) && (len(l) == 0 || &l[0] == &o[0] || slices.Equal(l, o))
}

// Sample is one measured value of a series.
type Sample struct {
	Labels Labels
	Value  float64
}

// Match keeps the series whose label has one of the values; the value "" is that of a series
// without the label.
type Match struct {
	Label  string
	Values []string
}

// Query asks for the samples of all series that match, from From on and before To, in buckets.
type Query struct {
	Match    []Match
	From, To time.Time
	// Period is the length of a bucket, whole seconds. A bucket begins at a multiple of it
	// since the epoch, moved by Offset; the first one may begin before From and then has only later samples.
	Period time.Duration
	// Offset moves the begins of buckets by whole seconds from the multiples of Period.
	Offset time.Duration `json:",omitempty"`
	// By are the labels by which the results are kept apart. Without any, all series that
	// match are one result.
	By []string
	// Sums has no extremes read, which are half of what is kept of minutes: Min and Max of the
	// buckets mean nothing.
	Sums bool `json:",omitempty"`
	// Distinct has the buckets hold their values one by one, for percentiles.
	Distinct bool
}

// Result is the buckets of the series that have the same values of Query.By, by time. A period
// without samples has no bucket.
type Result struct {
	Labels  Labels
	Buckets []Bucket
}

// Bucket sums up the samples of a period.
type Bucket struct {
	Start                int64 // Unix time, seconds
	Count, Sum, Min, Max float64
	// Values are the samples with how often each was measured, of a distinct query. A minute
	// whose samples are no more has its minimum, its maximum, and the average of the others.
	Values []Weighted `json:",omitempty"`
}

// Weighted is a value that was measured Count times.
type Weighted struct{ Value, Count float64 }

// Add adds the samples of another bucket of the same period.
func (b *Bucket) Add(c Bucket) {
	switch {
	case c.Count == 0:
		return
	case b.Count == 0:
		b.Min, b.Max = c.Min, c.Max
	}
	b.Count, b.Sum = b.Count+c.Count, b.Sum+c.Sum
	b.Min, b.Max = min(b.Min, c.Min), max(b.Max, c.Max)
	if len(c.Values) > 0 {
		b.Values = append(b.Values, c.Values...)
	}
}
