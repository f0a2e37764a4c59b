package service

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kurabe"
	"kurabe/internal/api/logs"
	"kurabe/internal/control/loggroup"
	"kurabe/internal/insights"
	"kurabe/internal/logevents"
	"kurabe/internal/logkey"
	"kurabe/internal/logread"
)

const (
	// logSweepEvery is how often a host removes events that are too old or too many.
	logSweepEvery = time.Minute
	// logGroupsEvery is how often hosts are told of retention times and deletions, and asked for
	// groups that have no record yet. Those of the elected server's host get it at once.
	logGroupsEvery = 10 * time.Second
)

// logEvents are the log events of this host.
type logEvents struct {
	*logevents.Store
	parts *insights.Parts                // of queries
	days  atomic.Pointer[map[string]int] // for which the events of groups are kept, as a server has said
	made  chan string                    // groups with a new stream
	lost  atomic.Int64                   // bytes of files that were damaged or made room since the start

	mu   sync.Mutex // guards said
	said map[string]time.Time
}

// openLogEvents opens the events of this host and has it answer for them.
func (n *node) openLogEvents(host kurabe.HostID) error {
	n.events = &logEvents{said: map[string]time.Time{}, made: make(chan string, 64)}
	n.events.days.Store(&map[string]int{})
	_ = os.RemoveAll(placeIn(n.base, "os-metrics")) // where an earlier version kept Enhanced Monitoring
	total := n.flags.LogEvents << 30
	var err error
	n.events.Store, err = logevents.Open(logevents.Config{
		Dir: placeIn(n.base, "log-groups"), TotalBytes: total, GroupBytes: total / 2, Now: time.Now, Lost: n.lostLogEvents,
		Made: func(group string) {
			select {
			case n.events.made <- group:
			default: // it is found later
			}
		},
	})
	if err != nil {
		n.events = nil
		return fmt.Errorf("log events: %w", err)
	}
	logread.Host{ID: host, Store: n.events.Store, Keep: func(days map[string]int) { n.events.days.Store(&days) }}.Handle(n.reads)
	n.events.parts = insights.NewParts(host, n.events.Store, runtime.GOMAXPROCS(0))
	n.events.parts.Handle(n.reads)
	return nil
}

// lostLogEvents tells of a loss, of each stream and reason once in a while.
func (n *node) lostLogEvents(group, stream string, bytes int64, why string) {
	total := n.events.lost.Add(bytes)
	n.events.mu.Lock()
	defer n.events.mu.Unlock()
	key, now := group+"\n"+why, time.Now()
	if now.Sub(n.events.said[key]) < sameLossTime {
		return
	}
	if len(n.events.said) > 1000 {
		clear(n.events.said)
	}
	n.events.said[key] = now
	n.log.Warn("lost log events", "group", group, "stream", stream, "bytes", bytes, "total", total, logkey.Reason, why)
}

// sweepLogEvents removes events that are too old or too many.
func (n *node) sweepLogEvents(ctx context.Context) error {
	defer n.events.parts.End()
	for every := time.NewTicker(logSweepEvery); ; {
		select {
		case <-every.C:
		case <-ctx.Done():
			every.Stop()
			return ctx.Err()
		}
		days := *n.events.days.Load()
		if err := n.events.Sweep(ctx, func(group string) int { return days[group] }); err != nil && ctx.Err() == nil {
			n.log.Warn("log events not swept", logkey.Error, err)
		}
	}
}

// logs is the service of log groups and events.
func (s *Service) logs(groups loggroup.Groups) logs.API {
	s.queries.Ask, s.queries.Hosts = s.hosts(), s.hostIDs
	return logs.API{Groups: groups, Hosts: logread.Hosts{Ask: s.hosts(), IDs: s.hostIDs}, Here: s.events.Store, Now: time.Now, Queries: s.queries}
}

// keepLogGroups has the elected server keep records and hosts in agreement.
func (s *Service) keepLogGroups(ctx context.Context, a logs.API) error {
	defer s.queries.End()
	every := time.NewTicker(logGroupsEvery)
	defer every.Stop()
	for {
		made := ""
		select {
		case <-every.C:
		case made = <-s.events.made:
		case <-ctx.Done():
			return ctx.Err()
		}
		if p := s.view.Planner(); p != "" && p != s.hostFile.ID {
			continue
		}
		if made != "" {
			if err := a.Groups.Adopt(ctx, made); err != nil && ctx.Err() == nil {
				s.log.Debug("log group has no record yet", logkey.Error, err)
			}
			continue
		}
		s.tellDeletions(ctx, a)
		days := map[string]int{}
		for _, g := range a.Groups.List() {
			if g.RetentionDays > 0 {
				days[g.Name] = g.RetentionDays
			}
		}
		for _, host := range s.hostIDs() {
			found, err := a.Hosts.Sweep(ctx, host, days)
			for _, name := range found {
				if r, known := s.view.LogGroup(name); known && slices.Contains(r.Value.Away, host) {
					continue // they are to be removed
				}
				if err == nil {
					err = a.Groups.Adopt(ctx, name)
				}
			}
			if err != nil && ctx.Err() == nil {
				s.log.Debug("log groups of a host not looked at", logkey.Host, host, logkey.Error, err)
			}
		}
	}
}

// tellDeletions tells hosts that were away of groups that were deleted. One that is no host any
// more has nothing left of them.
func (s *Service) tellDeletions(ctx context.Context, a logs.API) {
	hosts := s.hostIDs()
	for _, r := range s.view.LogGroups() {
		g := r.Value
		if len(g.Away) == 0 {
			continue
		}
		var here, told []kurabe.HostID
		for _, host := range g.Away {
			if slices.Contains(hosts, host) {
				here = append(here, host)
			} else {
				told = append(told, host)
			}
		}
		told = append(told, a.Hosts.DeleteGroup(ctx, g.Name, g.DeletedAt, here)...)
		if len(told) == 0 {
			continue
		}
		if err := a.Groups.Told(ctx, g.Name, g.DeletedAt, told); err != nil && ctx.Err() == nil {
			s.log.Warn("deletion of a log group not taken down", logkey.Error, err)
		}
	}
}
