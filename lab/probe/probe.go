package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"kurabe/lab/dial"
	"kurabe/lab/study"
)

const (
	// sampleEvery: at 10 Hz a wait of a tenth of a second is seen, and 32 sessions cost
	// one query of well below a millisecond. What it did cost is in probe_s.
	sampleEvery = 100 * time.Millisecond
	// processesEvery is how often /proc is read between cuts, for the sake of sessions
	// that end: a read is some twenty microseconds a file, three files a process.
	processesEvery = 10 // samples
	// askTime bounds one question, which takes a millisecond: beyond it the server is gone.
	askTime = 10 * time.Second
	// eventsMax bounds what is kept between two calls of Events.
	eventsMax = 10000
	// notesMax bounds the remarks; each is given once.
	notesMax = 20
)

// Options say what is watched.
type Options struct {
	// Server is the database server itself, whatever stands before it.
	Server dial.Server
	// PIDs are further processes whose cost counts, as of a pooler that the lab started.
	// The server's own are found by its socket when it runs on this machine.
	PIDs []int
}

// Kinds of events, as in result.Event.
const (
	KindCheckpoint = "checkpoint"
	KindAutovacuum = "autovacuum"
)

// Event is something that the server did.
type Event struct {
	At   time.Time
	Kind string
	Text string // "begin" or "end" of a checkpoint, the statement of an autovacuum
}

// engine asks a kind of server.
type engine interface {
	// prepare is called once, before the others.
	prepare(ctx context.Context, s *dial.Session) error
	// counters only grow, but with a restart; gauges are what is now.
	counters(ctx context.Context, s *dial.Session) (totals, gauges map[string]float64, err error)
	// sample looks at the sessions of the database.
	sample(ctx context.Context, s *dial.Session) (moment, error)
}

// moment is one look at the sessions.
type moment struct {
	waits  []string        // of each active session
	locked map[string]bool // sessions that wait for a lock of which the engine keeps no count
	// checkpointing is of a server that shows it, as checkpoints says.
	checkpoints, checkpointing bool
	vacuums                    map[string]string // statement by worker
}

// Probe watches one server until Close.
type Probe struct {
	engine engine
	cancel context.CancelFunc
	done   chan struct{}

	mu        sync.Mutex // guards the rest, and is held during a question
	session   *dial.Session
	processes *processes // nil without any to be seen
	group     *group     // of the server's processes, nil likewise
	host      bool       // the server is on this machine
	last      map[string]float64
	spent     time.Duration // by the probe itself, ever
	samples   int
	locks     lockCount
	waits     map[string]int
	edges     edges
	events    []Event
	notes     []string
	failure   error // of the sampler
}

// Start opens a session of its own and begins to watch.
func Start(ctx context.Context, o Options) (*Probe, error) {
	p := &Probe{engine: engineOf(o.Server.Engine), done: make(chan struct{}), waits: map[string]int{}}
	var err error
	if p.session, err = dial.Open(ctx, o.Server); err != nil {
		return nil, err
	}
	if err := p.engine.prepare(ctx, p.session); err != nil {
		p.session.Close()
		return nil, fmt.Errorf("prepare the probe: %w", err)
	}
	p.findProcesses(o)
	if p.last, _, err = p.read(ctx); err != nil {
		p.session.Close()
		return nil, err
	}
	ctx, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go p.run(ctx)
	return p, nil
}

func engineOf(name string) engine {
	if name == study.Postgres {
		return &postgres{}
	}
	return &mysql{}
}

// findProcesses decides what of the machine can be seen. Processes of a pooler alone are
// not counted: their cost would look like the server's.
func (p *Probe) findProcesses(o Options) {
	pids, err := Find(o.Server)
	p.host = err == nil || !errors.Is(err, ErrRemote)
	switch {
	case err == nil:
		p.processes = newProcesses(procRoot, append(pids, o.PIDs...))
		p.findGroup(pids[0])
	case p.host:
		p.note(err.Error() + "; only figures of the whole machine")
	default:
		p.note(err.Error() + "; no figures of its processes")
	}
}

// findGroup takes a group for the server's own where nobody is in it but the server and
// those that started it, which wait.
func (p *Probe) findGroup(pid int) {
	family := p.processes.family()
	var err error
	if p.group, err = findGroup(procRoot, sysRoot, pid, func(pid int) bool { return family[pid] }); err != nil {
		p.note(err.Error())
	}
}

func (p *Probe) note(text string) {
	if len(p.notes) < notesMax && !slices.Contains(p.notes, text) {
		p.notes = append(p.notes, text)
	}
}

// Notes say what cannot be seen here, and why.
func (p *Probe) Notes() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.notes)
}

// Close ends the watching and the session.
func (p *Probe) Close() {
	p.cancel()
	<-p.done
	p.session.Close()
}

// run samples until the end.
func (p *Probe) run(ctx context.Context) {
	defer close(p.done)
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := p.sample(ctx, n%processesEvery == 0); err != nil {
			return
		}
	}
}

// sample looks once. A failure ends the sampling and is told by the next Cut.
func (p *Probe) sample(ctx context.Context, processes bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	begin := time.Now()
	defer func() { p.spent += time.Since(begin) }()
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	m, err := p.engine.sample(ctx, p.session)
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			p.failure = fmt.Errorf("sample the sessions: %w", err)
		}
		return err
	}
	p.samples++
	for _, w := range m.waits {
		p.waits[w]++
	}
	p.locks.see(m.locked)
	for _, e := range p.edges.see(begin, m) {
		if len(p.events) < eventsMax {
			p.events = append(p.events, e)
		}
	}
	if processes && p.processes != nil {
		p.processes.read()
	}
	return nil
}

// Cut ends a phase and begins the next: the totals since the last cut, by the names of
// Names, and how often active sessions were seen waiting for what.
func (p *Probe) Cut() (totals map[string]float64, waits map[string]int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failure != nil {
		return nil, nil, p.failure
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	now, gauges, err := p.read(ctx)
	if err != nil {
		return nil, nil, err
	}
	totals, shrunk := difference(p.last, now)
	for _, name := range shrunk {
		p.note(name + " went back to zero during a phase, so the server was restarted or its statistics reset")
	}
	for name, value := range gauges {
		totals[name] = value
	}
	waits, p.waits, p.last = p.waits, map[string]int{}, now
	return totals, waits, nil
}

// difference leaves out what is not on both sides, and names what shrank.
func difference(before, after map[string]float64) (totals map[string]float64, shrunk []string) {
	totals = map[string]float64{}
	for name, now := range after {
		then, ok := before[name]
		switch {
		case !ok:
		case now < then:
			shrunk = append(shrunk, name)
		default:
			totals[name] = now - then
		}
	}
	slices.Sort(shrunk)
	return totals, shrunk
}

// read gives every counter as it is now.
func (p *Probe) read(ctx context.Context) (totals, gauges map[string]float64, err error) {
	begin := time.Now()
	if totals, gauges, err = p.engine.counters(ctx, p.session); err != nil {
		return nil, nil, fmt.Errorf("read the server's counters: %w", err)
	}
	if p.processes != nil {
		p.readProcesses(totals, gauges)
	}
	if p.group != nil {
		p.readGroup(totals, gauges)
	}
	if p.host {
		p.readHost(totals)
	}
	p.spent += time.Since(begin)
	totals["wait_samples"], totals["probe_s"] = float64(p.samples), p.spent.Seconds()
	// Beside those that the engine counts, of which the samples hold none.
	totals["lock_waits"] += float64(p.locks.begun)
	totals["lock_wait_s"] += float64(p.locks.seen) * sampleEvery.Seconds()
	return totals, gauges, nil
}

// readProcesses adds what the machine says of the server's processes.
func (p *Probe) readProcesses(totals, gauges map[string]float64) {
	u := p.processes.read()
	totals["cpu_s"], totals["context_switches"] = u.cpuSeconds, u.switches
	gauges["processes_end"] = float64(u.processes)
	if u.bytes {
		totals["read_bytes"], totals["write_bytes"] = u.readBytes, u.writeBytes
	} else {
		p.note("the kernel shows the bytes of the server's processes to their own user and root only; no read_bytes and write_bytes")
	}
}

// readGroup adds operations on the disk, and what the server may use.
func (p *Probe) readGroup(totals, gauges map[string]float64) {
	if o, err := p.group.operations(); err != nil {
		p.note(err.Error())
	} else {
		totals["read_ops"], totals["write_ops"] = o.read, o.write
	}
	l := p.group.limits()
	for name, limit := range map[string]float64{
		"cpu_limit_end": l.cpus, "memory_limit_end": l.memoryBytes, "read_ops_limit_end": l.readOps, "write_ops_limit_end": l.writeOps,
	} {
		if limit > 0 {
			gauges[name] = limit
		}
	}
}

// readHost adds what the machine says of itself.
func (p *Probe) readHost(totals map[string]float64) {
	m, err := readMachine(procRoot)
	if err != nil {
		p.note("no figures of the machine: " + err.Error())
		return
	}
	totals["host_cpu_s"], totals["host_steal_s"], totals["host_context_switches"] = m.busy, m.steal, m.switches
}

// Events are those since the last call.
func (p *Probe) Events() []Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	events := p.events
	p.events = nil
	return events
}
