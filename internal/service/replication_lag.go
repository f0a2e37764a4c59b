package service

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/hostread"
	"kurabe/internal/reconcile"
)

// replicaLag asks how far the servers of a host are behind that follow.
var replicaLag = hostread.Kind[struct{}, []kurabe.ReplicaLag]{Name: "replica-lag", Class: hostread.Lag}

const (
	// lagFresh bounds how often hosts are asked, however many people look.
	lagFresh = time.Second
	// lagTime bounds one question: of a host that hangs nothing is told.
	lagTime = 1500 * time.Millisecond
)

// followings tells how what follows stands: the records, and what hosts say when somebody asks.
type followings struct {
	records func() []kurabe.Following // a list of the caller's own
	ask     func(context.Context, kurabe.HostID) ([]kurabe.ReplicaLag, error)

	mu     sync.Mutex // guards the rest; held while hosts are asked
	at     time.Time
	newest []kurabe.Following
}

func (s *Service) newFollowings() *followings {
	return &followings{
		records: func() []kurabe.Following { return reconcile.Following(s.view) },
		ask: func(ctx context.Context, host kurabe.HostID) ([]kurabe.ReplicaLag, error) {
			if host == "" {
				return nil, kurabe.Errorf(kurabe.CodeUnavailable, "it has no host yet")
			}
			return hostread.Ask(ctx, s.hosts(), host, replicaLag, struct{}{})
		},
	}
}

// look is never older than lagFresh and what the answers take. What it returns is shared.
func (f *followings) look(ctx context.Context) []kurabe.Following {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.newest != nil && time.Since(f.at) < lagFresh {
		return f.newest
	}
	list := f.records()
	// One who does not wait for the answers may not spoil them for the next.
	said := f.askAll(context.WithoutCancel(ctx), list)
	for _, one := range list {
		for n := range one.Followers {
			said[one.Followers[n].Host].tell(&one.Followers[n])
		}
	}
	f.newest, f.at = list, time.Now()
	return list
}

// lagAnswer is what a host has said.
type lagAnswer struct {
	lags []kurabe.ReplicaLag
	err  error
}

func (a lagAnswer) tell(f *kurabe.Follower) {
	if a.err != nil {
		f.Unknown = a.err.Error()
		return
	}
	for _, l := range a.lags {
		if l.Server == f.Server {
			f.Lag = &l
			return
		}
	}
	f.Lag = &kurabe.ReplicaLag{Server: f.Server, Seconds: kurabe.ReplicaLagNone, Reason: "its host has no follower of it"}
}

// askAll asks each host that has a follower, all at once.
func (f *followings) askAll(ctx context.Context, list []kurabe.Following) map[kurabe.HostID]lagAnswer {
	ctx, cancel := context.WithTimeout(ctx, lagTime)
	defer cancel()
	said := map[kurabe.HostID]lagAnswer{}
	for _, one := range list {
		for _, follower := range one.Followers {
			said[follower.Host] = lagAnswer{}
		}
	}
	var mu sync.Mutex // guards said
	var wait sync.WaitGroup
	for _, host := range slices.Collect(maps.Keys(said)) {
		wait.Go(func() {
			lags, err := f.ask(ctx, host)
			mu.Lock()
			defer mu.Unlock()
			said[host] = lagAnswer{lags, err}
		})
	}
	wait.Wait()
	return said
}
