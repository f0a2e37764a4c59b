package logread

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/hostread"
)

// waitTime bounds how long hosts are waited for: of one that is away, there is a gap.
const waitTime = 5 * time.Second

// Hosts are the hosts of the service, as one of its servers asks them.
type Hosts struct {
	Ask hostread.Hosts
	IDs func() []kurabe.HostID
}

// Page is the first events of an answer, in its direction.
type Page struct {
	Events []Event
	Next   *Place // behind which further events follow; nil: these are all
	Away   []kurabe.HostID
}

// Read merges the events of all hosts. CodeUnavailable when none answers.
func (h Hosts) Read(ctx context.Context, q Query) (Page, error) {
	var p Page
	var answers []answer
	var err error
	p.Away, err = hostread.AskAll(ctx, h.IDs(), waitTime, func(ctx context.Context, host kurabe.HostID) (answer, error) {
		return hostread.Ask(ctx, h.Ask, host, askEvents, q)
	}, func(a answer) { answers = append(answers, a) })
	if err != nil {
		return p, err
	}
	p.merge(answers, q)
	return p, nil
}

// merge joins the answers up to where all hosts have looked.
func (p *Page) merge(answers []answer, q Query) {
	compare := Place.Compare
	if q.Backward {
		compare = func(a, b Place) int { return b.Compare(a) }
	}
	for _, a := range answers {
		p.Events = append(p.Events, a.Events...)
		if a.Stopped != nil && (p.Next == nil || compare(*a.Stopped, *p.Next) < 0) {
			p.Next = a.Stopped
		}
	}
	slices.SortFunc(p.Events, func(a, b Event) int { return compare(a.Place, b.Place) })
	size := 0
	for n, e := range p.Events {
		if p.Next != nil && compare(e.Place, *p.Next) > 0 {
			p.Events = p.Events[:n]
			return
		}
		if size += len(e.Message); n > 0 && (n >= q.Limit || size > answerBytes) {
			last := p.Events[n-1].Place
			p.Events, p.Next = p.Events[:n], &last
			return
		}
	}
}

// Streams joins what hosts know of the streams of a group whose name begins with a prefix, or of
// the one of a name. They are in the order of their names.
func (h Hosts) Streams(ctx context.Context, group, name, prefix string, deleted map[kurabe.HostID]int64) ([]Stream, []kurabe.HostID, error) {
	byName := map[string]Stream{}
	away, err := hostread.AskAll(ctx, h.IDs(), waitTime, func(ctx context.Context, host kurabe.HostID) ([]Stream, error) {
		return hostread.Ask(ctx, h.Ask, host, askStreams, streamQuery{group, name, prefix, deleted})
	}, func(list []Stream) {
		for _, s := range list {
			byName[s.Name] = joined(s, byName[s.Name])
		}
	})
	var list []Stream
	for _, s := range byName {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b Stream) int { return strings.Compare(a.Name, b.Name) })
	return list, away, err
}

func joined(a, b Stream) Stream {
	switch {
	case b.Name == "":
		return a
	case a.First == 0 || b.First != 0 && b.First < a.First:
		a.First = b.First
	}
	a.Created = min(a.Created, b.Created)
	a.Last, a.LastIngested, a.Bytes = max(a.Last, b.Last), max(a.LastIngested, b.LastIngested), a.Bytes+b.Bytes
	return a
}

// DeleteStream removes a stream from all hosts. CodeUnavailable when one is away: it could have
// a part of it.
func (h Hosts) DeleteStream(ctx context.Context, group, stream string) error {
	away := h.remove(ctx, h.IDs(), removal{Group: group, Stream: stream})
	if len(away) > 0 {
		return kurabe.Errorf(kurabe.CodeUnavailable, "host %s does not answer, and may have events of the log stream; try again", away[0])
	}
	return nil
}

// DeleteGroup removes the streams of a group that are not younger than a time from hosts, and
// returns those that have done so.
func (h Hosts) DeleteGroup(ctx context.Context, group string, until time.Time, hosts []kurabe.HostID) (told []kurabe.HostID) {
	away := h.remove(ctx, hosts, removal{Group: group, Until: until.UnixMilli()})
	return slices.DeleteFunc(slices.Clone(hosts), func(host kurabe.HostID) bool { return slices.Contains(away, host) })
}

// remove returns the hosts that have not removed it.
func (h Hosts) remove(ctx context.Context, hosts []kurabe.HostID, r removal) (away []kurabe.HostID) {
	ctx, cancel := context.WithTimeout(ctx, waitTime)
	defer cancel()
	var mu sync.Mutex // guards away
	var all sync.WaitGroup
	for _, host := range hosts {
		all.Go(func() {
			if _, err := hostread.Ask(ctx, h.Ask, host, askRemoval, r); err != nil {
				mu.Lock()
				defer mu.Unlock()
				away = append(away, host)
			}
		})
	}
	all.Wait()
	return away
}

// Record reads one event; nil: it is not there any more.
func (h Hosts) Record(ctx context.Context, group string, at Place) (*Event, error) {
	if !slices.Contains(h.IDs(), at.Host) {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, waitTime)
	defer cancel()
	return hostread.Ask(ctx, h.Ask, at.Host, askRecord, recordQuery{group, at.Stream, at.Number})
}

// Sweep tells a host for how many days the events of groups are kept, and returns the groups of
// which it has events.
func (h Hosts) Sweep(ctx context.Context, host kurabe.HostID, days map[string]int) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, waitTime)
	defer cancel()
	return hostread.Ask(ctx, h.Ask, host, askSweep, days)
}

// Bytes are those of the messages of groups.
func (h Hosts) Bytes(ctx context.Context, groups []string) (map[string]int64, error) {
	all := map[string]int64{}
	_, err := hostread.AskAll(ctx, h.IDs(), waitTime, func(ctx context.Context, host kurabe.HostID) (map[string]int64, error) {
		return hostread.Ask(ctx, h.Ask, host, askBytes, groups)
	}, func(bytes map[string]int64) {
		for group, n := range bytes {
			all[group] += n
		}
	})
	return all, err
}
