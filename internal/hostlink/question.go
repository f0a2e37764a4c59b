package hostlink

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"

	"kurabe"
)

// Question is what a server asks a host beside the ring: for bytes that are the host's
// alone and belong into no record, such as a piece of a log file. Nothing that a host is to be
// is ordered so; a drill's strike, which a host must forget, is asked for (decision 51).
// It goes out with the stream of assignments and comes back as a call, so a host needs no
// port of its own.
type Question struct {
	ID   string
	Kind string
	Body json.RawMessage
}

// Answer is what a host says.
type Answer struct {
	ID    string
	Error *AnswerError `json:",omitempty"`
	Body  json.RawMessage
}

// AnswerError is an error for the user.
type AnswerError struct {
	Code    kurabe.Code
	Message string
}

// Answerer answers the questions of a host, by kind. What it returns becomes JSON.
type Answerer func(ctx context.Context, kind string, body json.RawMessage) (any, error)

// questionsMax bounds the questions to a host that are under way.
const questionsMax = 16

var errNotHeard = errors.New("the host is not heard")

// Ask asks a joined host and decodes its answer. It fails when the host is not heard, or
// does not answer in time.
func (s *Server) Ask(ctx context.Context, host kurabe.HostID, kind string, body, answer any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	q := relayed{host, kind, encoded}
	ask := s.ask
	if _, elected := s.elected(); !elected {
		ask = s.relay
	}
	a, err := ask(ctx, q)
	switch {
	case err != nil:
		return err
	case a.Error != nil && a.Error.Code == "":
		return fmt.Errorf("host %s: %s", host, a.Error.Message)
	case a.Error != nil:
		return &kurabe.Error{Code: a.Error.Code, Message: a.Error.Message}
	}
	return json.Unmarshal(a.Body, answer)
}

// ask asks a host whose stream is here.
func (s *Server) ask(ctx context.Context, q relayed) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	host, id := q.Host, rand.Text()
	back := make(chan Answer, 1)
	s.mu.Lock()
	stream := s.streams[host]
	s.asked[id] = asked{host, back}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.asked, id)
	}()
	if stream == nil {
		return Answer{}, fmt.Errorf("%w: %s", errNotHeard, host)
	}
	select {
	case stream.questions <- Question{id, q.Kind, q.Body}:
	case <-stream.ended:
		return Answer{}, fmt.Errorf("%w: %s", errNotHeard, host)
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	}
	select {
	case a := <-back:
		return a, nil
	case <-stream.ended:
		return Answer{}, fmt.Errorf("%w: %s", errNotHeard, host)
	case <-ctx.Done():
		return Answer{}, fmt.Errorf("host %s did not answer: %w", host, ctx.Err())
	}
}

// asked is a question under way.
type asked struct {
	host kurabe.HostID
	back chan Answer
}

// answered takes an answer in; one that nobody waits for any more is dropped.
func (s *Server) answered(host kurabe.HostID, a Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q, ok := s.asked[a.ID]; ok && q.host == host {
		delete(s.asked, a.ID)
		q.back <- a
	}
}
