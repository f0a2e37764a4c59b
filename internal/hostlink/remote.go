package hostlink

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/hostread"
	"kurabe/internal/logkey"
	"kurabe/internal/pki"
)

// RemoteConfig is what a Remote needs.
type RemoteConfig struct {
	// Server is HOST:PORT of the service's links, Servers are those of all its servers that
	// are known; Learned, if any, is called when they are others.
	Server  string
	Servers []string
	Learned func([]string)
	Roots   *x509.CertPool
	// Life tells this machine, until it is started anew, from every other one that has the
	// same identity. One folder of one machine has one agent at a time.
	Life string
	// Identity gives the host's certificate, which may be renewed.
	Identity func() *tls.Certificate
	// Reads answers the service's questions; nil: there is nothing to ask.
	Reads *hostread.Handlers
	// Dial connects to a server of the service; nil: over TCP.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	Log  *slog.Logger
}

// Remote is a Link to a service on another machine. The host that its methods name is the
// one that the certificate is of; the service refuses any other.
type Remote struct {
	RemoteConfig
	http     *http.Client
	selector *serverSelector

	telling sync.Mutex
	told    string // the trouble that was logged

	mu   sync.Mutex // guards the rest
	life context.Context
	end  context.CancelCauseFunc // ends life
}

// ErrNoLink says that the service is not heard. Calls fail with it at once: whoever calls
// has a database to look after, and must not wait for a network that swallows everything.
var ErrNoLink = errors.New("no link to the service")

// NewRemote returns a Link over the network.
func NewRemote(c RemoteConfig) *Remote {
	if c.Reads == nil {
		c.Reads = hostread.NewHandlers("")
	}
	r := &Remote{RemoteConfig: c, selector: newServerSelector(c)}
	r.life, r.end = context.WithCancelCause(context.Background()) // until it is known better
	r.http = clientFor(func(chain []*x509.Certificate) error {
		_, err := pki.VerifyParty(chain, c.Roots, pki.PartyServer)
		return err
	}, c.Identity, c.Dial)
	return r
}

// clientFor makes a client that checks the server by verify alone: its certificate names
// what it is, not where.
func clientFor(verify func([]*x509.Certificate) error, identity func() *tls.Certificate, dial func(context.Context, string, string) (net.Conn, error)) *http.Client {
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTime}).DialContext
	}
	return &http.Client{Transport: &http.Transport{
		DialContext: dial,
		TLSClientConfig: &tls.Config{
			MinVersion:         tls.VersionTLS13,
			InsecureSkipVerify: true, // VerifyConnection does it, for resumed sessions too
			VerifyConnection:   func(s tls.ConnectionState) error { return verify(s.PeerCertificates) },
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				if c := identity(); c != nil {
					return c, nil
				}
				return &tls.Certificate{}, nil
			},
		},
		TLSHandshakeTimeout: silenceMax, ResponseHeaderTimeout: callTime, IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: questionsMax,
	}}
}

// Assignments implements Link.
func (r *Remote) Assignments(ctx context.Context, host kurabe.HostID) <-chan Update {
	out := make(chan Update)
	go func() {
		defer close(out)
		var straight sync.WaitGroup
		defer straight.Wait()
		straight.Go(func() { r.answerOthers(ctx) })
		pause := retryPauseMin
		for ctx.Err() == nil {
			at := r.selector.now()
			started, err := r.follow(ctx, at, out)
			if ctx.Err() != nil {
				return
			}
			if started || r.selector.hasMany() {
				pause = min(pause, retryPauseOfSeveral)
			}
			if started {
				pause = retryPauseMin
			}
			r.down()
			r.turn(at, err)
			r.tell(host, err)
			select {
			case <-time.After(pause/2 + rand.N(pause)):
			case <-ctx.Done():
			}
			pause = min(2*pause, retryPauseMax)
		}
	}()
	return out
}

// turn chooses the server to speak to after the one at addr has failed.
func (r *Remote) turn(addr string, err error) {
	if m, ok := errors.AsType[*misdirected](err); ok {
		r.selector.learn(m.servers)
		r.selector.redirected(addr, m.planner)
		return
	}
	if errors.Is(err, ErrDouble) {
		return // that is the planner's word, and no other server has another one
	}
	r.selector.missed(addr)
}

// up says that the service is heard, down that it is not: then calls under way end too.
func (r *Remote) up() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.life.Err() != nil {
		r.life, r.end = context.WithCancelCause(context.Background())
	}
}

func (r *Remote) down() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.end(ErrNoLink)
	// A connection of before may be one that swallows everything.
	r.http.CloseIdleConnections()
}

func (r *Remote) linked() context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.life
}

// tell logs a trouble once, and its end.
func (r *Remote) tell(host kurabe.HostID, err error) {
	r.telling.Lock()
	defer r.telling.Unlock()
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text == r.told {
		return
	}
	r.told = text
	if err != nil {
		r.Log.Warn("no link to the service, retrying; databases keep running", logkey.Host, string(host), logkey.Error, err)
	} else {
		r.Log.Info("link to the service", logkey.Host, string(host))
	}
}

// follow delivers the assignments of one stream.
func (r *Remote) follow(ctx context.Context, at string, out chan<- Update) (bool, error) {
	return r.read(ctx, at, assignmentsPath, func(ctx context.Context, m message) error {
		r.up()
		r.tell("", nil)
		r.selector.learn(m.Servers)
		if m.Update != nil && !deliver(ctx, out, *m.Update) {
			return because(ctx, ctx.Err())
		}
		return nil
	})
}

// read reads one stream until it ends, falls silent or take fails. It says whether there was one.
func (r *Remote) read(ctx context.Context, at, path string, take func(context.Context, message) error) (bool, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(r.patience(), func() { cancel(errors.New("the service sends nothing any more")) })
	defer silence.Stop()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+at+path, nil)
	if err != nil {
		return false, err
	}
	q.Header.Set(lifeHeader, r.Life)
	a, err := r.http.Do(q)
	if err != nil {
		return false, because(ctx, err)
	}
	defer a.Body.Close()
	if err := failed(a); err != nil {
		return false, err
	}
	lines := bufio.NewScanner(a.Body)
	lines.Buffer(nil, lineBytesMax)
	for lines.Scan() {
		silence.Reset(r.patience())
		var m message
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return true, fmt.Errorf("read an update: %w", err)
		}
		if m.Question != nil {
			r.Reads.Take(ctx, *m.Question, func(ctx context.Context, a hostread.Frame) {
				_ = post(ctx, r.http, at, callPath+callAnswer, r.Life, a, nil) // the asker's time runs out
			})
		}
		if err := take(ctx, m); err != nil {
			return true, err
		}
	}
	if err := lines.Err(); err != nil {
		return true, because(ctx, err)
	}
	return true, errors.New("the service has ended the stream")
}

// patience is how long the service may be silent.
func (r *Remote) patience() time.Duration {
	if r.selector.hasMany() {
		return quietMax
	}
	return silenceMax
}

// because prefers the reason that a context was ended for.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// failed is the error that an answer tells of.
func failed(a *http.Response) error {
	if a.StatusCode == http.StatusOK {
		return nil
	}
	var e errorAnswer
	if json.NewDecoder(io.LimitReader(a.Body, 64<<10)).Decode(&e) != nil || e.Error == "" {
		e.Error = a.Status
	}
	if a.StatusCode == http.StatusMisdirectedRequest {
		return &misdirected{e.Planner, e.Servers}
	}
	switch a.StatusCode {
	case http.StatusForbidden:
		return fmt.Errorf("%w: %s", ErrRefused, e.Error)
	case http.StatusConflict:
		return fmt.Errorf("%w: %s", ErrDouble, e.Error)
	}
	return errors.New(e.Error)
}

// call does one call within a time. It fails at once while there is no link.
func (r *Remote) call(ctx context.Context, limit time.Duration, name string, body, out any) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	life := r.linked()
	defer context.AfterFunc(life, cancel)()
	if life.Err() != nil {
		return fmt.Errorf("%s: %w", name, ErrNoLink)
	}
	if err := post(ctx, r.http, r.selector.now(), callPath+name, r.Life, body, out); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
