package hostlink

import (
	"context"
	crand "crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"kurabe"
	"kurabe/internal/hostread"
)

// Questions go out with a stream that the host reads, and answers come back as calls, so a host
// needs no port of its own. A host has such a stream to each server that it reaches.

const (
	// questionsMax bounds the questions that wait for one stream.
	questionsMax = 16
	// askedMax bounds the questions of this server that are under way.
	askedMax = 1024
	// straightPause is how soon a server is tried again that takes no stream of questions, such
	// as one of an older version. Meanwhile it asks by way of the planner's.
	straightPause = 3 * time.Second
)

var errNotHeard = errors.New("the host is not heard")

// asked is a question under way.
type asked struct {
	host kurabe.HostID
	back chan hostread.Frame
}

// Carry brings a question to a host and its answer back: straight where the host has a stream to
// this server, else by way of the planner's, to which every host has one.
func (s *Server) Carry(ctx context.Context, q hostread.Frame) (hostread.Frame, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	a, err := s.ask(ctx, q)
	planner := s.planner()
	if _, elected := s.elected(); elected || planner == "" || !errors.Is(err, errNotHeard) {
		return a, err
	}
	return a, post(ctx, s.others, planner, askPath, "", q, &a)
}

// relay answers Carry of another server.
func (s *Server) relay(w http.ResponseWriter, r *http.Request, _ kurabe.HostID) {
	var q hostread.Frame
	if !read(w, r, bodyBytesMax, &q) {
		return
	}
	a, err := s.ask(r.Context(), q)
	if err != nil {
		refuse(w, statusOf(err), err)
		return
	}
	answer(w, a)
}

// ask asks a host that has a stream here. When the asker goes away, the host hears of it.
func (s *Server) ask(ctx context.Context, q hostread.Frame) (hostread.Frame, error) {
	q.ID = crand.Text()
	back := make(chan hostread.Frame, 1)
	st, err := s.note(q, back)
	if err != nil {
		return hostread.Frame{}, err
	}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.asked, q.ID)
	}()
	notHeard := fmt.Errorf("%w: %s", errNotHeard, q.Host)
	select {
	case st.questions <- q:
	case <-st.ended:
		return hostread.Frame{}, notHeard
	case <-ctx.Done():
		return hostread.Frame{}, ctx.Err()
	}
	select {
	case a := <-back:
		return a, nil
	case <-st.ended:
		err = notHeard
	case <-ctx.Done():
		err = fmt.Errorf("host %s did not answer: %w", q.Host, ctx.Err())
		select {
		case st.questions <- hostread.Frame{ID: q.ID, Cancel: true}:
		default: // the host's own bound ends it
		}
	}
	select {
	case a := <-back: // it had come before
		return a, nil
	default:
		return hostread.Frame{}, err
	}
}

// note notes a question and returns the stream that it is to go out with.
func (s *Server) note(q hostread.Frame, back chan hostread.Frame) (*stream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	streams := s.streams[q.Host]
	if len(streams) == 0 {
		return nil, fmt.Errorf("%w: %s", errNotHeard, q.Host)
	}
	if len(s.asked) >= askedMax {
		return nil, kurabe.Errorf(kurabe.CodeThrottled, "%d requests to hosts are pending; try again", askedMax)
	}
	s.asked[q.ID] = asked{q.Host, back}
	return streams[len(streams)-1], nil
}

// answered takes an answer in; one that nobody waits for any more is dropped.
func (s *Server) answered(w http.ResponseWriter, r *http.Request, host kurabe.HostID) {
	var a hostread.Frame
	if !read(w, r, bodyBytesMax, &a) {
		return
	}
	s.mu.Lock()
	if q, ok := s.asked[a.ID]; ok && q.host == host {
		delete(s.asked, a.ID)
		q.back <- a
	}
	s.mu.Unlock()
	answer(w, struct{}{})
}

// noticeLoss has a connection end when the other end acknowledges nothing for silenceMax: a
// stream would else go on for minutes after its host's network is gone, with questions in it.
func noticeLoss(ctx context.Context, c net.Conn) context.Context {
	if tcp, ok := c.(*tls.Conn).NetConn().(*net.TCPConn); ok {
		if raw, err := tcp.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) {
				_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silenceMax.Milliseconds()))
			})
		}
	}
	return ctx
}

// answerOthers answers the questions of all servers but the one whose assignments are read,
// until ctx ends.
func (r *Remote) answerOthers(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	seen := map[string]bool{}
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for {
		for _, at := range r.selector.others() {
			if !seen[at] {
				seen[at] = true
				all.Go(func() { r.answerOther(ctx, at) })
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// answerOther answers the questions of one of them, whenever it is one.
func (r *Remote) answerOther(ctx context.Context, at string) {
	for ctx.Err() == nil {
		if slices.Contains(r.selector.others(), at) {
			_, _ = r.read(ctx, at, questionsPath, func(context.Context, message) error { return nil })
		}
		select {
		case <-time.After(straightPause/2 + rand.N(straightPause)):
		case <-ctx.Done():
		}
	}
}
