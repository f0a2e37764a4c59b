package hostlink

import (
	"fmt"
	"net/http"
	"time"

	"kurabe"
)

// What a host says is kept by the state, with its history until that is forgotten: a host in
// other hands would fill it within a minute, and nobody could write any more. So each has a
// budget. A thousand instances say 150 KB a second.
const (
	spentMost   = 64 << 20  // at once: all reports of a host that comes back
	spentAgain  = 512 << 10 // bytes that come back each second
	callBytes   = 256       // of a call without a body
	catalogsMax = 64        // engine versions of one host
)

// budget is what a host may still say.
type budget struct {
	left float64
	at   time.Time
}

// spend takes a call off a host's budget. What says that the host is there is not kept.
func (s *Server) spend(host kurabe.HostID, r *http.Request) error {
	switch r.PathValue("call") {
	case callAlive, callRenew, callSign:
		return nil
	}
	if r.ContentLength < 0 {
		return fmt.Errorf("%w: the call of host %s has no Content-Length", ErrRefused, host)
	}
	cost, now := float64(r.ContentLength+callBytes), s.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	b, known := s.budgets[host]
	if !known {
		b = budget{spentMost, now}
	}
	b.left = min(spentMost, b.left+max(0, now.Sub(b.at).Seconds())*spentAgain)
	b.at = now
	if b.left < cost {
		s.budgets[host] = b
		return kurabe.Errorf(kurabe.CodeThrottled, "host %s sends more than %d MB in a few minutes", host, spentMost>>20)
	}
	b.left -= cost
	s.budgets[host] = b
	return nil
}
