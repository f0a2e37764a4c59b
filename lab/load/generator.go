package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kurabe/lab/dial"
	"kurabe/lab/result"
	"kurabe/lab/study"
)

// Bounds of a workload. Ten thousand clients are more than either engine serves well
// without a pool, and a million arrivals a second more than one process can send.
const (
	clientsMax  = 10_000
	rateMax     = 1e6
	requestsMax = 100_000_000
	scaleMax    = 100_000
	rowsMax     = 2_000_000_000 // of an integer key
)

// queueMax is how long an arrival may wait for a free client. One that would wait longer
// is skipped and counted: without a bound, what gathered in an outage would arrive after
// it as a burst that no user made.
const queueMax = time.Second

// Options of one run.
type Options struct {
	// Warm is the least time before the measuring, WarmMax the most. After Warm the
	// warm-up ends when Settled says so of the transactions per second so far; without
	// Settled it ends at Warm.
	Warm, WarmMax time.Duration
	Settled       func(perSecond []float64) bool
	Measure       time.Duration // of the phase measure, or idle
	After         time.Duration // of the phase after
	Seed          uint64
	// Enter is called as each phase begins, with its name, and with "" when the last has
	// ended. The load goes on meanwhile.
	Enter func(phase string) error
	// Change is made in the phase during; nil without one. ChangeMax bounds it.
	Change    func(ctx context.Context) error
	ChangeMax time.Duration
	// DuringMin is how long the phase during lasts at the least: a change that takes no
	// time would leave nothing to be compared.
	DuringMin time.Duration
}

func (o Options) enter(phase string) error {
	if o.Enter == nil {
		return nil
	}
	if err := o.Enter(phase); err != nil {
		return fmt.Errorf("enter phase %q: %w", phase, err)
	}
	return nil
}

// Outcome is what was measured. StartMs of a phase counts from the first phase's begin.
type Outcome struct {
	Phases    []result.Phase
	Unsettled bool // the warm-up ended because of WarmMax
	ChangeMs  float64
}

// Generator makes one workload.
type Generator interface {
	// Check says what of the workload the generator cannot do with the engine.
	Check(engine string) error
	// Prepare makes the data. Data that is there in the right size is left, but for the
	// setup of a script, which runs as it is.
	Prepare(ctx context.Context, s dial.Server) error
	// Run loads the server through all phases. When it returns, with an error or
	// without, all sessions and processes have ended.
	Run(ctx context.Context, s dial.Server, o Options) (*Outcome, error)
}

// Check says what is wrong with a workload, its script above all, with the line. No server
// is asked, so whoever reads a study can ask it before anything is made.
func Check(w study.Workload) error {
	g, err := New(w)
	if err != nil {
		return err
	}
	if p, ok := g.(*pgbench); ok {
		if err := p.parse(); err != nil {
			return fmt.Errorf("workload %q: %w", w.Name, err)
		}
	}
	return nil
}

// New gives the generator of a workload.
func New(w study.Workload) (Generator, error) {
	g, err := newGenerator(w)
	if err != nil {
		return nil, fmt.Errorf("workload %q: %w", w.Name, err)
	}
	return g, nil
}

func newGenerator(w study.Workload) (Generator, error) {
	if err := checkWorkload(&w); err != nil {
		return nil, err
	}
	switch w.Generator {
	case study.GeneratorOwn:
		return newOwn(w)
	case study.GeneratorPgbench:
		return newPgbench(w)
	case study.GeneratorSysbench:
		return newSysbench(w)
	}
	return nil, fmt.Errorf("no such generator: %q", w.Generator)
}

// Kits are the names of the kits of a generator.
func Kits(generator string) []string {
	switch generator {
	case study.GeneratorOwn:
		var names []string
		for _, k := range kits {
			names = append(names, k.name)
		}
		return names
	case study.GeneratorPgbench:
		return slices.Clone(pgbenchKits)
	case study.GeneratorSysbench:
		return slices.Clone(sysbenchKits)
	}
	return nil
}

// checkWorkload bounds what is common to all generators, and fills in defaults.
func checkWorkload(w *study.Workload) error {
	if w.Scale == 0 {
		w.Scale = 1
	}
	switch {
	case w.Clients < 1 || w.Clients > clientsMax:
		return fmt.Errorf("clients: %d is not between 1 and %d", w.Clients, clientsMax)
	case w.Scale < 1 || w.Scale > scaleMax:
		return fmt.Errorf("scale: %d is not between 1 and %d", w.Scale, scaleMax)
	case w.Rows < 0 || w.Rows > rowsMax:
		return fmt.Errorf("rows: %d is not between 0 and %d", w.Rows, rowsMax)
	case w.Kit != "" && w.Script != "":
		return errors.New("it has a kit and a script; one of them is the load")
	case w.Kit == "" && w.Script == "":
		return errors.New("it has no kit and no script")
	}
	return checkMode(w)
}

func checkMode(w *study.Workload) error {
	switch w.Mode {
	case study.ModeOpen:
		if !(w.Rate > 0 && w.Rate <= rateMax) {
			return fmt.Errorf("rate: %g is not between 0 and %g a second", w.Rate, float64(rateMax))
		}
		if w.Arrival == "" {
			w.Arrival = study.ArrivalPoisson
		}
		if w.Arrival != study.ArrivalPoisson && w.Arrival != study.ArrivalConstant {
			return fmt.Errorf("arrival: %q is none of poisson, constant", w.Arrival)
		}
	case study.ModeClosed:
	case study.ModeSeries:
		if w.Requests < 1 || w.Requests > requestsMax {
			return fmt.Errorf("requests: %d is not between 1 and %d", w.Requests, requestsMax)
		}
		if w.Clients != 1 {
			return fmt.Errorf("clients: a series has one, not %d", w.Clients)
		}
	default:
		return fmt.Errorf("mode: %q is none of open, closed, series", w.Mode)
	}
	return nil
}

// checkKit says that the name is none of the generator's.
func checkKit(generator, name string) error {
	all := Kits(generator)
	if slices.Contains(all, name) {
		return nil
	}
	return fmt.Errorf("kit: %q is none of %s's: %s", name, generator, strings.Join(all, ", "))
}

// checkEngine says that the workload is not for the engine.
func checkEngine(w study.Workload, engine string, can ...string) error {
	if !slices.Contains(can, engine) {
		return fmt.Errorf("workload %q: %s cannot load %s", w.Name, w.Generator, engine)
	}
	if len(w.Engines) > 0 && !slices.Contains(w.Engines, engine) {
		return fmt.Errorf("workload %q is for %s, not for %s", w.Name, strings.Join(w.Engines, ", "), engine)
	}
	return nil
}

// setup is the SQL that makes the data of a script.
func setup(w study.Workload, engine string) []string {
	return append(slices.Clone(w.Setup[""]), w.Setup[engine]...)
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
