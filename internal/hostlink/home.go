package hostlink

import (
	"context"
	"sync"

	"kurabe"
)

// Home is the Link of a server's own agent. While the service has this server alone, it is
// inside the process; from when there are several it goes over the network as every other
// host's does, to the elected planner's server, be it this one: so each host is judged by
// the same rule. It goes over once and never back.
type Home struct {
	local Link // nil of a server that was never alone
	far   *Remote

	once sync.Once
	gone chan struct{} // closed when it has gone over
}

// NewHome returns a Link that is local at first; without local it is far at once.
func NewHome(local Link, far *Remote) *Home {
	h := &Home{local: local, far: far, gone: make(chan struct{})}
	if local == nil {
		h.GoFar()
	}
	return h
}

// GoFar goes over to the network.
func (h *Home) GoFar() { h.once.Do(func() { close(h.gone) }) }

// Far closes when the link goes over the network.
func (h *Home) Far() <-chan struct{} { return h.gone }

func (h *Home) link() Link {
	select {
	case <-h.gone:
		return h.far
	default:
		return h.local
	}
}

// Assignments implements Link.
func (h *Home) Assignments(ctx context.Context, host kurabe.HostID) <-chan Update {
	out := make(chan Update)
	go func() {
		defer close(out)
		h.near(ctx, host, out)
		if ctx.Err() != nil {
			return
		}
		for u := range h.far.Assignments(ctx, host) {
			if !deliver(ctx, out, u) {
				return
			}
		}
	}()
	return out
}

// near delivers what the local link does until the link goes over.
func (h *Home) near(ctx context.Context, host kurabe.HostID, out chan<- Update) {
	if h.link() != h.local {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with the loop
		select {
		case <-h.gone:
			cancel()
		case <-ctx.Done():
		}
	}()
	for u := range h.local.Assignments(ctx, host) {
		if !deliver(ctx, out, u) {
			return
		}
	}
}

// PutReport implements Link.
func (h *Home) PutReport(ctx context.Context, r kurabe.Word) error {
	return h.link().PutReport(ctx, r)
}

// DropReport implements Link.
func (h *Home) DropReport(ctx context.Context, host kurabe.HostID, ref kurabe.Ref) error {
	return h.link().DropReport(ctx, host, ref)
}

// PutLogs implements Link.
func (h *Home) PutLogs(ctx context.Context, r kurabe.LogReport) error {
	return h.link().PutLogs(ctx, r)
}

// PutHost implements Link.
func (h *Home) PutHost(ctx context.Context, r kurabe.HostReport) error {
	return h.link().PutHost(ctx, r)
}

// PutCatalog implements Link.
func (h *Home) PutCatalog(ctx context.Context, host kurabe.HostID, c kurabe.Catalog) error {
	return h.link().PutCatalog(ctx, host, c)
}

// Sign implements Link.
func (h *Home) Sign(ctx context.Context, r SignRequest) (Certificate, error) {
	return h.link().Sign(ctx, r)
}

// ProxyUsers implements Link.
func (h *Home) ProxyUsers(ctx context.Context, host kurabe.HostID, id kurabe.ProxyID) ([]ProxyUser, error) {
	return h.link().ProxyUsers(ctx, host, id)
}
