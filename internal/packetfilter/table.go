package packetfilter

import (
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"

	"kurabe"
	"kurabe/internal/logkey"
)

// Table is the rules of one host. Its methods may be called at any time from anywhere.
type Table struct {
	name string
	log  *slog.Logger

	mu      sync.Mutex // guards the rest, and the table in the kernel
	servers map[string]Server
	written *ruleset // what is in the kernel
}

// New returns the table of a host; Load makes the kernel's the one that is saved.
func New(host kurabe.HostID, log *slog.Logger) *Table {
	return &Table{name: "kurabe-" + string(host), log: log, servers: map[string]Server{}}
}

// Load puts the servers of saved assignments in force, whatever an earlier life has left. Until
// then its rules are.
func (t *Table) Load(servers []Server) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := map[string]Server{}
	for _, s := range servers {
		next[s.ID] = s
	}
	if there, err := exists(t.name); err == nil && there {
		t.written = &ruleset{} // unknown: not what is wanted
	}
	return t.replace(next)
}

// Put puts the rules of a server in force, and ends connections that they do not permit, before
// it returns.
func (t *Table) Put(s Server) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old, has := t.servers[s.ID]; has && reflect.DeepEqual(old, s) {
		return nil
	}
	next := maps.Clone(t.servers)
	next[s.ID] = s
	return t.replace(next)
}

// Drop forgets a server.
func (t *Table) Drop(id string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, has := t.servers[id]; !has {
		return nil
	}
	next := maps.Clone(t.servers)
	delete(next, id)
	return t.replace(next)
}

// replace makes the kernel's table the one for these servers; where it fails everything stays.
func (t *Table) replace(next map[string]Server) error {
	servers := slices.Collect(maps.Values(next))
	r := render(servers)
	if !reflect.DeepEqual(r, t.written) {
		if err := write(t.name, r); err != nil {
			return fmt.Errorf("write the packet filter: %w", err)
		}
		t.written = r
	}
	t.servers = next
	if r == nil {
		return nil
	}
	// From here on no packet passes that is not permitted. Who has a connection is told.
	if err := cut(servers); err != nil {
		t.log.Warn("connections that security groups no longer permit hang until they time out", logkey.Error, err)
	}
	return nil
}
