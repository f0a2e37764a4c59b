package service

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kurabe"
)

// Each host is asked once a second at most, all at once, and one that hangs holds nobody up:
// of its followers nothing is told.
func TestFollowings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		f := &followings{
			records: func() []kurabe.Following {
				one := func(server kurabe.InstanceID, host kurabe.HostID) kurabe.Follower {
					return kurabe.Follower{Server: server, Host: host, Kind: kurabe.FollowerReplica, Instance: string(server)}
				}
				return []kurabe.Following{{Name: "a", Followers: []kurabe.Follower{one("db-a", "here"), one("db-b", "here")}},
					{Name: "b", Followers: []kurabe.Follower{one("db-c", "hangs"), one("db-d", "away")}}}
			},
			ask: func(ctx context.Context, host kurabe.HostID) ([]kurabe.ReplicaLag, error) {
				asked.Add(1)
				switch host {
				case "hangs":
					<-ctx.Done()
					return nil, ctx.Err()
				case "away":
					return nil, errors.New("it is away")
				}
				return []kurabe.ReplicaLag{{Server: "db-a", Seconds: 2}, {Server: "db-z", Seconds: 9}}, nil
			},
		}
		began := time.Now()
		list := f.look(t.Context())
		if took := time.Since(began); took > lagTime {
			t.Errorf("it took %v", took)
		}
		a, b, c, d := list[0].Followers[0], list[0].Followers[1], list[1].Followers[0], list[1].Followers[1]
		if a.Lag == nil || a.Lag.Seconds != 2 || b.Lag == nil || b.Lag.Seconds != kurabe.ReplicaLagNone || b.Lag.Reason == "" {
			t.Errorf("on a host that answers: %+v, %+v", a, b)
		}
		if c.Lag != nil || c.Unknown == "" || d.Lag != nil || d.Unknown != "it is away" {
			t.Errorf("on hosts that do not: %+v, %+v", c, d)
		}
		f.look(t.Context())
		if n := asked.Load(); n != 3 {
			t.Errorf("asked %d times", n)
		}
		time.Sleep(lagFresh) // of the bubble's clock
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if list := f.look(gone); asked.Load() != 6 || list[0].Followers[0].Lag == nil {
			t.Errorf("after a second: asked %d times, %+v", asked.Load(), list)
		}
	})
}
