package mariadb

import (
	"context"
	"fmt"

	"kurabe"
	"kurabe/internal/engine"
)

// reads says whether a follower lets clients in: a read replica, or a reader of a cluster.
func reads(i engine.Instance) bool { return (follows(i) || holds(i)) && i.Role.Reads }

// followersOf are those of its own group: whoever else follows is a read replica, which
// answers for nothing.
func followersOf(i engine.Instance) []kurabe.InstanceID {
	var ids []kurabe.InstanceID
	for _, id := range i.Role.Followers {
		if id.Owner() == i.Instance.Owner() {
			ids = append(ids, id)
		}
	}
	return ids
}

// followerOf is the follower of an instance that an account's name is of.
func followerOf(i engine.Instance, name string) (kurabe.InstanceID, bool) {
	if i.Role != nil {
		for _, id := range i.Role.Followers {
			if memberName(id) == name {
				return id, true
			}
		}
	}
	return memberOf(i.Instance.Owner(), name)
}

// probeRead logs in over the endpoint as a client does, and reads. In a replica no login can
// be made for that: the account by which it comes to its source is in its data, too, and
// comes in by the certificate of this very server.
func (d *Driver) probeRead(ctx context.Context, i engine.Instance, caFile string) error {
	db, err := memberPool(i, caFile, i.Listens(), i.Port)
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	defer db.Close()
	err = db.PingContext(ctx)
	if err == nil {
		_, err = db.ExecContext(ctx, "SELECT 1")
	}
	if turnedAway(err) {
		// It answers at its endpoint; that it can be read, a session of the service's shows.
		err = withAdmin(ctx, i, func(a *admin) error { return a.exec(ctx, "SELECT 1") })
	}
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	return nil
}

// shut keeps clients out of one that reads while its system schema is open.
func shut(ctx context.Context, a *admin, i engine.Instance) error {
	if !reads(i) {
		return nil
	}
	return keepOut(ctx, a)
}

// keepOut ends the sessions of clients, and lets in no others.
func keepOut(ctx context.Context, a *admin) error {
	if err := a.exec(ctx, "SET GLOBAL kurabe_guard_hold = 1"); err != nil {
		return err
	}
	return endSessions(ctx, a)
}

// admit lets the clients of one that reads in, once it follows.
func admit(ctx context.Context, a *admin, i engine.Instance) error {
	if !reads(i) {
		return nil
	}
	return a.exec(ctx, "SET GLOBAL kurabe_guard_hold = 0")
}
