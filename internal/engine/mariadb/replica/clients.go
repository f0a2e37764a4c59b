package replica

import (
	"context"

	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/role"
)

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
