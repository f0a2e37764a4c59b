package hostread

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/must"
)

// Class is a group of kinds that share the slots of a host.
type Class int

// The classes.
const (
	Failover Class = iota // questions that a failover or a drill waits for
	Lag
	Logs
	Query    // large reads
	Insights // queries of logs, which run on between the questions
)

// slots is how many questions of each class a host answers at a time.
var slots = [...]int{Failover: 16, Lag: 16, Logs: 16, Query: 4, Insights: 32}

// AnswerTime bounds each answer.
const AnswerTime = 15 * time.Second

// Kind is a question with its answer, both JSON between hosts. Name is the same in every version.
type Kind[Q, A any] struct {
	Name  string
	Class Class
}

// Frame is a question on its way to a host, its answer, or its end.
type Frame struct {
	ID     string          `json:",omitempty"`
	Host   kurabe.HostID   `json:",omitempty"`
	Kind   string          `json:",omitempty"`
	Body   json.RawMessage `json:",omitempty"`
	Error  *Error          `json:",omitempty"`
	Cancel bool            `json:",omitempty"` // nobody waits for the answer to ID any more
}

// Error is why there is no answer; Code is "" of what is not for users.
type Error struct {
	Code    kurabe.Code
	Message string
}

// Handlers answer the questions of one host. Kinds are registered before the first question.
type Handlers struct {
	host  kurabe.HostID
	kinds map[string]handler
	slots [len(slots)]chan struct{}
	// runs has a place for each handler that runs, also on after its cancellation: those that
	// never return are at most as many as the slots of their class.
	runs [len(slots)]chan struct{}

	mu      sync.Mutex                    // guards cancels
	cancels map[string]context.CancelFunc // by the ID of a question under way
}

// handler answers a kind: as a func(context.Context, Q) (A, error), and in JSON.
type handler struct {
	class Class
	typed any
	wire  func(context.Context, json.RawMessage) (any, error)
}

// NewHandlers returns the handlers of a host, without any kind.
func NewHandlers(host kurabe.HostID) *Handlers {
	h := &Handlers{host: host, kinds: map[string]handler{}, cancels: map[string]context.CancelFunc{}}
	for c, n := range slots {
		h.slots[c], h.runs[c] = make(chan struct{}, n), make(chan struct{}, 2*n)
	}
	return h
}

// Handle has fn answer a kind. The context of fn ends when the asker goes away, and after
// AnswerTime.
func Handle[Q, A any](h *Handlers, k Kind[Q, A], fn func(context.Context, Q) (A, error)) {
	_, known := h.kinds[k.Name]
	must.True(!known, "one handler for each kind")
	h.kinds[k.Name] = handler{k.Class, fn, func(ctx context.Context, body json.RawMessage) (any, error) {
		var q Q
		if err := json.Unmarshal(body, &q); err != nil {
			return nil, err
		}
		return fn(ctx, q)
	}}
}

// Take answers a question from a link by reply, or cancels one. It does not wait for the answer.
// All that it began ends with ctx.
func (h *Handlers) Take(ctx context.Context, f Frame, reply func(context.Context, Frame)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f.Cancel {
		if cancel := h.cancels[f.ID]; cancel != nil {
			cancel()
		}
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	h.cancels[f.ID] = cancel
	go func() { // ends with ctx
		a := h.answer(ctx, f)
		if ctx.Err() == nil {
			reply(ctx, a)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.cancels, f.ID)
		cancel()
	}()
}

func (h *Handlers) answer(ctx context.Context, f Frame) Frame {
	a := Frame{ID: f.ID}
	k, known := h.kinds[f.Kind]
	err := errors.New("the host's version is too old for the request " + f.Kind)
	if known {
		a.Body, err = within(ctx, h, k.class, func(ctx context.Context) (json.RawMessage, error) {
			said, err := k.wire(ctx, f.Body)
			if err != nil {
				return nil, err
			}
			return json.Marshal(said)
		})
	}
	if err != nil {
		a.Error = &Error{Message: err.Error()}
		if e, ok := errors.AsType[*kurabe.Error](err); ok {
			a.Error = &Error{e.Code, e.Message}
		}
	}
	return a
}

// within runs a handler in a slot of its class. CodeThrottled when there is none.
func within[A any](ctx context.Context, h *Handlers, c Class, do func(context.Context) (A, error)) (answer A, err error) {
	busy := kurabe.Errorf(kurabe.CodeThrottled, "host %s is busy with %d requests of this kind; try again", h.host, slots[c])
	select {
	case h.slots[c] <- struct{}{}:
		defer func() { <-h.slots[c] }()
	default:
		return answer, busy
	}
	select {
	case h.runs[c] <- struct{}{}:
	default:
		return answer, busy
	}
	ctx, cancel := context.WithTimeout(ctx, AnswerTime)
	defer cancel()
	type result struct {
		answer A
		err    error
	}
	done := make(chan result, 1)
	go func() { // ends with the handler, which ctx asks to end
		defer func() { <-h.runs[c] }()
		a, err := do(ctx)
		done <- result{a, err}
	}()
	select {
	case r := <-done:
		return r.answer, r.err
	case <-ctx.Done():
		return answer, ctx.Err()
	}
}
