package service

import (
	"context"

	"kurabe"
	"kurabe/internal/hostread"
	"kurabe/internal/load"
)

// The questions that hosts are asked about database load.
var (
	loadQuery  = hostread.Kind[load.Query, load.Answer]{Name: "load-query", Class: hostread.Query}
	loadTexts  = hostread.Kind[load.TextQuery, map[string]load.Text]{Name: "load-texts", Class: hostread.Query}
	loadCounts = hostread.Kind[load.CountQuery, load.Counts]{Name: "load-counts", Class: hostread.Query}
	// loadOfAll asks once for many instances: a host answers few questions at a time.
	loadOfAll = hostread.Kind[[]load.Query, []load.Answer]{Name: "load-of-all", Class: hostread.Query}
)

// handleLoad has this host answer for the load of its servers.
func (n *node) handleLoad() {
	hostread.Handle(n.reads, loadQuery, n.load.Query)
	hostread.Handle(n.reads, loadTexts, n.load.Texts)
	hostread.Handle(n.reads, load.LatestKind, n.load.Latest)
	hostread.Handle(n.reads, loadCounts, n.load.Counts)
	hostread.Handle(n.reads, loadOfAll, func(ctx context.Context, queries []load.Query) ([]load.Answer, error) {
		answers := make([]load.Answer, len(queries))
		for at, q := range queries {
			var err error
			if answers[at], err = n.load.Query(ctx, q); err != nil {
				return nil, err
			}
		}
		return answers, nil
	})
}

// allLoad asks all hosts for the load of their servers, so that a failover leaves no gap. It
// implements pi.Source.
type allLoad struct {
	ask   hostread.Hosts
	hosts func() []kurabe.HostID
}

// Load joins the answers of all hosts. CodeUnavailable when none answers.
func (a allLoad) Load(ctx context.Context, q load.Query) (joined load.Answer, err error) {
	_, err = hostread.AskAll(ctx, a.hosts(), seriesTime, func(ctx context.Context, host kurabe.HostID) (load.Answer, error) {
		return hostread.Ask(ctx, a.ask, host, loadQuery, q)
	}, func(answer load.Answer) { joined.Add(answer) })
	return joined, err
}

// LoadTexts joins the statements that the hosts have kept.
func (a allLoad) LoadTexts(ctx context.Context, q load.TextQuery) (map[string]load.Text, error) {
	joined := map[string]load.Text{}
	_, err := hostread.AskAll(ctx, a.hosts(), seriesTime, func(ctx context.Context, host kurabe.HostID) (map[string]load.Text, error) {
		return hostread.Ask(ctx, a.ask, host, loadTexts, q)
	}, func(texts map[string]load.Text) {
		for id, t := range texts {
			joined[id] = t
		}
	})
	return joined, err
}

// LoadCounts joins what the servers of all hosts have counted of statements.
func (a allLoad) LoadCounts(ctx context.Context, q load.CountQuery) (joined load.Counts, err error) {
	_, err = hostread.AskAll(ctx, a.hosts(), seriesTime, func(ctx context.Context, host kurabe.HostID) (load.Counts, error) {
		return hostread.Ask(ctx, a.ask, host, loadCounts, q)
	}, func(counts load.Counts) { joined.Add(counts) })
	return joined, err
}

// LoadOfAll answers many queries, of the hosts that answer in time.
func (a allLoad) LoadOfAll(ctx context.Context, queries []load.Query) ([]load.Answer, error) {
	joined := make([]load.Answer, len(queries))
	_, err := hostread.AskAll(ctx, a.hosts(), seriesTime, func(ctx context.Context, host kurabe.HostID) ([]load.Answer, error) {
		return hostread.Ask(ctx, a.ask, host, loadOfAll, queries)
	}, func(answers []load.Answer) {
		for n := range min(len(answers), len(joined)) {
			joined[n].Add(answers[n])
		}
	})
	return joined, err
}
