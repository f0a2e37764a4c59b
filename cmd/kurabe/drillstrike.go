package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strconv"

	"kurabe"
	"kurabe/internal/control"
	"kurabe/internal/drill"
	"kurabe/internal/hostlink"
	"kurabe/internal/logkey"
)

// The questions to a host of a drill that runs on another one.
const (
	askDrillPermit = "drill-permit"
	askDrillStrike = "drill-strike"
)

// drillQuestion asks for a permit to kill a server that runs as a process, or shows one.
type drillQuestion struct {
	Server kurabe.InstanceID
	PID    int    `json:",omitempty"`
	Key    string `json:",omitempty"`
}

// hostDrills answers these on their host.
type hostDrills struct {
	permits *drill.Permits
	log     *slog.Logger
}

func newHostDrills(host kurabe.HostID, base string, log *slog.Logger) hostDrills {
	return hostDrills{drill.NewPermits(host, filepath.Join(base, "instances")), log}
}

func (h hostDrills) answer(kind string, body json.RawMessage) (any, error) {
	var q drillQuestion
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, err
	}
	if kind == askDrillPermit {
		return h.permits.Give(q.Server, q.PID)
	}
	err := h.permits.Use(q.Server, q.Key)
	if err == nil {
		h.log.Info("server killed for a drill", logkey.Instance, q.Server)
	}
	return struct{}{}, err
}

// strikes answers /kurabe/drill/permit and /kurabe/drill/strike.
type strikes struct {
	control *control.Control
	self    kurabe.HostID
	own     hostDrills
	links   *hostlink.Server // nil: there are no other hosts
}

// permit asks for what strike needs; nothing is done.
func (s strikes) permit(r *http.Request) (any, error) {
	query := r.URL.Query()
	server, pid, err := victimOf(r)
	if err != nil {
		return nil, err
	}
	m, err := s.control.DrillTarget(query.Get("name"), server, pid)
	if err != nil {
		return nil, err
	}
	var p drill.Permit
	return &p, s.ask(r.Context(), m.Host, askDrillPermit, drillQuestion{Server: server, PID: pid}, &p)
}

// strike tells users, and has it done.
func (s strikes) strike(r *http.Request) (any, error) {
	query := r.URL.Query()
	server, pid, err := victimOf(r)
	if err != nil {
		return nil, err
	}
	key := query.Get("permit")
	if key == "" {
		return nil, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "a permit is needed: ask for it at /kurabe/drill/permit")
	}
	m, err := s.control.TellDrill(r.Context(), query.Get("name"), server, pid)
	if err != nil {
		return nil, err
	}
	var done struct{}
	return done, s.ask(r.Context(), m.Host, askDrillStrike, drillQuestion{Server: server, Key: key}, &done)
}

// victimOf reads which process of which server is meant.
func victimOf(r *http.Request) (kurabe.InstanceID, int, error) {
	query := r.URL.Query()
	pid, err := strconv.Atoi(query.Get("pid"))
	if err != nil || pid < 1 {
		return "", 0, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "pid %.40q is no number of a process", query.Get("pid"))
	}
	return kurabe.InstanceID(query.Get("server")), pid, nil
}

func (s strikes) ask(ctx context.Context, host kurabe.HostID, kind string, q drillQuestion, answer any) error {
	if host == s.self {
		body, err := json.Marshal(q)
		if err != nil {
			return err
		}
		said, err := s.own.answer(kind, body)
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
	if kind == askDrillStrike {
		why = fmt.Sprintf("whether the server was killed is not known; later than %v from now on it is not", drill.PermitTime)
	}
	return &kurabe.Error{Code: kurabe.CodeUnavailable, Message: fmt.Sprintf("host %s does not answer, or cannot: %s (%v)", host, why, err), Err: err}
}
