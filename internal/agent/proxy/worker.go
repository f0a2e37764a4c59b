package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"kurabe"
	"kurabe/internal/agent/unit"
	"kurabe/internal/faultpoint"
	"kurabe/internal/logkey"
	"kurabe/internal/proxy/pool"
	"kurabe/internal/proxy/process"
	"kurabe/internal/volume"
)

// lookEvery is how often a proxy is asked how it is.
const lookEvery = time.Second

// stepTime bounds a pass: certificates and passwords come over the network.
const stepTime = 30 * time.Second

// worker drives one proxy.
type worker struct {
	set *Set
	unit.Unit[kurabe.ProxyID, kurabe.ProxyAssignment, kurabe.ProxyReport]
	dir    string
	client *process.Client

	// What follows belongs to the unit's goroutine. It is what the files hold, as far as this
	// life of the agent knows: nil before it has looked.
	config *process.Config
	route  *pool.Route
	held   kurabe.Generation // whose addresses are held
	status *process.Status   // of the newest look, nil when that failed
	sampler
}

func (s *Set) newWorker(id kurabe.ProxyID) *worker {
	w := &worker{set: s, dir: filepath.Join(s.Dir, string(id))}
	w.client = process.NewClient(w.dir)
	w.Unit = unit.New[kurabe.ProxyID, kurabe.ProxyAssignment, kurabe.ProxyReport](w, s.Host, id, id.Ref(), logkey.Proxy)
	return w
}

// Save implements unit.Kind.
func (w *worker) Save(a kurabe.ProxyAssignment) error {
	data, err := json.Marshal(a)
	if err == nil {
		err = w.makeFolder()
	}
	if err == nil {
		err = volume.WriteSpared(filepath.Join(w.dir, assignmentName), data, 0o600)
	}
	return err
}

// makeFolder makes the proxy's folder, through which its user passes.
func (w *worker) makeFolder() error {
	mode := os.FileMode(0o700)
	if os.Getuid() == 0 {
		mode = 0o711
	}
	if err := volume.EnsureDir(w.set.Dir, mode, -1, -1); err != nil {
		return err
	}
	return volume.EnsureDir(w.dir, mode, -1, -1)
}

// Forget implements unit.Kind.
func (w *worker) Forget() error {
	if err := volume.RemoveTree(w.set.Dir, w.dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Obeys, Retires, End and Unknown implement unit.Kind.
func (w *worker) Obeys(kurabe.ProxyAssignment)                          {}
func (w *worker) Retires()                                              { w.CutStep(unit.ErrCut) }
func (w *worker) End()                                                  {}
func (w *worker) Unknown(context.Context, kurabe.ProxyAssignment, bool) {}

// SameNews implements unit.Kind.
func (w *worker) SameNews(a, b kurabe.ProxyReport) bool {
	b.Failure = unit.AsBefore(a.Failure, b.Failure)
	return reflect.DeepEqual(a, b)
}

// Pass implements unit.Kind.
func (w *worker) Pass(ctx context.Context, a kurabe.ProxyAssignment) time.Duration {
	limited, end, err := w.Cuttable(ctx, a)
	if err != nil {
		return 0 // there is a newer one
	}
	defer end()
	limited, cancel := context.WithTimeout(limited, stepTime)
	defer cancel()
	if w.Rest() <= 0 {
		w.Failure = w.attempt(limited, a)
	}
	if ctx.Err() != nil || context.Cause(limited) == unit.ErrCut {
		return 0
	}
	report := kurabe.ProxyReport{Host: w.set.Host.ID, Proxy: w.ID, Generation: a.Generation, Failure: w.Failure}
	if a.Absent {
		report.Absent = w.Failure == nil
		w.Tell(ctx, report)
		return w.RetryReport(w.set.Host.Look)
	}
	if w.status != nil {
		s := *w.status
		report.Done = report.Failure == nil && w.inForce(s)
		report.PID, report.StartedAt, report.Targets = s.PID, s.Began, targets(a, s)
		w.sample(a, s)
	}
	w.Tell(ctx, report)
	return w.RetryReport(lookEvery)
}

// attempt makes the proxy what its assignment says and looks at it. It returns why that is not
// so, nil when it is.
func (w *worker) attempt(ctx context.Context, a kurabe.ProxyAssignment) *kurabe.Failure {
	steps := []step{{"route", w.lead}, {"address", w.hold}, {"configuration", w.configure}, {"start", w.start}, {"look", w.look}}
	if a.Absent {
		steps = []step{{"remove", w.remove}}
	}
	for _, s := range steps {
		if err := s.do(ctx, a); err != nil {
			if cause := context.Cause(ctx); cause != nil && cause != context.DeadlineExceeded {
				return w.Failure // a newer assignment, or the end of the agent
			}
			w.Log.Warn("proxy not as assigned, retrying", "step", s.name, logkey.Error, err)
			w.RestFor(unit.Backoff(w.Fails(kurabe.FailureOther, s.name, err.Error())))
			w.status = nil
			return w.Failure
		}
	}
	return nil
}

// step is a part of making the proxy what its assignment says. It may be repeated.
type step struct {
	name string
	do   func(context.Context, kurabe.ProxyAssignment) error
}

// sample keeps what the proxy has counted.
func (w *worker) sample(a kurabe.ProxyAssignment, s process.Status) {
	if w.set.Series == nil {
		return
	}
	now := w.set.Host.Now()
	if err := w.set.Series.Append(now, w.samples(a, s, now)); err != nil {
		w.once.Warn(w.Log, "metrics of the proxy not kept", err)
	}
}

// look asks the process how it is, and has it read its files where it serves by others.
func (w *worker) look(ctx context.Context, _ kurabe.ProxyAssignment) error {
	w.status = nil
	status, err := w.client.Status(ctx, 0)
	if err == nil && !w.inForce(status) {
		faultpoint.Reach("before", "proxy-reload")
		if err = w.client.Reload(ctx); err == nil {
			status, err = w.client.Status(ctx, 0)
		}
	}
	if err == nil {
		w.status = &status
	}
	return err
}

// inForce says whether a process serves by the files.
func (w *worker) inForce(s process.Status) bool {
	if !s.Route.Equal(*w.route) {
		return false
	}
	sum, err := w.config.Sum()
	return err == nil && sum == s.Version
}

// targets tells the health of each server of the route.
func targets(a kurabe.ProxyAssignment, s process.Status) []kurabe.ProxyTargetHealth {
	var all []kurabe.ProxyTargetHealth
	for _, server := range a.Servers {
		t := kurabe.ProxyTargetHealth{Server: server.ID, Reads: server.Reads, State: kurabe.TargetRegistering}
		for _, h := range s.Health {
			if h.Address.String() == server.Address {
				t.State, t.Reason, t.Description = h.State, h.Reason, h.Description
			}
		}
		all = append(all, t)
	}
	return all
}

// lead writes the route and has the process follow it at once.
func (w *worker) lead(ctx context.Context, a kurabe.ProxyAssignment) error {
	want, err := routeOf(a.Route)
	if err != nil {
		return err
	}
	if w.route == nil {
		if have, err := process.ReadRoute(w.dir); err == nil {
			w.route = &have
		}
	}
	if w.route != nil && w.route.Equal(want) {
		return nil
	}
	owner, err := w.prepare()
	if err != nil {
		return err
	}
	faultpoint.Reach("before", "proxy-route")
	if err := process.WriteRoute(w.dir, want, owner); err != nil {
		return err
	}
	w.route = &want
	faultpoint.Reach("after", "proxy-route")
	_ = w.client.Reload(ctx) // of a process that is not there, look finds out
	return nil
}

// hold has the addresses of the endpoints here, again after each failure.
func (w *worker) hold(_ context.Context, a kurabe.ProxyAssignment) error {
	if w.status != nil && w.held == a.Generation {
		return nil
	}
	err := w.set.hold(a)
	if err == nil {
		w.held = a.Generation
	}
	return err
}

func routeOf(r kurabe.ProxyRoute) (pool.Route, error) {
	to := pool.Route{Epoch: r.Epoch}
	var err error
	if r.Writer != "" {
		to.Writer, err = netip.ParseAddrPort(r.Writer)
	}
	for _, text := range r.Readers {
		at, parseErr := netip.ParseAddrPort(text)
		err = errors.Join(err, parseErr)
		to.Readers = append(to.Readers, at)
	}
	return to, err
}
