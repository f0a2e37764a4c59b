package replica

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/role"
)

// RefuseClients implements engine.Refuser. Events of the scheduler write as clients do.
func (r *Roles) RefuseClients(ctx context.Context, i engine.Instance) error {
	err := guard.With(ctx, i, func(a *guard.Session) error {
		rows, err := a.Query(ctx, "SELECT @@GLOBAL.event_scheduler")
		if err == nil {
			err = a.Exec(ctx, "SET GLOBAL kurabe_guard_hold = 1")
		}
		if err == nil {
			err = setScheduler(ctx, a, rows[0][0], "OFF")
		}
		if err == nil {
			err = endSessions(ctx, a)
		}
		if err == nil {
			err = leaveOthers(ctx, a, i)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("refuse clients: %w", err)
	}
	return nil
}

// errNoThread is that of a session that has ended by itself.
const errNoThread = 1094

// goodbyeMost is how long the sessions of clients may take to end: a commit ends with its
// answer. What is left then the stop ends, and a server that commits keep from stopping dies
// (group.c).
const goodbyeMost = time.Second

// endSessions ends those of clients, and returns when none is left; whoever comes now is
// turned away. A stop in the midst of commits would end the thread that takes their
// answers first.
func endSessions(ctx context.Context, a *guard.Session) error {
	for began := time.Now(); ; {
		left, err := killClients(ctx, a)
		if err != nil {
			return fmt.Errorf("end the sessions of clients: %w", err)
		}
		if left == 0 || time.Since(began) > goodbyeMost {
			return nil
		}
		if err := guard.Pause(ctx, ApplyPoll); err != nil {
			return err
		}
	}
}

// leaveOthers ends the sessions by which a writer sends its log to those for whom its commits
// do not wait: a stop waits until everybody has all of it, and one of them may hang. They have
// the rest from whoever writes next.
func leaveOthers(ctx context.Context, a *guard.Session, i engine.Instance) error {
	waited := role.WaitsFor(i)
	if len(waited) == 0 {
		return nil
	}
	list, err := guard.Threads(ctx, a)
	if err != nil {
		return err
	}
	for _, t := range list {
		id, ours := role.FollowerOf(i, t.User)
		if t.Command != guard.DumpCommand || ours && slices.Contains(waited, id) {
			continue
		}
		if err := kill(ctx, a, t); err != nil {
			return fmt.Errorf("stop sending the log to followers: %w", err)
		}
	}
	return nil
}

// kill ends a session, which may have ended by itself.
func kill(ctx context.Context, a *guard.Session, t guard.Thread) error {
	err := a.Exec(ctx, "KILL HARD CONNECTION "+t.ID)
	var said *guard.Error
	if errors.As(err, &said) && said.Number == errNoThread {
		return nil
	}
	return err
}

// killClients says how many there were.
func killClients(ctx context.Context, a *guard.Session) (int, error) {
	list, err := guard.Threads(ctx, a)
	if err != nil {
		return 0, err
	}
	found := 0
	for _, t := range list {
		if !guard.OfClient(t.User, t.Command) || role.MemberForm.MatchString(t.User) {
			continue
		}
		found++
		if err := kill(ctx, a, t); err != nil {
			return found, err
		}
	}
	return found, nil
}
