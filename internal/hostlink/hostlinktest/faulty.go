package hostlinktest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/hostlink"
)

// ErrInjected is the failure that Faulty makes up.
var ErrInjected = errors.New("injected failure")

// Faults says how often, from 0 to 1, each thing goes wrong.
type Faults struct {
	// DropRequest fails a call before it happened, DropAnswer after.
	DropRequest, DropAnswer float64
	// Duplicate repeats a call or an update.
	Duplicate float64
	// Cut breaks a watch of assignments before an update, which is lost; the
	// next one is full.
	Cut float64
	// Delay holds back calls and updates, each for up to DelayMax.
	Delay    float64
	DelayMax time.Duration
}

// Faulty is a hostlink.Link that fails as networks do.
type Faulty struct {
	link   hostlink.Link
	faults Faults

	mu   sync.Mutex // guards rand and down
	rand *rand.Rand
	down bool
}

// NewFaulty wraps a link; the seed makes a run repeatable.
func NewFaulty(link hostlink.Link, faults Faults, seed uint64) *Faulty {
	return &Faulty{link: link, faults: faults, rand: rand.New(rand.NewPCG(seed, seed))}
}

// downPause is how often a watch is tried while the host is cut off.
const downPause = 100 * time.Millisecond

// SetDown cuts the host off, or joins it again: while down every call fails
// and no update arrives.
func (f *Faulty) SetDown(down bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = down
}

// Assignments implements hostlink.Link.
func (f *Faulty) Assignments(ctx context.Context, host kurabe.HostID) <-chan hostlink.Update {
	out := make(chan hostlink.Update)
	go func() {
		defer close(out)
		for ctx.Err() == nil {
			f.watch(ctx, host, out)
			pause := time.Millisecond
			if f.isDown() {
				pause = downPause
			}
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
		}
	}()
	return out
}

// watch forwards one watch until it is cut.
func (f *Faulty) watch(ctx context.Context, host kurabe.HostID, out chan<- hostlink.Update) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for u := range f.link.Assignments(ctx, host) {
		if f.isDown() || f.happens(f.faults.Cut) {
			return
		}
		f.hold(ctx)
		if !deliver(ctx, out, u) {
			return
		}
		if f.happens(f.faults.Duplicate) && !deliver(ctx, out, u) {
			return
		}
	}
}

// PutReport implements hostlink.Link.
func (f *Faulty) PutReport(ctx context.Context, r kurabe.Word) error {
	return f.call(ctx, func() error { return f.link.PutReport(ctx, r) })
}

// DropReport implements hostlink.Link.
func (f *Faulty) DropReport(ctx context.Context, host kurabe.HostID, ref kurabe.Ref) error {
	return f.call(ctx, func() error { return f.link.DropReport(ctx, host, ref) })
}

// PutLogs implements hostlink.Link.
func (f *Faulty) PutLogs(ctx context.Context, r kurabe.LogReport) error {
	return f.call(ctx, func() error { return f.link.PutLogs(ctx, r) })
}

// PutHost implements hostlink.Link.
func (f *Faulty) PutHost(ctx context.Context, h kurabe.HostReport) error {
	return f.call(ctx, func() error { return f.link.PutHost(ctx, h) })
}

// PutCatalog implements hostlink.Link.
func (f *Faulty) PutCatalog(ctx context.Context, host kurabe.HostID, c kurabe.Catalog) error {
	return f.call(ctx, func() error { return f.link.PutCatalog(ctx, host, c) })
}

// Sign implements hostlink.Link.
func (f *Faulty) Sign(ctx context.Context, r hostlink.SignRequest) (hostlink.Certificate, error) {
	var cert hostlink.Certificate
	err := f.call(ctx, func() (err error) {
		cert, err = f.link.Sign(ctx, r)
		return err
	})
	if err != nil {
		return hostlink.Certificate{}, err
	}
	return cert, nil
}

// ProxyUsers implements hostlink.Link.
func (f *Faulty) ProxyUsers(ctx context.Context, host kurabe.HostID, id kurabe.ProxyID) (users []hostlink.ProxyUser, err error) {
	return users, f.call(ctx, func() (err error) {
		users, err = f.link.ProxyUsers(ctx, host, id)
		return err
	})
}

func (f *Faulty) call(ctx context.Context, do func() error) error {
	f.hold(ctx)
	if f.isDown() || f.happens(f.faults.DropRequest) {
		return ErrInjected
	}
	err := do()
	if err == nil && f.happens(f.faults.Duplicate) {
		err = do()
	}
	if err == nil && f.happens(f.faults.DropAnswer) {
		return ErrInjected
	}
	return err
}

// hold waits, sometimes.
func (f *Faulty) hold(ctx context.Context) {
	if f.faults.DelayMax <= 0 || !f.happens(f.faults.Delay) {
		return
	}
	f.mu.Lock()
	d := time.Duration(f.rand.Int64N(int64(f.faults.DelayMax)))
	f.mu.Unlock()
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func (f *Faulty) happens(p float64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rand.Float64() < p
}

func (f *Faulty) isDown() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.down
}

func deliver(ctx context.Context, out chan<- hostlink.Update, u hostlink.Update) bool {
	select {
	case out <- u:
		return true
	case <-ctx.Done():
		return false
	}
}
