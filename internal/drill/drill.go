package drill

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/pulse"
)

// Drill is one rehearsal.
type Drill struct {
	Instance, Engine string
	Order            Order
	Service          Service
	Login            pulse.Login
	// Reads is the login at the reader endpoint of a DB cluster, without an address of what has
	// none. Its password is Login's.
	Reads pulse.Login
	// Data is the data folder of the service, Host what this machine is called in it.
	Data string
	Host kurabe.HostID
	// Guard is the command line that runs GuardMain; its arguments are added.
	Guard []string
	// Timeout bounds the wait until the instance is whole again.
	Timeout time.Duration
	// Say tells a person what is being done.
	Say func(string)
}

const (
	// warmRows are acknowledged before the fault and again before all is said to be well.
	warmRows = 100
	warmTime = 30 * time.Second
	// calmTime is how long an instance has to lack nothing before it counts as whole: a
	// fault that the service is about to notice is none yet.
	calmTime = time.Second
	// endTime bounds reading the rows and clearing up, together; it is long enough for a
	// failover that an interrupted drill left under way.
	endTime = 30 * time.Second
	endPoll = 100 * time.Millisecond
	// furnishTime bounds making the table.
	furnishTime = 10 * time.Second
)

// Refusal is why an instance is in no state for a drill.
type Refusal struct{ Instance, Lacks string }

func (r *Refusal) Error() string {
	return fmt.Sprintf("InvalidDBInstanceState: %s is not fully redundant, so the drill does not begin: %s", r.Instance, r.Lacks)
}

// Check refuses what cannot be rehearsed now. It changes nothing.
func (d *Drill) Check(ctx context.Context) (Look, error) {
	if err := d.Order.fits(); err != nil {
		return Look{}, err
	}
	l, err := d.Service.Look(ctx)
	if err != nil {
		return l, err
	}
	if lacks := l.Lacks(); lacks != "" {
		return l, &Refusal{d.Instance, lacks}
	}
	list, err := d.targets(ctx, l)
	if err == nil && d.Order.Action == Cut {
		_, _, err = d.cutOff(ctx, l, list[0].Server)
	}
	return l, err
}

// targets are the servers that the order is about, each of which may be struck now.
func (d *Drill) targets(ctx context.Context, l Look) (list []target, err error) {
	sides, err := d.Order.sides(l, d.Host)
	if err != nil {
		return nil, err
	}
	for _, s := range sides {
		t, err := d.target(ctx, s)
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	return list, nil
}

func (d *Drill) target(ctx context.Context, s Server) (target, error) {
	switch {
	case s.Host == d.Host:
		return find(d.Data, s)
	case d.Order.Action == Cut:
		return target{Server: s}, nil
	}
	return d.permitted(ctx, s, Fault{Action: d.Order.Action, For: d.Order.For})
}

// permitted is a server of another host, which permits to do something to it.
func (d *Drill) permitted(ctx context.Context, s Server, f Fault) (target, error) {
	p, err := d.Service.Permit(ctx, s, f)
	if err != nil {
		return target{}, fmt.Errorf("%s is on %s: %w", s.ID, s.Host, err)
	}
	return target{Server: s, permit: &p}, nil
}

// run is a drill under way.
type run struct {
	*Drill
	watch  *watch
	pulse  *pulse.Pulse
	reads  *reads // nil of what has no reader endpoint
	began  time.Time
	fault  time.Time // zero until something was done
	before Look
	struck []kurabe.InstanceID
	// killed are the processes that must be gone, and calm is from when on a look counts.
	killed map[victim]bool
	calm   time.Time
	whole  time.Time // when it lacked nothing any more; zero until then
}

// victim is a process that was killed: hosts have pids of their own.
type victim struct {
	server kurabe.InstanceID
	pid    int
}

// Run does it. The report tells what was seen also when something went wrong or ctx ended,
// and is nil only when nothing was begun.
func (d *Drill) Run(ctx context.Context) (*Report, error) {
	engine := dialects[d.Engine]
	// What is begun has to be known, so this is not cut off.
	making, cancel := context.WithTimeout(context.WithoutCancel(ctx), furnishTime)
	removed, err := engine.furnish(making, d.Login)
	cancel()
	if err != nil {
		return nil, err
	}
	r := &run{Drill: d, watch: &watch{service: d.Service}, pulse: pulse.New(d.Login, table), began: time.Now(), killed: map[victim]bool{}}
	if removed {
		r.watch.note(r.began, FromDrill, "dropped the schema %s that a killed drill had left", Schema)
	}
	looking, stop := context.WithCancel(context.WithoutCancel(ctx))
	var looks sync.WaitGroup
	looks.Go(func() { r.watch.run(looking) })
	r.pulse.Start()
	if d.Reads.Address != "" {
		d.Reads.Password = d.Login.Password
		r.reads = newReads(d.Reads, engine.reads)
		looks.Go(func() { r.reads.run(looking) })
	}
	failure := r.rehearse(ctx)
	r.pulse.Stop()
	stop()
	looks.Wait()

	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	report := r.report(ending, ctx.Err() != nil)
	d.Say("clearing up")
	if err := retry(ending, func() error { return engine.clear(ending, d.Login) }); err != nil {
		failure = errors.Join(failure, fmt.Errorf("the schema %s remains; the next drill drops it: %w", Schema, err))
	}
	return report, failure
}

// retry tries until ctx ends: the endpoint may be between two servers.
func retry(ctx context.Context, try func() error) error {
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(endPoll):
		case <-ctx.Done():
			return err
		}
	}
}

// rehearse writes for a moment, does what was ordered and waits until all is well again.
func (r *run) rehearse(ctx context.Context) error {
	r.Say("writing rows")
	warm, cancel := context.WithTimeout(ctx, warmTime)
	defer cancel()
	r.watch.note(time.Now(), FromDrill, "writes a row every %v through %s", pulse.Every, r.Login.Host())
	before, err := r.watch.wait(warm, func(l Look, _ time.Time) string {
		if n := r.pulse.Acked(); n < warmRows {
			_, newest := r.pulse.Errors(r.began)
			return fmt.Sprintf("%d rows were acknowledged, the newest error: %v", n, newest)
		}
		if r.reads != nil && r.reads.answered() == 0 {
			return "no server answers at the reader endpoint"
		}
		return l.Lacks()
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return &Refusal{r.Instance, err.Error()}
	}
	targets, err := r.targets(ctx, before)
	if err != nil {
		return err
	}
	r.before = before
	if err := r.strike(ctx, targets); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return r.recover(ctx)
}

// recover waits until the instance has lacked nothing for calmTime, with rows acknowledged.
func (r *run) recover(ctx context.Context) error {
	r.Say("waiting for full redundancy")
	ctx, cancel := context.WithTimeoutCause(ctx, r.Timeout, fmt.Errorf("not within %v", r.Timeout))
	defer cancel()
	acked := 0
	_, err := r.watch.wait(ctx, func(l Look, asked time.Time) string {
		lacks := r.lacks(l, asked)
		if lacks != "" {
			r.whole = time.Time{}
			return lacks
		}
		if r.whole.IsZero() {
			r.whole, acked = time.Now(), r.pulse.Acked()
		}
		if time.Since(r.whole) < calmTime || r.pulse.Acked() < acked+warmRows/2 {
			return "fully redundant again; waiting for acknowledged rows"
		}
		return ""
	})
	if err != nil && ctx.Err() != nil && !r.whole.IsZero() {
		r.whole = time.Time{}
	}
	if err != nil {
		return fmt.Errorf("%s is not fully redundant again: %w", r.Instance, err)
	}
	return nil
}

// lacks says what is missing after the fault.
func (r *run) lacks(l Look, asked time.Time) string {
	if asked.Before(r.calm) {
		return "the service has not answered since then"
	}
	if r.Order.Action == Failover && l.Epoch == r.before.Epoch {
		return "no failover was begun"
	}
	for _, s := range l.Servers {
		if r.killed[victim{s.ID, s.PID}] {
			return fmt.Sprintf("the death of %s was not seen", name(s.ID))
		}
	}
	return l.Lacks()
}
