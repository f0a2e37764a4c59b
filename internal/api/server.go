package api

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"kurabe/internal/aws/sigv4"
	"kurabe/internal/must"
)

// Config is what a Server is made of.
type Config struct {
	Credentials sigv4.Lookup
	Region      string // of the resources
	ScopeRegion string // that credentials must be scoped to; "" accepts any
	Account     string
	Services    []Service
	Log         *slog.Logger
	Now         func() time.Time // time.Now unless set

	// Ready answers /healthz: nil when requests can be served. Optional.
	Ready func(context.Context) error
}

// Server is the http.Handler of the port.
type Server struct {
	config   Config
	verifier sigv4.Verifier
	services
	mux *http.ServeMux
}

// New returns a ready Server.
func New(c Config) *Server {
	must.True(c.Credentials != nil && c.Region != "" && c.Account != "" && c.Log != nil, "a server's Config is complete")
	if c.Now == nil {
		c.Now = time.Now
	}
	s := &Server{
		config:   c,
		verifier: sigv4.Verifier{Lookup: c.Credentials, Region: c.ScopeRegion, Now: c.Now},
		services: newServices(slices.Clone(c.Services)),
		mux:      http.NewServeMux(),
	}
	s.mux.HandleFunc("GET /healthz", s.healthz)
	s.mux.HandleFunc("/", s.serveAPI)
	return s
}

// Handle mounts what is not an AWS API, such as /ca.pem or /console/. It takes
// ServeMux's patterns and must not be called once the server serves.
func (s *Server) Handle(pattern string, h http.Handler) { s.mux.Handle(pattern, h) }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// healthz tells a balancer or a script whether to send requests here. It says no
// more than that, for anybody may ask.
func (s *Server) healthz(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if s.config.Ready != nil && s.config.Ready(r.Context()) != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "not ready\n")
		return
	}
	_, _ = io.WriteString(w, "ok\n")
}
