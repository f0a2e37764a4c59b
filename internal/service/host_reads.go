package service

import (
	"context"
	"path/filepath"

	"kurabe"
	"kurabe/internal/drill"
	"kurabe/internal/hostread"
	"kurabe/internal/insights"
	"kurabe/internal/load"
	"kurabe/internal/logs"
	"kurabe/internal/proxy/process"
	"kurabe/internal/store"
)

// The questions that hosts are asked about log files.
var (
	logList = hostread.Kind[logQuestion, []kurabe.LogFile]{Name: "log-list", Class: hostread.Logs}
	logRead = hostread.Kind[logQuestion, kurabe.LogPortion]{Name: "log-read", Class: hostread.Logs}
)

// logQuestion asks for the log files of a server, or for a piece of one.
type logQuestion struct {
	Instance     kurabe.InstanceID
	Engine       kurabe.EngineName
	Name, Marker string
	Lines        int
}

// handleReads has this host answer all questions.
func (n *node) handleReads(host kurabe.HostID) error {
	n.reads = hostread.NewHandlers(host)
	n.lost = newLosses(placeIn(n.base, "metrics-lost.json"), n.log)
	n.series = n.newSeries()
	n.series.Rehearse = n.rehearseSeries
	n.load = load.New(filepath.Join(n.base, "load"), n.flags.MaskStatements, func(id kurabe.InstanceID, reason string) {
		n.lost.note("database load", reason, id)
	})
	local := logs.New(placeIn(n.base, "instances"))
	hostread.Handle(n.reads, logList, func(ctx context.Context, q logQuestion) ([]kurabe.LogFile, error) {
		return local.List(ctx, q.Instance, q.Engine)
	})
	hostread.Handle(n.reads, logRead, func(ctx context.Context, q logQuestion) (kurabe.LogPortion, error) {
		return local.Read(ctx, q.Instance, q.Engine, q.Name, q.Marker, q.Lines)
	})
	// The agent is there before anybody can ask: questions come with its assignments.
	hostread.Handle(n.reads, replicaLag, func(context.Context, struct{}) ([]kurabe.ReplicaLag, error) { return n.agent.Lags(), nil })
	hostread.Handle(n.reads, process.StatusKind, func(ctx context.Context, q process.StatusQuestion) (process.Status, error) {
		return n.agent.ProxyStatus(ctx, q)
	})
	n.handleSeries()
	n.handleLoad()
	drill.Handle(n.reads, drill.NewPermits(host, placeIn(n.base, "instances"), drill.GuardCommand), n.log)
	return n.openLogEvents(host)
}

// handleServerReads has the host of a server answer also for the queries of logs that it started.
func (s *Service) handleServerReads() error {
	if err := s.handleReads(s.hostFile.ID); err != nil {
		return err
	}
	s.queries = insights.NewQueries(s.hostFile.ID)
	s.queries.Handle(s.reads)
	return nil
}

// hosts are what this server asks.
func (s *Service) hosts() hostread.Hosts {
	h := hostread.Hosts{Here: s.reads}
	if s.links != nil {
		h.Far = s.links.Carry
	}
	return h
}

// logFiles reads log files where they are.
type logFiles struct {
	hosts hostread.Hosts
	self  kurabe.HostID
	view  *store.View
}

// host is where a server's files are.
func (l logFiles) host(id kurabe.InstanceID) kurabe.HostID {
	if i, ok := l.view.Any(id.Owner()); ok {
		if a, ok := i.AssignmentOf(id); ok {
			return a.Value.Host
		}
	}
	return l.self
}

// List implements control.LogSource.
func (l logFiles) List(ctx context.Context, id kurabe.InstanceID, engine kurabe.EngineName) ([]kurabe.LogFile, error) {
	return hostread.Ask(ctx, l.hosts, l.host(id), logList, logQuestion{Instance: id, Engine: engine})
}

// Read implements control.LogSource: a portion is the first chunk of the file from a marker on.
func (l logFiles) Read(ctx context.Context, id kurabe.InstanceID, engine kurabe.EngineName, name, marker string, lines int) (p kurabe.LogPortion, err error) {
	for p, err = range hostread.Stream(ctx, l.hosts, l.host(id), logRead, logQuestion{id, engine, name, marker, lines}, nextPortion) {
		break
	}
	return p, err
}

func nextPortion(q *logQuestion, p kurabe.LogPortion) bool {
	q.Marker = p.Marker
	return p.More
}
