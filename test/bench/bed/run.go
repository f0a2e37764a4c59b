package bed

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Settings are the flags, as they are recorded with the run.
type Settings struct {
	Only    string `json:"only"`
	Quick   bool   `json:"quick"`
	Blocks  int    `json:"blocks"`
	Seconds int    `json:"seconds"`
	Seed    uint64 `json:"seed"`
	AA      bool   `json:"aa"`
	Class   string `json:"class"`
	Sizes   string `json:"sizes"`
	Engine  string `json:"engine,omitempty"`
	Arm     string `json:"arm,omitempty"`
	Rounds  int    `json:"rounds,omitempty"`
	// Instances is how many nobody uses, of each engine.
	Instances int    `json:"instances,omitempty"`
	Peers     string `json:"peers,omitempty"`
	Resume    string `json:"resume,omitempty"`
	// Within is how long new losses of the failovers are begun.
	Within time.Duration `json:"within,omitempty"`
	// Abreast has the peers go through each loss at the same time.
	Abreast bool `json:"abreast,omitempty"`

	Out, Dir, Bin     string `json:"-"`
	Keep, List, Print bool   `json:"-"`
}

// Part is one benchmark, or several that share what they set up.
type Part struct {
	Names []string
	Run   func(context.Context, *Run) error
}

// Run is one run of the program.
type Run struct {
	Settings
	Rng  *rand.Rand
	Out  *Report
	Lab  *Lab // opened by the first part that needs it
	Self string
}

// Asked says whether a benchmark is to run.
func (r *Run) Asked(name string) bool {
	return r.Only == "" || slices.Contains(strings.Split(r.Only, ","), name)
}

// Pick is a size that --quick makes small.
func Pick[T any](r *Run, full, quick T) T {
	if r.Quick {
		return quick
	}
	return full
}

// OneLine is the text of an error without line breaks.
func OneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// NotInstalled gives the row of an engine that the service does not offer.
func (r *Run) NotInstalled(bench, what string) {
	r.Out.Row(Row{Bench: bench, What: what, Value: notInstalled})
}

// Wait waits for a time, or until ctx ends.
func Wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
