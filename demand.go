package kurabe

import (
	"cmp"
	"math"
	"slices"
	"strconv"
)

// Resource is what a parameter makes a server take.
type Resource string

// What a class and a storage bound.
const (
	Memory Resource = "memory"
	Disk   Resource = "disk"
)

// Demand is what one parameter makes the server take. A value of zero or less has the server
// choose, which it does by what else is set.
type Demand struct {
	Resource Resource `json:"resource"`
	Bytes    int64    `json:"bytes"` // per unit of the value
	// Default is the value, in units, where neither the group nor the service has one.
	Default int64 `json:"default,omitempty"`
	// Times are parameters whose values are added to Plus and multiply it.
	Times []string `json:"times,omitempty"`
	Plus  int64    `json:"plus,omitempty"`
	// Alone is a bound that a session may reach, or one that is reached in time: it has to
	// fit by itself. The others are taken at the start, together.
	Alone bool `json:"alone,omitempty"`
	// If is a switch without which nothing is taken.
	If string `json:"if,omitempty"`
}

// Demands are those of an engine, by parameter.
type Demands map[string]Demand

// Excess is a demand that an instance cannot meet.
type Excess struct {
	Parameter, Value string
	Resource         Resource
	Takes, Bound     int64 // bytes; of all that is taken at the start, unless Alone
	Alone            bool
}

// Sizes are what an instance has. Zero is unknown, and bounds nothing.
type Sizes struct{ MemoryBytes, StorageBytes int64 }

// diskShare is the part of the storage that may be taken for logs and their kin: the rest is for
// data.
const diskShare = 2

func (s Sizes) bound(r Resource) int64 {
	if r == Disk {
		return s.StorageBytes / diskShare
	}
	return s.MemoryBytes
}

// Error is the excess in words for a user, with the way out.
func (e *Excess) Error() string {
	has, way := "the memory of the DB instance class", "choose a larger DB instance class"
	if e.Resource == Disk {
		has, way = "half of the allocated storage", "allocate more storage"
	}
	takes := "would take " + FormatBytes(e.Takes) + " of " + string(e.Resource)
	if !e.Alone {
		takes = "together with what else is taken at the start " + takes
	}
	return "The parameter " + e.Parameter + " with the value " + e.Value + " " + takes + ", and " + has + " is " + FormatBytes(e.Bound) +
		". Set a smaller value, reset the parameter, or " + way
}

// Excess is the first demand of these settings that does not fit, nil when all do. settings hold
// what is not the engine's default; only a parameter that is in chosen is blamed, as nobody can
// change the others.
func (d Demands) Excess(settings map[string]string, chosen func(name string) bool, has Sizes) *Excess {
	sums := map[Resource]int64{}
	blame := map[Resource]*Excess{}
	for _, name := range d.names() {
		demand := d[name]
		takes, bound := d.takes(name, settings), has.bound(demand.Resource)
		if bound <= 0 || takes <= 0 {
			continue
		}
		e := &Excess{Parameter: name, Value: settings[name], Resource: demand.Resource, Takes: takes, Bound: bound, Alone: true}
		theirs := d.chosen(name, chosen)
		if theirs != "" && theirs != name {
			e.Parameter, e.Value = theirs, settings[theirs]
		}
		if theirs != "" && takes > bound {
			return e
		}
		if demand.Alone {
			continue
		}
		e.Alone = false
		sums[demand.Resource] = plus(sums[demand.Resource], takes)
		if b := blame[demand.Resource]; theirs != "" && (b == nil || b.Takes < takes) {
			blame[demand.Resource] = e
		}
	}
	for _, r := range []Resource{Memory, Disk} {
		if e := blame[r]; e != nil && sums[r] > e.Bound {
			e.Takes = sums[r]
			return e
		}
	}
	return nil
}

// chosen is the parameter that a user chose of those that make a demand, "" when none.
func (d Demands) chosen(name string, chosen func(string) bool) string {
	for _, n := range append([]string{name}, d[name].Times...) {
		if chosen(n) {
			return n
		}
	}
	return ""
}

// names are sorted, so that the same settings always give the same answer.
func (d Demands) names() []string {
	names := make([]string, 0, len(d))
	for name := range d {
		names = append(names, name)
	}
	slices.SortFunc(names, cmp.Compare)
	return names
}

func (d Demands) takes(name string, settings map[string]string) int64 {
	demand := d[name]
	if on := settings[demand.If]; demand.If != "" && on != "1" && on != "on" && on != "ON" && on != "true" {
		return 0
	}
	factor := demand.Plus
	for _, other := range demand.Times {
		factor = plus(factor, d.value(other, settings))
	}
	if len(demand.Times) == 0 && demand.Plus == 0 {
		factor = 1
	}
	return times(times(d.value(name, settings), demand.Bytes), factor)
}

// value is that of a parameter in its units, what no number can be the default.
func (d Demands) value(name string, settings map[string]string) int64 {
	text, set := settings[name]
	if !set {
		return d[name].Default
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return max(n, 0)
	}
	if _, err := strconv.ParseUint(text, 10, 64); err == nil {
		return math.MaxInt64
	}
	return d[name].Default
}

func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func times(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}
