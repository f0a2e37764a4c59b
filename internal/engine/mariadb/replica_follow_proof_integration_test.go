//go:build integration

package mariadb

import (
	"strconv"
	"testing"

	"kurabe"
	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/mariadb/door"
	"kurabe/internal/engine/mariadb/replica"
	"kurabe/internal/proc"
)

// lookAsBefore looks at the follower as the host of a writer of an earlier service does.
func (p pair) lookAsBefore(t *testing.T) {
	t.Helper()
	f := p.follower.Instance()
	db, err := replica.LookPool(p.writer.Instance(), f.Listens(), strconv.Itoa(f.Port))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	all, err := door.NamedAll(t.Context(), db, "SHOW SLAVE STATUS; "+replica.SyncedQuery)
	if err != nil || len(all) != 2 || len(all[0]) != 1 || len(all[1]) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
}

// Of a follower that was promoted it is known when it was asked last whether it follows, if each
// host that asked says so, in this very run of its server, and if there is no other follower.
func TestGroupLastWord(t *testing.T) {
	enginetest.OnceIsEnough(t)
	for name, c := range map[string]struct {
		before, restarted, another, cluster, replica bool
	}{
		"it was asked":                          {},
		"it was asked as before":                {before: true},
		"it was started again since":            {restarted: true},
		"another one may have been asked since": {another: true},
		"it is of a cluster":                    {cluster: true},
		"it has a read replica":                 {replica: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t)
			d := p.follower.Driver.(*Driver)
			before := proc.Boottime()
			if c.before {
				p.lookAsBefore(t)
			}
			p.awaitFollowing(t) // by a watch at the writer, which asks it, and ends
			if at, err := d.LastWord(t.Context(), p.follower.Instance()); at != 0 || err != nil {
				t.Fatalf("of a follower that was not promoted it says %d, %v", at, err)
			}
			p.writer.Crash(t)
			between := proc.Boottime()
			if c.restarted {
				p.follower.Want.Boot++
				p.follower.Satisfy(t)
			}
			p.promote(t)
			i := p.follower.Instance()
			role := *i.Role
			if c.another {
				role.Followers = []kurabe.InstanceID{i.Instance.Member(1), i.Instance.Member(3)}
			}
			if c.replica {
				role.Followers = append(role.Followers, "db-AAAAAAAAAAAAAAAAAAAAAAAAAA")
			}
			if i.Role = &role; c.cluster {
				i.ReaderAddress = i.Address
			}
			at, err := d.LastWord(t.Context(), i)
			known := !c.before && !c.restarted && !c.another && !c.cluster
			if err != nil || known != (at != 0) || known && (at < before || at > between) {
				t.Errorf("it was asked last at %d, %v; want %v, from %d to %d", at, err, known, before, between)
			}
		})
	}
}
