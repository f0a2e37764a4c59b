package agent

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kurabe/internal/agent/replication"
	"kurabe/internal/engine"
)

// That a standby is silent is told at once, and that the service is heard since, once it is. Each
// silence is another one.
func TestSilenceIsConfirmed(t *testing.T) {
	inLease(t, func(b *bed) {
		var mu sync.Mutex
		silent := false
		b.group.say("db-1", func(context.Context) (engine.RoleView, error) {
			v := obeys(leasedWriter(3, 0), b.leases.now())
			mu.Lock()
			defer mu.Unlock()
			f := v.Followers[second]
			if f.FollowedAt = b.leases.now(); silent {
				f.HeardAgo = replication.SilentMost
			}
			v.Followers[second] = f
			return v, nil
		})
		set := func(to bool) {
			mu.Lock()
			silent = to
			mu.Unlock()
			time.Sleep(2 * replication.LookEvery)
			synctest.Wait()
		}
		want := func(what string, silent, unheard bool) {
			t.Helper()
			if r := b.lastMember("db-1").Role; (len(r.SilentFollowers) > 0) != silent || r.CutOff != unheard {
				b.Errorf("%s: silent %v, unheard %v", what, r.SilentFollowers, r.CutOff)
			}
		}
		want("before", false, false)
		set(true)
		want("while the service answers", true, false)
		set(false)
		want("it is back", false, false)
		b.leases.setGrants(false)
		set(true)
		want("while nobody answers", true, true)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		want("as long as that", true, true)
		b.leases.setGrants(true)
		time.Sleep(replication.LookEvery)
		synctest.Wait()
		want("once the service is heard", true, false)
		b.leases.setGrants(false)
		time.Sleep(time.Second)
		synctest.Wait()
		want("it was heard since", true, false)
	})
}
