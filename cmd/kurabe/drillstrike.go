package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"

	"kurabe"
	"kurabe/internal/control"
	"kurabe/internal/drill"
	"kurabe/internal/hostlink"
	"kurabe/internal/logkey"
)

// The questions to a host of a drill that runs on another one. A permit for what lasts has a
// kind of its own: a host that does not know it would take it for one to kill.
const (
	askDrillPermit        = "drill-permit"
	askDrillPermitLasting = "drill-permit-lasting"
	askDrillStrike        = "drill-strike"
	askDrillHold          = "drill-hold"
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

// hostDrills answers these on their host.
type hostDrills struct {
	permits *drill.Permits
	log     *slog.Logger
}

// drillGuard runs drill.GuardMain. This link, not our path: after an upgrade on disk we are
// still the old program.
var drillGuard = []string{"/proc/self/exe", "drill-guard"}

func newHostDrills(host kurabe.HostID, base string, log *slog.Logger) hostDrills {
	return hostDrills{drill.NewPermits(host, placeIn(base, "instances"), drillGuard), log}
}

func (h hostDrills) answer(ctx context.Context, kind string, body json.RawMessage) (any, error) {
	var q drillQuestion
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, err
	}
	switch kind {
	case askDrillPermit, askDrillPermitLasting:
		return h.permits.Give(q.Server, q.PID, q.Fault)
	case askDrillHold:
		return h.permits.Hold(ctx, q.Server, q.Key, q.End)
	}
	err := h.permits.Use(q.Server, q.Key, q.Fault)
	if err == nil {
		h.log.Info("server struck for a drill: "+q.Fault.Done(), logkey.Instance, q.Server)
	}
	return struct{}{}, err
}

// strikes answers /kurabe/drill/permit, /kurabe/drill/strike and /kurabe/drill/hold.
type strikes struct {
	control *control.Control
	self    kurabe.HostID
	own     hostDrills
	links   *hostlink.Server // nil: there are no other hosts
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
	kind := askDrillPermit
	if fault.Lasts() {
		kind = askDrillPermitLasting
	}
	var p drill.Permit
	return &p, s.ask(r.Context(), m.Host, kind, drillQuestion{Server: server, PID: pid, Fault: fault}, &p)
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
	var done struct{}
	return done, s.ask(r.Context(), m.Host, askDrillStrike, drillQuestion{Server: server, Key: key, Fault: fault}, &done)
}

// hold has what strike began go on or end. The server may have ended by now, or be none of the
// instance any more: its host is named, and knows by the key what is meant.
func (s strikes) hold(r *http.Request) (any, error) {
	query := r.URL.Query()
	key, err := keyOf(r)
	if err != nil {
		return nil, err
	}
	var held drill.Held
	q := drillQuestion{Server: kurabe.InstanceID(query.Get("server")), Key: key, End: query.Get("end") == "true"}
	return &held, s.ask(r.Context(), kurabe.HostID(query.Get("host")), askDrillHold, q, &held)
}

// ask asks the host that has the server.
func (s strikes) ask(ctx context.Context, host kurabe.HostID, kind string, q drillQuestion, answer any) error {
	if host == s.self {
		body, err := json.Marshal(q)
		if err != nil {
			return err
		}
		said, err := s.own.answer(ctx, kind, body)
		if err != nil {
			return err
		}
		if body, err = json.Marshal(said); err != nil {
			return err
		}
		return json.Unmarshal(body, answer)
	}
	if s.links == nil {
		return kurabe.Errorf(kurabe.CodeUnavailable, "it is on host %s, and the service was started without --host-listen", host)
	}
	err := s.links.Ask(ctx, host, kind, q, answer)
	if code := kurabe.CodeOf(err); err == nil || code != kurabe.CodeInternal {
		return err
	}
	why := "nothing was done"
	switch kind {
	case askDrillStrike:
		why = fmt.Sprintf("whether the server was %s is not known; later than %v from now on it is not", q.Fault.Done(), drill.PermitTime)
	case askDrillHold:
		why = fmt.Sprintf("what was done lasts for %v at most without a word that it hears", drill.HoldTime)
	}
	return &kurabe.Error{Code: kurabe.CodeUnavailable, Message: fmt.Sprintf("host %s does not answer, or cannot: %s (%v)", host, why, err), Err: err}
}
