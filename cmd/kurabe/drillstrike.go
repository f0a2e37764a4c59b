package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"kurabe"
	"kurabe/internal/control"
	"kurabe/internal/drill"
	"kurabe/internal/hostread"
	"kurabe/internal/logkey"
)

// The questions to a host of a drill that runs on another one. A permit for what lasts has a
// kind of its own: a host that does not know it would take it for one to kill.
var (
	drillPermit        = hostread.Kind[drillQuestion, drill.Permit]{Name: "drill-permit", Class: hostread.Failover}
	drillPermitLasting = hostread.Kind[drillQuestion, drill.Permit]{Name: "drill-permit-lasting", Class: hostread.Failover}
	drillStrike        = hostread.Kind[drillQuestion, struct{}]{Name: "drill-strike", Class: hostread.Failover}
	drillHold          = hostread.Kind[drillQuestion, drill.Held]{Name: "drill-hold", Class: hostread.Failover}
)

// drillQuestion asks for a permit to do something to a server that runs as a process, shows
// one, or has what it began go on or end.
type drillQuestion struct {
	Server kurabe.InstanceID
	PID    int         `json:",omitempty"`
	Key    string      `json:",omitempty"`
	Fault  drill.Fault `json:",omitzero"`
	End    bool        `json:",omitempty"`
}

// drillGuard runs drill.GuardMain. This link, not our path: after an upgrade on disk we are
// still the old program.
var drillGuard = []string{"/proc/self/exe", "drill-guard"}

// handleDrills has a host answer these.
func handleDrills(h *hostread.Handlers, permits *drill.Permits, log *slog.Logger) {
	give := func(_ context.Context, q drillQuestion) (drill.Permit, error) {
		return permits.Give(q.Server, q.PID, q.Fault)
	}
	hostread.Handle(h, drillPermit, give)
	hostread.Handle(h, drillPermitLasting, give)
	hostread.Handle(h, drillStrike, func(_ context.Context, q drillQuestion) (done struct{}, err error) {
		if err = permits.Use(q.Server, q.Key, q.Fault); err == nil {
			log.Info("server struck for a drill: "+q.Fault.Done(), logkey.Instance, q.Server)
		}
		return done, err
	})
	hostread.Handle(h, drillHold, func(ctx context.Context, q drillQuestion) (drill.Held, error) {
		return permits.Hold(ctx, q.Server, q.Key, q.End)
	})
}

// strikes answers /kurabe/drill/permit, /kurabe/drill/strike and /kurabe/drill/hold.
type strikes struct {
	control *control.Control
	hosts   hostread.Hosts
}

// permit asks for what strike needs; nothing is done.
func (s strikes) permit(r *http.Request) (any, error) {
	server, pid, fault, err := victimOf(r)
	if err != nil {
		return nil, err
	}
	m, err := s.control.DrillTarget(r.URL.Query().Get("name"), server, pid)
	if err != nil {
		return nil, err
	}
	kind := drillPermit
	if fault.Lasts() {
		kind = drillPermitLasting
	}
	return askDrill(r.Context(), s.hosts, m.Host, kind, drillQuestion{Server: server, PID: pid, Fault: fault}, "nothing was done")
}

// strike tells users, and has it done.
func (s strikes) strike(r *http.Request) (any, error) {
	server, pid, fault, err := victimOf(r)
	if err != nil {
		return nil, err
	}
	key, err := keyOf(r)
	if err != nil {
		return nil, err
	}
	m, err := s.control.TellDrill(r.Context(), r.URL.Query().Get("name"), server, pid, fault.Done())
	if err != nil {
		return nil, err
	}
	return askDrill(r.Context(), s.hosts, m.Host, drillStrike, drillQuestion{Server: server, Key: key, Fault: fault},
		fmt.Sprintf("whether the server was %s is not known; later than %v from now on it is not", fault.Done(), drill.PermitTime))
}

// hold has what strike began go on or end. The server may have ended by now, or be none of the
// instance any more: its host is named, and knows by the key what is meant.
func (s strikes) hold(r *http.Request) (any, error) {
	query := r.URL.Query()
	key, err := keyOf(r)
	if err != nil {
		return nil, err
	}
	q := drillQuestion{Server: kurabe.InstanceID(query.Get("server")), Key: key, End: query.Get("end") == "true"}
	return askDrill(r.Context(), s.hosts, kurabe.HostID(query.Get("host")), drillHold, q,
		fmt.Sprintf("what was done lasts for %v at most without a word that it hears", drill.HoldTime))
}

// askDrill asks the host that has the server. why says what is known when it does not answer.
func askDrill[A any](ctx context.Context, hosts hostread.Hosts, host kurabe.HostID, k hostread.Kind[drillQuestion, A], q drillQuestion, why string) (A, error) {
	a, err := hostread.Ask(ctx, hosts, host, k, q)
	if cause := errors.Unwrap(err); cause != nil && kurabe.CodeOf(err) == kurabe.CodeUnavailable {
		err = &kurabe.Error{Code: kurabe.CodeUnavailable, Message: fmt.Sprintf("host %s does not answer, or cannot: %s (%v)", host, why, cause), Err: err}
	}
	return a, err
}
