package load

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"kurabe/lab/dial"
	"kurabe/lab/load/script"
	"kurabe/lab/study"
)

// progOwn is how a result names the own generator.
const progOwn = "kurabe"

// own is the generator that this package is.
type own struct {
	study.Workload
	kit     *kit // nil for a script
	scripts script.Set
	drain   time.Duration // drainMax
}

func newOwn(w study.Workload) (*own, error) {
	g := &own{Workload: w, drain: drainMax}
	switch w.Protocol {
	case "":
		g.Protocol = protocolSimple
	case protocolSimple, protocolExtended, protocolPrepared:
	default:
		return nil, fmt.Errorf("protocol: %q is none of simple, extended, prepared", w.Protocol)
	}
	if w.Kit == "" {
		return g, g.scripts.Add(w.Script, 1)
	}
	if err := checkKit(w.Generator, w.Kit); err != nil {
		return nil, err
	}
	for n := range kits {
		if kits[n].name == w.Kit {
			g.kit = &kits[n]
		}
	}
	g.Connect = g.Connect || g.kit.connect
	return g, g.kit.fill(g)
}

func (g *own) Check(engine string) error {
	return checkEngine(g.Workload, engine, study.Postgres, study.MariaDB, study.MySQL)
}

func (g *own) Prepare(ctx context.Context, s dial.Server) error {
	if g.kit != nil {
		if err := ensureTables(ctx, s, g.kit.tables(g.Workload)); err != nil {
			return fmt.Errorf("data of %s: %w", g.Kit, err)
		}
		return nil
	}
	session, err := dial.Open(ctx, s)
	if err != nil {
		return err
	}
	defer session.Close()
	if err := session.Exec(ctx, setup(g.Workload, s.Engine)...); err != nil {
		return fmt.Errorf("setup of %q: %w", g.Name, err)
	}
	return nil
}

func (g *own) Run(ctx context.Context, s dial.Server, o Options) (*Outcome, error) {
	if err := g.Check(s.Engine); err != nil {
		return nil, err
	}
	if o.Change != nil && g.Mode == study.ModeSeries {
		return nil, errors.New("a series has no phases for a change")
	}
	if g.patient() {
		// A loop keeps its place also while it waits: the probes want the others.
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + g.threads()))
	}
	open, err := newOpener(s, g.Protocol, g.scripts.Statements, g.patient())
	if err != nil {
		return nil, err
	}
	return g.load(ctx, open, o)
}

// patientMax is the highest rate, transactions a second, that is sent from a loop.
const patientMax = 5000

// patient says whether latency is what is asked for, and not how much can be had: a
// schedule of a moderate rate, or one request after the other. Loops read answers sooner
// there. What can be had is a matter of goroutines in the runtime's poller, of which the
// capacity is measured.
func (g *own) patient() bool {
	return g.Mode == study.ModeSeries || g.Mode == study.ModeOpen && g.Rate <= patientMax
}

// threads is how many loops share the clients: as many as there are processors, as the lab
// has pgbench do it. With one, pgbench too took longer for a transaction of TPC-B-like, by 8 % in four
// runs of each.
func (g *own) threads() int { return min(g.Clients, runtime.NumCPU()) }

// labels are the statements as the result names them. A new connection for each
// transaction comes before the first.
func (g *own) labels() []string {
	if g.Connect {
		return append([]string{script.Label(0, "CONNECT")}, g.scripts.Labels()...)
	}
	return g.scripts.Labels()
}
