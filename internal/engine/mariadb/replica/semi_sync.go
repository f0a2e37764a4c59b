package replica

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/conf"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/role"
)

// WaitingSetting has commits wait for a follower.
const WaitingSetting = "rpl_semi_sync_master_enabled"

// Waits implements engine.Replicator. The settings say already that commits wait, and to
// set them has no delay: what is written to the binary log from then on waits. What was
// written before has a lower number than the next look shows, so it is covered by the mark
// that is made of that.
func (r *Roles) Waits(ctx context.Context, i engine.Instance) error {
	if i.Role == nil {
		return nil
	}
	err := guard.With(ctx, i, func(a *guard.Session) error {
		if len(i.Role.WaitFor) == 0 {
			return LetGo(ctx, a, i)
		}
		return waitsAsOrdered(ctx, a, i)
	})
	if err != nil {
		return fmt.Errorf("wait: %w", err)
	}
	return nil
}

// LetGo ends the waiting of commits where nobody is to be waited for, before anything else
// is asked of a server in which perhaps nothing goes on.
func LetGo(ctx context.Context, a *guard.Session, i engine.Instance) error {
	if i.Role == nil || len(role.WaitsFor(i)) > 0 {
		return nil
	}
	if err := a.Exec(ctx, "SET GLOBAL "+WaitingSetting+" = 0"); err != nil {
		return fmt.Errorf("stop waiting for standbys: %w", err)
	}
	return nil
}

func waitsAsOrdered(ctx context.Context, a *guard.Session, i engine.Instance) error {
	can, err := askGuard(ctx, a)
	switch {
	case err != nil:
		return err
	case !can.wait:
		return errors.New("the guard in the running server cannot keep a commit waiting whose session is killed; restart the server, and see its error log if that does not help")
	case !can.count && (len(i.Role.WaitFor) > 1 || len(role.GroupFollowers(i)) > 1):
		// The first answer would end the wait, whosever it is.
		return errors.New("the guard in the running server cannot tell the answers of two followers apart; restart the server, and see its error log if that does not help")
	}
	rows, err := a.Query(ctx, "SELECT @@GLOBAL."+WaitingSetting+", @@GLOBAL.rpl_semi_sync_master_wait_point, @@GLOBAL.kurabe_guard_waits_for")
	if err != nil {
		return err
	}
	if want := role.WaitText(i.Role.WaitFor); rows[0][0] != "1" || rows[0][1] != "AFTER_SYNC" || rows[0][2] != want {
		return fmt.Errorf("%s is %s, at %s, for %q, not for %q; have it load its settings first", WaitingSetting, rows[0][0], rows[0][1], rows[0][2], want)
	}
	status, err := semiSync(ctx, a)
	if err == nil && !status.on {
		err = errors.New("the server has switched the waiting of commits off by itself; its error log says why")
	}
	return err
}

// ability is what the guard in a running server can do. It may be of an earlier service, or
// not have found in the server what it changes.
type ability struct {
	groups bool // it knows what a group is
	wait   bool // commits wait, whatever is killed
	count  bool // it tells one follower's answers from another one's
	sync   bool // a follower puts on disk what it says that it has
}

func askGuard(ctx context.Context, a *guard.Session) (ability, error) {
	rows, err := a.Query(ctx, `SHOW GLOBAL VARIABLES LIKE 'kurabe\_guard\_%'`)
	var can ability
	for _, row := range rows {
		if len(row) != 2 {
			continue
		}
		switch strings.ToLower(row[0]) {
		case "kurabe_guard_waits":
			can.groups, can.wait = true, conf.IsOn(row[1])
		case "kurabe_guard_counts":
			can.sync, can.count = true, conf.IsOn(row[1])
		}
	}
	return can, err
}

// waiting is what a server says of commits that wait.
type waiting struct {
	on       bool   // none goes on without an answer
	sessions string // how many wait now, "0" for none
	through  string // how many commits have had their answer
}

// semiSync asks for it. The server answers whatever its commits wait for: it takes no lock
// that one of them holds, unlike SHOW MASTER STATUS, which waits with the second group of
// commits.
func semiSync(ctx context.Context, a *guard.Session) (waiting, error) {
	rows, err := a.Query(ctx, "SHOW GLOBAL STATUS LIKE 'Rpl\\_semi\\_sync\\_master\\_%'")
	if err != nil {
		return waiting{}, err
	}
	w := waiting{sessions: "0"}
	for _, row := range rows {
		if len(row) != 2 {
			continue
		}
		switch strings.ToLower(row[0]) {
		case "rpl_semi_sync_master_status":
			w.on = conf.IsOn(row[1])
		case "rpl_semi_sync_master_wait_sessions":
			w.sessions = row[1]
		case "rpl_semi_sync_master_yes_tx":
			w.through = row[1]
		}
	}
	return w, nil
}

// Bounds of how long a server may wait for its follower before nothing is asked of it that
// would wait, too.
const (
	stallMost = time.Second
	stallPoll = 20 * time.Millisecond
)

// errStalled is why a statement was not even begun.
var errStalled = fmt.Errorf("%w: commits wait for a follower that does not answer", engine.ErrNotReady)

// Unstalled returns when commits go through. A statement of the service's that is logged, or
// that asks where the log ends, would wait with them, also when nobody waits for it any
// more, and take one of the few sessions that the guard has: so many that the order to go
// on without the follower could not come in.
func Unstalled(ctx context.Context, a *guard.Session) error {
	first, err := semiSync(ctx, a)
	for began := time.Now(); err == nil; {
		var now waiting
		if now, err = semiSync(ctx, a); err != nil || now.sessions == "0" || now.through != first.through {
			return err
		}
		if time.Since(began) > stallMost {
			return errStalled
		}
		err = guard.Pause(ctx, stallPoll)
	}
	return err
}

// ExecLogged runs statements that go into the binary log, where there is one. What a
// follower logs of its own would be in the way of what its source logs.
func ExecLogged(ctx context.Context, a *guard.Session, i engine.Instance, statements ...string) error {
	if state, err := ReadFollowing(i.Home); err != nil || state != nil {
		return errors.Join(err, errors.New("a follower logs no writes of its own"))
	}
	if i.Role != nil {
		if err := Unstalled(ctx, a); err != nil {
			return err
		}
	}
	return a.ExecAll(ctx, append([]string{logged}, statements...)...)
}

// logged puts what follows into the binary log, where there is one: a restore to a
// moment shall have the master user and the password of that moment, and statements
// of users that speak of the master user must find it.
const logged = "SET SESSION sql_log_bin = 1"
