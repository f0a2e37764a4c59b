package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/agent/unit"
	"kurabe/internal/engine"
	"kurabe/internal/logevents"
	"kurabe/internal/logkey"
	"kurabe/internal/logs/export"
)

// exportEvery is how often the log files are looked at.
const exportEvery = time.Second

// logStream names a stream of a log group.
type logStream struct{ group, stream string }

// streamOf is where the events of a log go, by RDS's names.
func streamOf(a kurabe.Assignment, log string) logStream {
	stream := a.Name
	if a.Cluster {
		stream = kurabe.ServerName(a.Name, a.Instance)
	}
	if a.Engine == kurabe.Postgres {
		stream += ".0"
	}
	return logStream{kurabe.ExportGroup(a.Cluster, a.Name, log), stream}
}

// exports says whether what a server writes under an assignment is exported, nil for as before. Users
// of a Multi-AZ instance see one server, the primary: one that was it is exported up to its end, and
// a standby from its promotion on.
func exports(a kurabe.Assignment) *bool {
	replica := a.Role != nil && a.Role.Source != nil && a.Role.Source.ID.Owner() != a.Instance.Owner()
	yes := a.Cluster || a.Writes() || replica
	if !yes && a.Role.Duty != kurabe.DutyFollow {
		return nil
	}
	return &yes
}

// serverLog names a log of a server.
type serverLog struct {
	server kurabe.InstanceID
	log    string
}

// logExport is what is made of a log.
type logExport struct {
	at   logStream // where its mark is stored, with pass held
	once unit.LogOnce

	// With mu held. No follower: it is only seen to that no mark is left.
	*export.Follower
	to             logStream
	turned, wanted *bool // the newest turn, and what is to be: nil as before
	leaves         bool  // once nothing more is to be exported
	gone           bool  // the server is
	writes         bool  // the server does
}

// logExports exports the logs of all servers, in one goroutine: where two servers of a group write one
// after the other, the stream has the lines in their order.
type logExports struct {
	agent *Agent
	poked chan struct{} // capacity 1

	pass  sync.Mutex // held by who exports
	marks map[logStream]map[kurabe.InstanceID]export.Mark

	mu   sync.Mutex // guards what follows; taken after pass
	logs map[serverLog]*logExport
}

func newLogExports(a *Agent) *logExports {
	return &logExports{agent: a, poked: make(chan struct{}, 1), marks: map[logStream]map[kurabe.InstanceID]export.Mark{}, logs: map[serverLog]*logExport{}}
}

// obey takes over what an assignment says, before anything is done for it: what the server has
// written up to now is of its life before.
func (e *logExports) obey(a kurabe.Assignment) {
	if e.agent.Events == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, name := range a.Engine.LogTypes() {
		key, wanted := serverLog{a.Instance, name}, slices.Contains(a.LogTypes, name)
		l := e.logs[key]
		if l == nil {
			l = &logExport{at: streamOf(a, name)}
			e.logs[key] = l
		}
		if l.to, l.leaves, l.writes = streamOf(a, name), !wanted, a.Writes(); !wanted {
			no := false
			l.wanted = &no
		} else if now := exports(a); now != nil {
			l.wanted = now
		}
		if wanted && l.Follower == nil {
			l.Follower, l.turned = e.follow(key, a.Engine, l), nil
		}
		e.turn(key, l)
	}
	e.poke()
}

func (e *logExports) poke() {
	select {
	case e.poked <- struct{}{}:
	default:
	}
}

// retire ends the exports of a server that is gone.
func (e *logExports) retire(id kurabe.InstanceID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for key, l := range e.logs {
		if key.server == id {
			l.leaves, l.gone = true, true
		}
	}
	e.poke()
}

func (e *logExports) follow(key serverLog, of kurabe.EngineName, l *logExport) *export.Follower {
	home := engine.Home{Dir: filepath.Join(e.agent.Homes, string(key.server))}
	return export.NewFollower(export.Config{
		Engine: of, Log: key.log, Dir: home.LogDir(), Now: e.agent.Now,
		Lost: func(bytes int64) { e.agent.LogLost(key.server, key.log, bytes) },
		Load: func() (*export.Mark, error) {
			marks, err := e.marksOf(l.at)
			if mark, there := marks[key.server]; there {
				return &mark, err
			}
			return nil, err
		},
	})
}

// turn has a follower know what is exported from now on. Called with mu held.
func (e *logExports) turn(key serverLog, l *logExport) {
	if l.Follower == nil || l.wanted == nil || l.turned != nil && *l.turned == *l.wanted {
		return
	}
	if err := l.Turn(*l.wanted); err != nil { // it is tried again
		l.once.Warn(e.agent.Log.With(logkey.Instance, key.server), "log not exported", err)
		return
	}
	l.turned = l.wanted
}

// run exports until ctx ends.
func (e *logExports) run(ctx context.Context) {
	for more := false; ctx.Err() == nil; {
		if !more {
			select {
			case <-e.poked:
			case <-time.After(exportEvery):
			case <-ctx.Done():
				return
			}
		}
		more = e.exportAll(ctx)
	}
}

// exportAll makes a pass of each log, those of servers that do not write first: what a former primary
// has written is before the lines of the new one.
func (e *logExports) exportAll(ctx context.Context) (more bool) {
	order := func(key serverLog) int {
		if e.logs[key].writes {
			return 1
		}
		return 0
	}
	e.mu.Lock()
	keys := slices.SortedFunc(maps.Keys(e.logs), func(a, b serverLog) int {
		return cmp.Or(order(a)-order(b), cmp.Compare(a.server, b.server), cmp.Compare(a.log, b.log))
	})
	e.mu.Unlock()
	for _, key := range keys {
		if ctx.Err() != nil {
			return false
		}
		again, err := e.export(key, false)
		more = more || again
		e.mu.Lock()
		if l := e.logs[key]; l != nil && err != nil && ctx.Err() == nil {
			l.once.Warn(e.agent.Log.With(logkey.Instance, key.server), "log not exported", err)
		} else if l != nil {
			l.once = unit.LogOnce{}
		}
		e.mu.Unlock()
	}
	return more
}

// finish exports what a server that runs no more has left, before its folder is removed.
func (e *logExports) finish(a kurabe.Assignment) error {
	for _, name := range a.LogTypes {
		for more := true; more; {
			var err error
			if more, err = e.export(serverLog{a.Instance, name}, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// unread says which log files of a server have events that are not exported yet.
func (e *logExports) unread(id kurabe.InstanceID) func(name string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []*export.Follower
	for key, l := range e.logs {
		if key.server == id && l.Follower != nil {
			all = append(all, l.Follower)
		}
	}
	return func(name string) bool {
		return slices.ContainsFunc(all, func(f *export.Follower) bool { return f.Unread(name) })
	}
}

// export makes a pass of a log.
func (e *logExports) export(key serverLog, last bool) (more bool, err error) {
	e.pass.Lock()
	defer e.pass.Unlock()
	e.mu.Lock()
	l := e.logs[key]
	if l == nil {
		e.mu.Unlock()
		return false, nil
	}
	e.turn(key, l)
	f, to, leaves, gone := l.Follower, l.to, l.leaves, l.gone
	e.mu.Unlock()
	if err := e.move(key, l, to); err != nil {
		return false, err
	}
	if f != nil && !gone {
		more, err = f.Pass(func(events []logevents.Event, mark export.Mark) error { return e.store(key, to, events, &mark) }, last)
		if err != nil || !leaves || !f.Over() {
			return more, err
		}
	}
	if !leaves {
		return false, nil
	}
	if err := e.store(key, to, nil, nil); err != nil {
		return false, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if l.leaves { // not wanted again meanwhile
		if l.Follower != nil {
			l.Close()
		}
		delete(e.logs, key)
	}
	return false, nil
}

// move has the log of an instance whose name is another one go on in another group.
func (e *logExports) move(key serverLog, l *logExport, to logStream) error {
	from := l.at
	if from == to {
		return nil
	}
	marks, err := e.marksOf(from)
	if err != nil {
		return err
	}
	if mark, there := marks[key.server]; there {
		if err := e.store(key, to, nil, &mark); err != nil {
			return err
		}
		if err := e.store(key, from, nil, nil); err != nil {
			return err
		}
	}
	l.at = to
	return nil
}

// marksOf are the marks of the servers that write to a stream. Called with pass held.
func (e *logExports) marksOf(s logStream) (map[kurabe.InstanceID]export.Mark, error) {
	if marks, known := e.marks[s]; known {
		return marks, nil
	}
	marks := map[kurabe.InstanceID]export.Mark{}
	if raw := e.agent.Events.Mark(s.group, s.stream); len(raw) > 0 {
		if err := json.Unmarshal(raw, &marks); err != nil {
			return nil, err
		}
	}
	e.marks[s] = marks
	return marks, nil
}

// store keeps events of a log with its mark; nil: it has none any more. Called with pass held.
func (e *logExports) store(key serverLog, to logStream, events []logevents.Event, mark *export.Mark) error {
	have, err := e.marksOf(to)
	if err != nil {
		return err
	}
	if _, there := have[key.server]; !there && mark == nil {
		return nil
	}
	marks := maps.Clone(have)
	if delete(marks, key.server); mark != nil {
		marks[key.server] = *mark
	}
	raw, err := json.Marshal(marks)
	if err != nil {
		return err
	}
	if err := e.agent.Events.Append(to.group, to.stream, events, raw); err != nil {
		return err
	}
	e.marks[to] = marks
	return nil
}
