package hostlink

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/connlimit"
	"kurabe/internal/hostread"
	"kurabe/internal/logkey"
	"kurabe/internal/pki"
	"kurabe/internal/store"
)

// ServerConfig is what a Server needs.
type ServerConfig struct {
	Link Link // what joined hosts reach, each its own part of it
	KV   store.KV
	View *store.View
	// Identity is the server's own certificate, Roots the authority.
	Identity tls.Certificate
	Roots    *x509.CertPool
	// Admit lets a host in, or says why not; Renew signs a new certificate for one that is.
	Admit func(context.Context, JoinRequest) (JoinAnswer, error)
	Renew func(ctx context.Context, host kurabe.HostID, csrPEM []byte) ([]byte, error)
	// Enter makes a server of the service of a host that was let in as one.
	Enter func(ctx context.Context, host kurabe.HostID) (EnterAnswer, error)
	// Elected says whether this server is the elected planner at this moment, and by which
	// election; nil: it always is. Only that one hears hosts and judges whether they are
	// there, since two could judge differently.
	Elected func() (Election, bool)
	Log     *slog.Logger
	Now     func() time.Time
}

// Election is one that this server has won.
type Election struct {
	Since time.Time // by the server's clock, not before it was won
	Fence store.Fence
}

// Server is the service's end of the links of joined hosts.
type Server struct {
	ServerConfig
	started time.Time
	http    *http.Server
	others  *http.Client // to other servers

	mu      sync.Mutex // guards the rest
	heard   map[kurabe.HostID]*hearing
	streams map[kurabe.HostID][]*stream // the newest is the last
	asked   map[string]asked            // questions under way, by ID
	told    map[refusal]struct{}        // refusals that the log has
	spoke   map[refusal]time.Time       // when hosts last spoke of what they have
	budgets map[kurabe.HostID]budget
}

// stream is what a host reads, of assignments with questions or of questions alone.
type stream struct {
	questions chan hostread.Frame
	ended     chan struct{}
}

// NewServer returns a Server; Serve runs it.
func NewServer(c ServerConfig) *Server {
	s := &Server{ServerConfig: c, started: c.Now(), heard: map[kurabe.HostID]*hearing{}, streams: map[kurabe.HostID][]*stream{}, asked: map[string]asked{}, told: map[refusal]struct{}{}, spoke: map[refusal]time.Time{}, budgets: map[kurabe.HostID]budget{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+joinPath, s.join)
	mux.Handle("POST "+enterPath, s.server(s.enter))
	mux.Handle("POST "+askPath, s.server(s.relay))
	mux.Handle("GET "+assignmentsPath, s.known(s.assignments))
	mux.Handle("GET "+questionsPath, s.letIn(pki.PartyAgent, s.admitted, s.questions))
	mux.Handle("POST "+callPath+callAnswer, s.letIn(pki.PartyAgent, s.admitted, s.answered))
	mux.Handle("POST "+callPath+"{call}", s.known(s.call))
	s.others = clientFor(func(chain []*x509.Certificate) error {
		_, err := pki.VerifyParty(chain, c.Roots, pki.PartyServer)
		return err
	}, func() *tls.Certificate { return &s.Identity }, nil)
	s.http = &http.Server{
		Handler: mux, ReadHeaderTimeout: callTime, ReadTimeout: callTime, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		ConnState: connlimit.New(connectionsMax).Watch, ConnContext: noticeLoss,
		ErrorLog: slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug),
		// One stream and a few calls for each host need no second version of HTTP.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{c.Identity},
			// Asked for, and looked at by known: a host that joins has none.
			ClientAuth: tls.RequestClientCert,
		},
	}
	return s
}

// Serve answers until ctx ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() { s.http.Close() })
	defer stop()
	if err := s.http.ServeTLS(l, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return ctx.Err()
}

// known lets hosts in that were admitted and not removed since.
func (s *Server) known(next func(http.ResponseWriter, *http.Request, kurabe.HostID)) http.Handler {
	return s.letIn(pki.PartyAgent, s.admitted, func(w http.ResponseWriter, r *http.Request, id kurabe.HostID) {
		e, elected := s.elected()
		if !elected {
			s.misdirect(w)
			return
		}
		if err := s.take(r.Context(), e, id, lifeIn(r), r.RemoteAddr); err != nil {
			refuse(w, statusOf(err), err)
			return
		}
		next(w, r, id)
	})
}

// letIn asks for a certificate of the kind, and whether its bearer still belongs here.
func (s *Server) letIn(kind pki.PartyKind, belongs func(kurabe.HostID) bool, next func(http.ResponseWriter, *http.Request, kurabe.HostID)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		party, err := pki.VerifyParty(r.TLS.PeerCertificates, s.Roots, kind)
		if err != nil {
			refuse(w, http.StatusForbidden, err)
			return
		}
		id := kurabe.HostID(party.ID)
		if !belongs(id) {
			refuse(w, http.StatusForbidden, fmt.Errorf("host %s was removed or has never joined; join again with a new token and an empty data folder", id))
			return
		}
		next(w, r, id)
	})
}

// admitted says whether a host was let in, and not removed or given up since.
func (s *Server) admitted(id kurabe.HostID) bool {
	_, ok := s.View.JoinedHost(id)
	return ok && !s.View.Gone(id)
}

func (s *Server) join(w http.ResponseWriter, r *http.Request) {
	var q JoinRequest
	if !read(w, r, joinBytesMax, &q) {
		return
	}
	a, err := s.Admit(r.Context(), q)
	if err != nil {
		s.Log.Warn("host rejected", logkey.Host, fmt.Sprintf("%.64s", q.Host), "from", r.RemoteAddr, logkey.Error, err)
		refuse(w, statusOf(err), err)
		return
	}
	s.Log.Info("host let in", logkey.Host, string(q.Host), "from", r.RemoteAddr)
	answer(w, a)
}

// assignments streams what a host must run, and questions.
func (s *Server) assignments(w http.ResponseWriter, r *http.Request, host kurabe.HostID) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	s.stream(w, r, host, s.Link.Assignments(ctx, host), func() bool {
		e, elected := s.elected()
		return elected && s.has(e, host, lifeIn(r))
	})
}

// questions streams questions alone, to a host whose assignments come from another server.
func (s *Server) questions(w http.ResponseWriter, r *http.Request, host kurabe.HostID) {
	right := func() bool {
		said, _ := s.View.Presence(host)
		return said.MachineRun == lifeIn(r)
	}
	if !right() {
		refuse(w, http.StatusServiceUnavailable, errors.New("the host's identity is in use by another machine, or not confirmed yet"))
		return
	}
	s.stream(w, r, host, nil, right)
}

// stream streams updates and questions until right says no more that the host is to get them.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, host kurabe.HostID, updates <-chan Update, right func() bool) {
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Time{}); err != nil {
		refuse(w, http.StatusInternalServerError, err)
		return
	}
	st := &stream{make(chan hostread.Frame, questionsMax), make(chan struct{})}
	defer s.open(host, st)()
	out := json.NewEncoder(w)
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	var told []string
	for {
		var m message
		select {
		case u, ok := <-updates:
			if !ok {
				return
			}
			m.Update = &u
		case q := <-st.questions:
			m.Question = &q
		case <-ticker.C:
		case <-r.Context().Done():
			return
		}
		if !right() || !s.admitted(host) {
			return // deposed, or the host was removed, or is another machine now
		}
		if servers := s.servers(); !slices.Equal(servers, told) {
			m.Servers, told = servers, servers
		}
		// A host that does not read is as good as cut off.
		if control.SetWriteDeadline(time.Now().Add(silenceMax)) != nil || out.Encode(m) != nil || control.Flush() != nil {
			return
		}
	}
}

// open makes a stream the one that questions go out with, until it is closed.
func (s *Server) open(host kurabe.HostID, st *stream) (closed func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams[host] = append(s.streams[host], st)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		close(st.ended)
		s.streams[host] = slices.DeleteFunc(s.streams[host], func(one *stream) bool { return one == st })
	}
}

func read(w http.ResponseWriter, r *http.Request, bytesMax int64, into any) bool {
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, bytesMax)).Decode(into); err != nil && !errors.Is(err, io.EOF) {
		refuse(w, http.StatusBadRequest, fmt.Errorf("read the request: %w", err))
		return false
	}
	return true
}

func refuse(w http.ResponseWriter, status int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(errorAnswer{Error: err.Error()})
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// statusOf is 403 for what no repetition helps with, and 409 for what helps when a host is lost.
func statusOf(err error) int {
	if errors.Is(err, ErrDouble) {
		return http.StatusConflict
	}
	var e *kurabe.Error
	if errors.As(err, &e) && e.Code != kurabe.CodeUnavailable && e.Code != kurabe.CodeThrottled || errors.Is(err, ErrRefused) {
		return http.StatusForbidden
	}
	return http.StatusServiceUnavailable
}
