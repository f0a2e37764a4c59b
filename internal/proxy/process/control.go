package process

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"kurabe/internal/proxy"
	"kurabe/internal/proxy/pool"
	"kurabe/internal/volume"
)

const (
	// controlTime bounds a request's head, and the calls of a Client.
	controlTime = 5 * time.Second
	// SessionsMax bounds the clients that a Status describes.
	SessionsMax = 500
	// statusBytesMax is room for them.
	statusBytesMax = 4 << 20
)

// Status is what a proxy tells of itself.
type Status struct {
	PID     int        `json:"pid"`
	Began   time.Time  `json:"began"`
	Version string     `json:"config"` // the Sum of the configuration in force
	Route   pool.Route `json:"route"`  // in force
	Stops   bool       `json:"stops,omitempty"`
	// MaxServers is the bound of connections to a server in force.
	MaxServers int              `json:"maxServers"`
	Pool       pool.Stats       `json:"pool"`
	Endpoints  []EndpointStatus `json:"endpoints"`
	Health     []Health         `json:"health,omitempty"`
	Sessions   []proxy.Session  `json:"sessions,omitempty"`
}

// EndpointStatus is what an endpoint has counted.
type EndpointStatus struct {
	Name     string         `json:"name"`
	Reads    bool           `json:"reads,omitempty"`
	Counters proxy.Counters `json:"counters"`
}

// listenControl takes the socket of the folder, which one of an earlier life may have left.
// The lock of the process (daemon.Daemon) keeps a second one away.
func (p *process) listenControl() (net.Listener, error) {
	dir, err := volume.OpenDir(filepath.Join(p.dir, runName))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	// By the descriptor: an address holds 107 bytes of a path.
	path := filepath.Join("/proc/self/fd", strconv.Itoa(int(dir.Fd())), controlName)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	socket, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	socket.(*net.UnixListener).SetUnlinkOnClose(false)
	return socket, nil
}

func (p *process) control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) {
		sessions, _ := strconv.Atoi(r.FormValue("sessions"))
		var s Status
		err := p.inLoop(func() error { s = p.status(min(max(sessions, 0), SessionsMax)); return nil })
		answer(w, s, err)
	})
	mux.HandleFunc("POST /reload", func(w http.ResponseWriter, _ *http.Request) { answer(w, struct{}{}, p.reload()) })
	mux.HandleFunc("POST /stop", func(w http.ResponseWriter, _ *http.Request) {
		p.stop()
		answer(w, struct{}{}, nil)
	})
	return mux
}

func answer(w http.ResponseWriter, v any, err error) {
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// status belongs to the loop's thread.
func (p *process) status(sessions int) Status {
	s := Status{
		PID: os.Getpid(), Began: p.began, Version: p.sum, Route: p.pool.Route(), Stops: p.stops,
		MaxServers: p.config.MaxServers, Pool: p.pool.Stats(), Health: p.opener.told(),
	}
	for _, e := range p.config.Endpoints {
		served := p.serving[e.Address]
		if served == nil {
			continue
		}
		s.Endpoints = append(s.Endpoints, EndpointStatus{e.Name, e.Reads, served.frontend.Count()})
		if room := sessions - len(s.Sessions); room > 0 {
			s.Sessions = append(s.Sessions, served.frontend.Sessions(room)...)
		}
	}
	return s
}
