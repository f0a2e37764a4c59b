package main

import (
	"context"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/hostlink"
	"kurabe/internal/reconcile"
	"kurabe/internal/store"
)

// askReplicaLag is the question of how far the servers of a host are behind that follow.
const askReplicaLag = "replica-lag"

const (
	// lagFresh bounds how often hosts are asked, however many people look.
	lagFresh = time.Second
	// lagTime bounds one question: of a host that hangs nothing is told.
	lagTime = 1500 * time.Millisecond
)

// followings tells how what follows stands: the records, and what hosts say when somebody asks.
type followings struct {
	self  kurabe.HostID
	own   func() []kurabe.ReplicaLag
	view  *store.View
	links *hostlink.Server // nil: all is here

	mu     sync.Mutex // guards the rest; held while hosts are asked
	at     time.Time
	newest []kurabe.Following
}

// look is never older than lagFresh and what the answers take.
func (f *followings) look(ctx context.Context) []kurabe.Following {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.newest != nil && time.Since(f.at) < lagFresh {
		return f.newest
	}
	list := reconcile.Following(f.view)
	// What one of them does not wait for is the next one's, too.
	said := f.ask(context.WithoutCancel(ctx), list)
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
	f.Lag = &kurabe.ReplicaLag{Server: f.Server, Seconds: kurabe.ReplicaLagNone, Reason: "its host has no server that is to follow"}
}

// ask asks each host that has a follower, all at once.
func (f *followings) ask(ctx context.Context, list []kurabe.Following) map[kurabe.HostID]lagAnswer {
	ctx, cancel := context.WithTimeout(ctx, lagTime)
	defer cancel()
	said := map[kurabe.HostID]lagAnswer{}
	var mu sync.Mutex // guards said
	var wait sync.WaitGroup
	for _, one := range list {
		for _, follower := range one.Followers {
			host := follower.Host
			mu.Lock()
			_, asked := said[host]
			said[host] = lagAnswer{}
			mu.Unlock()
			if asked {
				continue
			}
			wait.Go(func() {
				a := f.askOne(ctx, host)
				mu.Lock()
				defer mu.Unlock()
				said[host] = a
			})
		}
	}
	wait.Wait()
	return said
}

func (f *followings) askOne(ctx context.Context, host kurabe.HostID) (a lagAnswer) {
	switch {
	case host == f.self:
		a.lags = f.own()
	case f.links == nil:
		a.err = kurabe.Errorf(kurabe.CodeUnavailable, "it is on host %s, and the service was started without --host-listen", host)
	default:
		a.err = f.links.Ask(ctx, host, askReplicaLag, struct{}{}, &a.lags)
	}
	return a
}
