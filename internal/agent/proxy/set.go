package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"sync"

	"kurabe"
	"kurabe/internal/account"
	"kurabe/internal/agent/unit"
	"kurabe/internal/cgroup"
	"kurabe/internal/proxy/process"
	"kurabe/internal/volume"
)

// Addresses holds the addresses of endpoints on this machine, and gives up those that nobody
// wants any more.
type Addresses interface {
	Hold(whose string, want []netip.Addr) error
}

// Config is what a Set needs.
type Config struct {
	Host *unit.Host
	Dir  string // has a folder for each proxy
	// Addresses may be nil in tests without a network.
	Addresses Addresses
	// Accounts gives each proxy a user of its own; nil: all are ours.
	Accounts *account.Book
	Levers   cgroup.Levers
	Series   Appender // keeps what is measured; nil: nothing is
}

// Set has the proxies of one host.
type Set struct {
	Config
	*unit.Table[kurabe.ProxyID, kurabe.ProxyAssignment, *worker]
}

// New returns a Set; Load takes up what is saved.
func New(c Config) *Set {
	s := &Set{Config: c}
	s.Table = unit.NewTable[kurabe.ProxyID, kurabe.ProxyAssignment](kurabe.KindProxy, c.Host, s.newWorker)
	return s
}

// assignmentName is the file of a proxy's folder that has its newest assignment.
const assignmentName = "assignment.json"

// Load reads the saved assignments and holds the addresses of their endpoints. start has them
// obeyed.
func (s *Set) Load() (start func(context.Context), err error) {
	entries, err := os.ReadDir(s.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the folders of proxies: %w", err)
	}
	var saved []kurabe.ProxyAssignment
	for _, e := range entries {
		data, err := volume.ReadFile(filepath.Join(s.Dir, e.Name(), assignmentName))
		if errors.Is(err, fs.ErrNotExist) {
			continue // the rest of one whose removal was cut off; the planner says so again
		}
		var a kurabe.ProxyAssignment
		if err == nil {
			err = json.Unmarshal(data, &a)
		}
		if err == nil && string(a.Proxy) != e.Name() {
			err = fmt.Errorf("it belongs to proxy %s", a.Proxy)
		}
		if err != nil {
			return nil, fmt.Errorf("saved assignment of proxy %s: %w", e.Name(), err)
		}
		saved = append(saved, a)
		if err := s.hold(a); err != nil {
			s.Host.Log.Error("could not hold an address of a proxy, retrying", "proxy", string(a.Proxy), "error", err)
		}
	}
	return func(ctx context.Context) {
		for _, a := range saved {
			s.Get(ctx, a.Proxy).Give(a)
		}
	}, nil
}

// StopAll ends the processes of all proxies of this host, once nothing is obeyed any more. The
// assignments stay: the next service starts them again.
func (s *Set) StopAll(ctx context.Context) error {
	entries, err := os.ReadDir(s.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the folders of proxies: %w", err)
	}
	var wait sync.WaitGroup
	errs := make([]error, len(entries))
	for n, e := range entries {
		wait.Go(func() { errs[n] = s.newWorker(kurabe.ProxyID(e.Name())).stop(ctx) })
	}
	wait.Wait()
	return errors.Join(errs...)
}

// hold has the addresses of the endpoints of a proxy on this machine.
func (s *Set) hold(a kurabe.ProxyAssignment) error {
	if s.Addresses == nil {
		return nil
	}
	var want []netip.Addr
	if !a.Absent {
		for _, e := range a.Endpoints {
			at, err := netip.ParseAddr(e.Address)
			if err != nil {
				return fmt.Errorf("address of endpoint %s: %w", e.Name, err)
			}
			want = append(want, at)
		}
	}
	return s.Addresses.Hold("proxy "+string(a.Proxy), want)
}

// Status asks a proxy of this host how it is.
func (s *Set) Status(ctx context.Context, q process.StatusQuestion) (process.Status, error) {
	w, ok := s.Find(q.Proxy)
	if !ok {
		return process.Status{}, kurabe.Errorf(kurabe.CodeResourceNotFound, "this host has no proxy %s", q.Proxy)
	}
	return w.client.Status(ctx, q.Sessions)
}
