package main

import (
	"context"
	"encoding/json"
	"fmt"

	"kurabe"
	"kurabe/internal/control"
	"kurabe/internal/hostlink"
	"kurabe/internal/store"
)

// The questions that hosts are asked about log files.
const (
	askLogList = "log-list"
	askLogRead = "log-read"
)

// logQuestion asks for the log files of a server, or for a piece of one.
type logQuestion struct {
	Instance     kurabe.InstanceID
	Engine       kurabe.EngineName
	Name, Marker string
	Lines        int
}

// logFiles reads log files where they are: here, or on the joined host of the server.
type logFiles struct {
	local control.LogSource
	self  kurabe.HostID
	view  *store.View
	links *hostlink.Server // nil: all is here
}

// elsewhere is the joined host that has a server, "" when its files are here.
func (l logFiles) elsewhere(id kurabe.InstanceID) kurabe.HostID {
	i, ok := l.view.Any(id.Owner())
	if !ok {
		return ""
	}
	a, ok := i.AssignmentOf(id)
	if !ok || a.Value.Host == l.self {
		return ""
	}
	return a.Value.Host
}

// List implements control.LogSource.
func (l logFiles) List(ctx context.Context, id kurabe.InstanceID, engine kurabe.EngineName) (list []kurabe.LogFile, err error) {
	host := l.elsewhere(id)
	if host == "" {
		return l.local.List(ctx, id, engine)
	}
	return list, l.ask(ctx, host, askLogList, logQuestion{Instance: id, Engine: engine}, &list)
}

// Read implements control.LogSource.
func (l logFiles) Read(ctx context.Context, id kurabe.InstanceID, engine kurabe.EngineName, name, marker string, lines int) (p kurabe.LogPortion, err error) {
	host := l.elsewhere(id)
	if host == "" {
		return l.local.Read(ctx, id, engine, name, marker, lines)
	}
	return p, l.ask(ctx, host, askLogRead, logQuestion{id, engine, name, marker, lines}, &p)
}

func (l logFiles) ask(ctx context.Context, host kurabe.HostID, kind string, q logQuestion, answer any) error {
	if l.links == nil {
		return kurabe.Errorf(kurabe.CodeUnavailable, "the log files are on host %s, and the service was started without --host-listen", host)
	}
	err := l.links.Ask(ctx, host, kind, q, answer)
	if code := kurabe.CodeOf(err); err == nil || code != kurabe.CodeInternal {
		return err
	}
	return &kurabe.Error{Code: kurabe.CodeUnavailable, Message: fmt.Sprintf("the log files are on host %s, which does not answer; try again", host), Err: err}
}

// hostAnswerer answers what logFiles, followings and strikes ask. lags are those of the host's
// agent.
func hostAnswerer(local control.LogSource, lags func() []kurabe.ReplicaLag, drills hostDrills) hostlink.Answerer {
	return func(ctx context.Context, kind string, body json.RawMessage) (any, error) {
		switch kind {
		case askReplicaLag:
			return lags(), nil
		case askDrillPermit, askDrillPermitLasting, askDrillStrike, askDrillHold:
			return drills.answer(ctx, kind, body)
		}
		var q logQuestion
		if err := json.Unmarshal(body, &q); err != nil {
			return nil, err
		}
		switch kind {
		case askLogList:
			return local.List(ctx, q.Instance, q.Engine)
		case askLogRead:
			return local.Read(ctx, q.Instance, q.Engine, q.Name, q.Marker, q.Lines)
		}
		return nil, fmt.Errorf("a newer service asks for %.40q", kind)
	}
}
