package mariadb

import (
	"context"
	"fmt"

	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/door"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/role"
)

// probeRead logs in over the endpoint as a client does, and reads. In a replica no login can
// be made for that: the account by which it comes to its source is in its data, too, and
// comes in by the certificate of this very server.
func (d *Driver) probeRead(ctx context.Context, i engine.Instance, caFile string) error {
	db, err := door.MemberPool(i, caFile, i.Listens(), i.Port)
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
		err = guard.With(ctx, i, func(a *guard.Session) error { return a.Exec(ctx, "SELECT 1") })
	}
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	return nil
}

// shut keeps clients out of one that reads while its system schema is open.
func shut(ctx context.Context, a *guard.Session, i engine.Instance) error {
	if !role.Reads(i) {
		return nil
	}
	return keepOut(ctx, a)
}

// keepOut ends the sessions of clients, and lets in no others.
func keepOut(ctx context.Context, a *guard.Session) error {
	if err := a.Exec(ctx, "SET GLOBAL kurabe_guard_hold = 1"); err != nil {
		return err
	}
	return endSessions(ctx, a)
}

// admit lets the clients of one that reads in, once it follows.
func admit(ctx context.Context, a *guard.Session, i engine.Instance) error {
	if !role.Reads(i) {
		return nil
	}
	return a.Exec(ctx, "SET GLOBAL kurabe_guard_hold = 0")
}
