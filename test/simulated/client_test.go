package simulated

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"kurabe"
	"kurabe/internal/engine/fake"
	"kurabe/test/appends"
)

// Clients work at the same time, each with a pause after each transaction. keysAtOnce are in use
// at a time, and others after each hundred appends, so that a search for an order stays short.
const (
	clients     = 4
	clientPause = 200 * time.Millisecond
	keysAtOnce  = 3
	keyAppends  = 100
	// sessionMost is after how many transactions, on average, a client logs in anew: where two
	// servers let clients in, some of them come to each.
	sessionMost = 50
	// awaitMost is how long a client waits for an answer.
	awaitMost = 3 * time.Second
)

// history is what the clients did.
type history struct {
	w *world

	mu   sync.Mutex // guards the rest
	keys map[int64]int
	ops  []porcupine.Operation
	acks []ack
	next int // clients whose outcome is unknown
}

// ack is an acknowledgement, and by which process of which server.
type ack struct {
	by         string
	call, ends int64
}

func (h *history) now() int64 { return int64(time.Since(h.w.began)) }

// find is the server that clients come to by the endpoint.
func (w *world) find() (h *host, id kurabe.InstanceID, err error) {
	i, ok := w.endpointOf()
	if !ok {
		return nil, "", errors.New("there is no endpoint")
	}
	h = w.hosts[0]
	if len(w.hosts) > 1 {
		if h = w.holder(i.Addr()); h == nil {
			return nil, "", errors.New("no route to host")
		}
	}
	at, listening, err := h.leads(i)
	if err != nil {
		return nil, "", err
	}
	for id, listens := range listening {
		if listens == at && h.engine.Running(id) {
			return h, id, nil
		}
	}
	return nil, "", errors.New("connection refused")
}

// leads is the address that the host leads clients of an endpoint to, and where its servers listen.
func (h *host) leads(endpoint netip.AddrPort) (at string, listening map[kurabe.InstanceID]string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.still || h.off {
		return "", nil, fake.ErrHangs
	}
	at = endpoint.Addr().String()
	if e := h.endpoints[endpoint]; e != nil {
		if !e.route.Writer.IsValid() {
			return "", nil, errors.New("held at the endpoint")
		}
		at = e.route.Writer.Addr().String()
	}
	return at, maps.Clone(h.listens), nil
}

// endpointOf is the instance's endpoint, which never changes.
func (w *world) endpointOf() (netip.AddrPort, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.endpoint, w.endpoint.IsValid()
}

// holder is whom the network takes for the one that has an address.
func (w *world) holder(a netip.Addr) *host {
	w.mu.Lock()
	last := w.arp[a]
	w.mu.Unlock()
	has := func(h *host) bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.held[a]
	}
	if last != nil && has(last) {
		return last
	}
	for _, h := range w.hosts {
		if has(h) {
			return h
		}
	}
	return nil
}

// client works until ctx ends.
func (h *history) client(ctx context.Context, id int, random *rand.Rand) {
	var s *session
	for ctx.Err() == nil {
		if s == nil {
			s = h.w.connect()
		}
		if s != nil {
			h.mu.Lock()
			key := len(h.keys)/keyAppends*keysAtOnce + random.IntN(keysAtOnce)
			h.mu.Unlock()
			ok := false
			if random.IntN(2) == 0 {
				ok = h.read(s, id, key)
			} else {
				ok = h.append(s, id, key)
			}
			if !ok || random.IntN(sessionMost) == 0 {
				s = nil
			}
		}
		time.Sleep(time.Duration(random.Int64N(int64(clientPause))))
	}
}

// session is a client's, with one process. Where the gateway forwards it, it ends with the
// endpoint's epoch.
type session struct {
	*fake.Session
	by string
}

func (w *world) connect() *session {
	h, id, err := w.find()
	if err != nil {
		return nil
	}
	s, err := h.engine.Connect(id)
	if err != nil {
		return nil
	}
	return &session{s, string(h.id) + " " + s.Process()}
}

// append appends, and says whether the session is of any more use.
func (h *history) append(s *session, id, key int) bool {
	o := porcupine.Operation{ClientId: id, Call: h.now()}
	h.mu.Lock()
	number, err := s.Commit()
	if err != nil {
		h.mu.Unlock()
		return false // nothing was sent
	}
	h.keys[number] = key
	h.mu.Unlock()
	o.Input = appends.Op{Key: key, Value: int(number)}
	for pause := time.Duration(0); ; pause = min(pause+time.Millisecond, 20*time.Millisecond) {
		acked, err := s.Acknowledged(number)
		late := h.now()-o.Call > int64(awaitMost)
		if acked || late || err != nil && !errors.Is(err, fake.ErrHangs) {
			h.appended(o, s.by, acked)
			return acked
		}
		time.Sleep(pause)
	}
}

func (h *history) appended(o porcupine.Operation, by string, acked bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if o.Return = h.now(); acked {
		h.acks = append(h.acks, ack{by, o.Call, o.Return})
	} else {
		h.next++
		o.ClientId, o.Return = clients+h.next, appends.Never
	}
	h.ops = append(h.ops, o)
}

func (h *history) read(s *session, id, key int) bool {
	call := h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	seen, err := s.Visible()
	if err != nil {
		return false
	}
	h.ops = append(h.ops, porcupine.Operation{ClientId: id, Input: appends.Op{Key: key}, Output: h.list(seen, key), Call: call, Return: h.now()})
	return true
}

// list are the values of a key among commits. h.mu is held.
func (h *history) list(seen []int64, key int) string {
	var list strings.Builder
	for _, number := range seen {
		if h.keys[number] == key {
			list.WriteString("," + strconv.FormatInt(number, 10))
		}
	}
	return list.String()
}

// readAll reads every list at the end.
func (h *history) readAll() string {
	s := h.w.connect()
	if s == nil {
		return "nobody answers"
	}
	h.mu.Lock()
	last := len(h.keys)/keyAppends*keysAtOnce + keysAtOnce
	h.mu.Unlock()
	for key := range last {
		if !h.read(s, clients, key) {
			return "it has ended"
		}
	}
	return ""
}

// ackedSince counts appends that were begun after a moment and acknowledged.
func (h *history) ackedSince(moment int64) (count int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for n := len(h.acks) - 1; n >= 0 && h.acks[n].ends >= moment; n-- {
		if h.acks[n].call >= moment {
			count++
		}
	}
	return count
}

// two says who acknowledged what was begun when another one had taken over already.
func two(acks []ack) (wrong []string) {
	first := map[string]int64{} // acknowledgement of each
	for _, a := range acks {
		if at, known := first[a.by]; !known || a.ends < at {
			first[a.by] = a.ends
		}
	}
	for _, a := range acks {
		for by, at := range first {
			if by != a.by && at > first[a.by] && at < a.call {
				wrong = append(wrong, "at "+time.Duration(a.call).String()+" "+a.by+" acknowledges, and "+by+" had done so since "+time.Duration(at).String())
			}
		}
	}
	return wrong
}
