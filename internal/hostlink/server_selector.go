package hostlink

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// avoidTime is how long a server that did not answer is left alone, whoever names it: the
// others name a planner whose machine is gone until its election has run out.
const avoidTime = 2 * time.Second

// serverSelector is which of the service's servers a Remote speaks to.
type serverSelector struct {
	learned func([]string)

	mu    sync.Mutex // guards the rest
	at    string
	all   []string
	avoid map[string]time.Time // until when
}

func newServerSelector(c RemoteConfig) *serverSelector {
	a := &serverSelector{learned: c.Learned, at: c.Server, all: slices.Clone(c.Servers), avoid: map[string]time.Time{}}
	if a.at == "" && len(a.all) > 0 {
		a.at = a.all[0]
	}
	if !slices.Contains(a.all, a.at) {
		a.all = append(a.all, a.at)
	}
	return a
}

func (a *serverSelector) now() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.at
}

func (a *serverSelector) hasMany() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.all) > 1
}

// others are all servers but the one that is spoken to.
func (a *serverSelector) others() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(a.all), func(one string) bool { return one == a.at })
}

// learn takes note of all servers.
func (a *serverSelector) learn(all []string) {
	a.mu.Lock()
	news := len(all) > 0 && !slices.Equal(all, a.all)
	if news {
		a.all = slices.Clone(all)
	}
	a.mu.Unlock()
	if news && a.learned != nil {
		a.learned(all)
	}
}

// missed turns to another server, since the one at addr does not answer.
func (a *serverSelector) missed(addr string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.avoid[addr] = time.Now().Add(avoidTime)
	a.turnLocked(addr, "")
}

// redirected turns to the planner that the server at addr named, or on to the next.
func (a *serverSelector) redirected(addr, planner string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.turnLocked(addr, planner)
}

func (a *serverSelector) turnLocked(from, to string) {
	if a.at != from {
		return // somebody has turned already
	}
	now := time.Now()
	if to != "" && to != from && now.After(a.avoid[to]) {
		a.at = to
		return
	}
	n := slices.Index(a.all, from) // -1: the first one is next
	for step := 1; step <= len(a.all); step++ {
		next := a.all[(n+step)%len(a.all)]
		if next != from && now.After(a.avoid[next]) {
			a.at = next
			return
		}
	}
	if !slices.Contains(a.all, from) {
		a.at = a.all[0] // it is a server no more
	}
}

// misdirected is the error of a server that is not the elected planner's.
type misdirected struct {
	planner string
	servers []string
}

func (e *misdirected) Error() string {
	if e.planner == "" {
		return "no planner is elected"
	}
	return fmt.Sprintf("the planner is at %s", e.planner)
}
