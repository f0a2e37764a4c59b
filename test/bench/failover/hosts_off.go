package failover

import (
	"context"
	"errors"
	"testing"
	"time"
)

// loseHost is a loss of the writer's host, which comes back once the other one serves.
func (h *hostsLab) loseHost(ctx context.Context, p lostPair) (float64, error) {
	host, err := h.bed.host(p.writerZone)
	if err != nil {
		return 0, err
	}
	from := time.Now()
	if err := h.bed.switchOff(ctx, host); err != nil {
		return 0, err
	}
	if err := more(ctx, h.pulse, pulseRows); err != nil {
		return 0, err
	}
	if err := h.bed.switchOn(host); err != nil {
		return 0, err
	}
	return h.swapped(ctx, p, from)
}

// loseStandbyHost is the same of the standby's, until commits do without it.
func (h *hostsLab) loseStandbyHost(ctx context.Context, p lostPair) (float64, error) {
	host, err := h.bed.host(p.standbyZone)
	if err != nil {
		return 0, err
	}
	return h.without(ctx, p, func() error { return h.bed.switchOff(ctx, host) }, func() error { return h.bed.switchOn(host) })
}

// killStandbyHost is a loss of all that runs there, until commits do without it. The host's
// kernel goes on, and says so.
func (h *hostsLab) killStandbyHost(ctx context.Context, p lostPair) (float64, error) {
	host, err := h.bed.host(p.standbyZone)
	if err != nil {
		return 0, err
	}
	return h.without(ctx, p, func() error { return h.bed.killAll(ctx, host) }, func() error { return h.bed.switchOn(host) })
}

// switchOff is a loss of power. Its cable is pulled first: what a kernel says of processes
// that end, for it goes on running here, reaches nobody, as nothing does from a host without
// power. Then its processes end, and its addresses are nowhere.
func (b *hostsBed) switchOff(ctx context.Context, host *benchHost) error {
	return errors.Join(
		b.Try(func(t testing.TB) { host.machine.Plug(t, false) }), b.killAll(ctx, host),
		b.Try(func(t testing.TB) { host.machine.Forget(t) }))
}

// killAll ends all that runs on a host.
func (b *hostsBed) killAll(ctx context.Context, host *benchHost) error {
	return b.Try(func(t testing.TB) {
		host.Kill(t)
		host.EndWardens(t)
		if err := host.EndDatabases(ctx); err != nil {
			t.Fatal(err)
		}
	})
}

func (b *hostsBed) switchOn(host *benchHost) error {
	return b.Try(func(t testing.TB) {
		host.machine.Plug(t, true)
		host.Start(t)
	})
}

// freeze stops the whole host, and has it go on once the other one serves.
func (h *hostsLab) freeze(ctx context.Context, p lostPair) (float64, error) {
	host, err := h.bed.host(p.writerZone)
	if err != nil {
		return 0, err
	}
	from := time.Now()
	thaw, err := h.stop(host)
	if err != nil {
		return 0, err
	}
	if err := more(ctx, h.pulse, pulseRows); err != nil {
		return 0, err
	}
	if err := thaw(); err != nil {
		return 0, err
	}
	return h.swapped(ctx, p, from)
}

// loseStandby stops the whole host of the standby until commits do without it.
func (h *hostsLab) loseStandby(ctx context.Context, p lostPair) (float64, error) {
	host, err := h.bed.host(p.standbyZone)
	if err != nil {
		return 0, err
	}
	var thaw func() error
	return h.without(ctx, p, func() (err error) {
		thaw, err = h.stop(host)
		return err
	}, func() error { return thaw() })
}

// stop freezes a host, as far as it has to do with the instance.
func (h *hostsLab) stop(host *benchHost) (thaw func() error, err error) {
	var goOn func()
	err = h.bed.Try(func(t testing.TB) { goOn = host.FreezeAll(t, h.i.Id) })
	return func() error { return h.bed.Try(func(testing.TB) { goOn() }) }, err
}
