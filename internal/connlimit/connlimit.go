package connlimit

import (
	"net"
	"net/http"
	"sync"
)

// Limit counts the open connections of a server by the address that they come from.
type Limit struct {
	most int

	mu   sync.Mutex // guards open
	open map[string]int
}

// New is a Limit of so many connections of each address.
func New(most int) *Limit { return &Limit{most: most, open: map[string]int{}} }

// Watch is the server's ConnState: it ends a connection that is one too many.
func (l *Limit) Watch(c net.Conn, state http.ConnState) {
	address, _, err := net.SplitHostPort(c.RemoteAddr().String())
	if err != nil {
		address = c.RemoteAddr().String()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch state {
	case http.StateNew:
		if l.open[address]++; l.open[address] > l.most {
			_ = c.Close() // the server sees that, and says so here
		}
	case http.StateClosed, http.StateHijacked:
		if l.open[address]--; l.open[address] <= 0 {
			delete(l.open, address)
		}
	}
}
