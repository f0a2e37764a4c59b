package fake

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kurabe"
	"kurabe/internal/engine"
)

// Engine implements engine.Engine in memory.
type Engine struct {
	// Look, when set, is asked at each Observe; an error is its failure.
	Look func(ctx context.Context, id kurabe.InstanceID) error
	// Before, when set, is asked before each step; an error is the step's failure.
	Before func(ctx context.Context, a kurabe.Assignment, step engine.StepName) error
	// Host is where it is, for what its network may cut off. Boottime is the clock of leases
	// there, nil: of any time. Full, when set, says whether nothing can be written there.
	Host     kurabe.HostID
	Boottime func() int64
	Full     func() bool

	net       *network // its lock guards everything below
	instances map[kurabe.InstanceID]*instance
}

// instance is the scripted world of one server.
type instance struct {
	member
	o      engine.Observation
	starts int
	ended  chan struct{}
	logged bool // the server writes a log, and needs it to recover
	torn   bool // one died with its log, and none has come up with it since
}

// New returns an engine without instances, in a network of its own.
func New() *Engine {
	e := &Engine{instances: map[kurabe.InstanceID]*instance{}, net: &network{}}
	e.net.engines = []*Engine{e}
	return e
}

// ErrCut is a failure that a test asked for.
var ErrCut = errors.New("cut off by the test")

func (e *Engine) get(id kurabe.InstanceID) *instance {
	i, ok := e.instances[id]
	if !ok {
		i = &instance{member: member{id: id, on: e}}
		e.instances[id] = i
	}
	return i
}

// Observe implements engine.Engine.
func (e *Engine) Observe(ctx context.Context, a kurabe.Assignment) (engine.Observation, error) {
	if e.Look != nil {
		if err := e.Look(ctx, a.Instance); err != nil {
			return engine.Observation{}, err
		}
	}
	e.net.Lock()
	defer e.net.Unlock()
	i := e.get(a.Instance)
	o := i.o
	wanted := render(a, o.Applied).text
	o.SettingsCurrent = i.disk.text == wanted
	o.LimitsMissing = !o.LimitsGroup
	o.Fingerprint = wanted
	if o.Running {
		ended := i.ended
		o.Wait = func(ctx context.Context) error {
			select {
			case <-ended:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return o, nil
}

// Steps implements engine.Engine.
func (e *Engine) Steps(a kurabe.Assignment, o engine.Observation) []engine.Step {
	var steps []engine.Step
	for _, name := range engine.Next(a, o) {
		steps = append(steps, engine.Step{Name: name, Do: func(ctx context.Context) error { return e.do(ctx, a, name) }})
	}
	return steps
}

// do changes the world as the step of a real engine would.
func (e *Engine) do(ctx context.Context, a kurabe.Assignment, step engine.StepName) error {
	if e.Before != nil {
		if err := e.Before(ctx, a, step); err != nil {
			return err
		}
	}
	if err := e.answers(ctx, a.Instance, step); err != nil {
		return err
	}
	if step == engine.StepAwaitOldLease {
		timer := time.NewTimer(kurabe.OldLeaseWait)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
		}
	}
	e.net.Lock()
	defer e.net.Unlock()
	i := e.get(a.Instance)
	o := &i.o
	switch step {
	case engine.StepMakeHome:
		o.Home, o.Remains = true, true
	case engine.StepCopyTemplate, engine.StepRestoreSnapshot:
		o.Data = true
	case engine.StepIssueCertificate:
		o.CertificateCurrent, o.CertificateExpires = true, time.Unix(4e9, 0).UTC()
	case engine.StepWriteSettings:
		i.disk = render(a, o.Applied)
	case engine.StepSetLimits:
		o.LimitsGroup, o.Applied.Limits, o.Applied.LimitsSet = true, a.Limits, true
	case engine.StepNoteCrash:
		o.Record = false
		o.Applied.Crashes++
	case engine.StepEndSurvivors:
		o.Survivors = false
	case engine.StepStart:
		return e.start(i, a)
	case engine.StepWaitReady:
		return e.ready(i, a)
	case engine.StepEnsureMaster:
		o.Applied.Master, o.Applied.PasswordSeq, o.Applied.PasswordNoted = true, a.Password.Seq, true
	case engine.StepSetPassword:
		o.Applied.PasswordSeq, o.Applied.PasswordNoted = a.Password.Seq, true
	case engine.StepReload:
		i.reload(a)
	case engine.StepProbe:
		o.Applied.Probed = true
	case engine.StepStop, engine.StepKill:
		// One that died first ended as a kill does, whoever waited for it.
		i.torn = i.torn && !(o.Running && i.logged)
		e.stop(i, a, step == engine.StepStop)
	case engine.StepRemoveLimits:
		o.LimitsGroup = false
	case engine.StepRemoveHome:
		i.o, i.member, i.torn = engine.Observation{}, member{id: a.Instance, on: e}, false
	default:
		return e.doInGroup(i, a, step)
	}
	return nil
}

// full says whether nothing can be written on the host's disk.
func (e *Engine) full() bool { return e.Full != nil && e.Full() }

func (e *Engine) start(i *instance, a kurabe.Assignment) error {
	if e.full() {
		return &engine.StartError{Kind: kurabe.FailureStorage, Message: "no space left on device"}
	}
	if err := i.begin(a); err != nil {
		return err
	}
	i.starts++
	i.ended = make(chan struct{})
	i.logged = (a.Log || a.Binlog) && a.Engine.RestartsForLog()
	i.o.Record, i.o.Running, i.o.Boot, i.o.PID = true, true, a.Boot, 1000+i.starts
	i.o.Process = fmt.Sprintf("%s@%d", a.Instance, i.starts)
	i.began(a)
	return nil
}

func (e *Engine) end(i *instance) {
	if i.o.Running {
		close(i.ended)
	}
	i.thaw()
	i.o.Running, i.o.Process, i.o.PID = false, "", 0
}

// ready has the server recover. One that has to do so with its log and was started
// without it refuses, and ends.
func (e *Engine) ready(i *instance, a kurabe.Assignment) error {
	if i.torn && !i.logged && a.Engine.RestartsForLog() {
		e.end(i)
		i.o.Record = false
		return &engine.StartError{Kind: kurabe.FailureOther, Message: "the server died while it wrote a log, and must start with one once more"}
	}
	i.torn, i.o.Applied.Ready = false, true
	return nil
}

// Crash ends a server as kill -9 would.
func (e *Engine) Crash(id kurabe.InstanceID) {
	e.net.Lock()
	defer e.net.Unlock()
	e.crash(e.get(id))
}

func (e *Engine) crash(i *instance) {
	i.torn = i.torn || i.o.Running && i.logged
	e.end(i)
}

// Fence ends a server at once, as if it had died.
func (e *Engine) Fence(_ context.Context, a kurabe.Assignment) error {
	if e.Has(Outlives) {
		return fmt.Errorf("%s is not ended", a.Instance)
	}
	e.Crash(a.Instance)
	return nil
}

// Stop ends a server cleanly, outside any assignment.
func (e *Engine) Stop(_ context.Context, a kurabe.Assignment) error {
	e.net.Lock()
	defer e.net.Unlock()
	e.stop(e.get(a.Instance), a, true)
	return nil
}

// KillOne counts a session that the kernel killed for the memory limit; the
// server goes on.
func (e *Engine) KillOne(id kurabe.InstanceID) {
	e.net.Lock()
	defer e.net.Unlock()
	e.get(id).o.OOMKills++
}

// OOMKills counts what KillOne killed.
func (e *Engine) OOMKills(id kurabe.InstanceID) (int64, bool) {
	e.net.Lock()
	defer e.net.Unlock()
	return e.get(id).o.OOMKills, true
}

// Running says whether an instance's server runs.
func (e *Engine) Running(id kurabe.InstanceID) bool {
	e.net.Lock()
	defer e.net.Unlock()
	return e.get(id).o.Running
}

// Starts counts how often an instance's server was started.
func (e *Engine) Starts(id kurabe.InstanceID) int {
	e.net.Lock()
	defer e.net.Unlock()
	return e.get(id).starts
}

// Left says whether anything of an instance is left.
func (e *Engine) Left(id kurabe.InstanceID) bool {
	e.net.Lock()
	defer e.net.Unlock()
	i, ok := e.instances[id]
	return ok && (i.o.Home || i.o.Running || i.o.LimitsGroup)
}

// What an Engine does not do; beds that need it have engines of their own.

// Tidy has no logs to tidy.
func (e *Engine) Tidy(context.Context, kurabe.Assignment, func(string) bool) error { return nil }

// Reserve knows none.
func (e *Engine) Reserve() (engine.Reserve, error) { return nil, errNone }

// CountWaits does not tell.
func (e *Engine) CountWaits(kurabe.Assignment) (engine.WaitCounter, error) { return nil, nil }

// Feed brings no copy.
func (e *Engine) Feed(context.Context, kurabe.Assignment, engine.Ask) error { return errNone }

// OpenLog knows no log.
func (e *Engine) OpenLog(context.Context, kurabe.Assignment) (engine.Log, error) { return nil, errNone }

// OpenLogHolder holds none.
func (e *Engine) OpenLogHolder(context.Context, kurabe.Assignment) (engine.LogHolder, error) {
	return nil, errNone
}

// DropLog has none to drop.
func (e *Engine) DropLog(context.Context, kurabe.Assignment) error { return nil }

var errNone = errors.New("fake: there is none")
