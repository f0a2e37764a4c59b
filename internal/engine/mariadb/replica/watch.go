package replica

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/binlog"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/role"
	"kurabe/internal/engine/mariadb/transfer"
)

// watcher looks at one server over one session, and at the followers of a writer over one
// of each (follower_lag.go). It asks nothing of its own server that waits with a commit.
type watcher struct {
	roles *Roles
	i     engine.Instance
	admin *guard.Session
	can   ability
	peers map[kurabe.InstanceID]*peer
	// written is the newest transaction of the look before.
	written int64
	nudged  time.Time
	bounded time.Time
}

// OpenWatch implements engine.Replicator.
func (r *Roles) OpenWatch(ctx context.Context, i engine.Instance) (engine.Watcher, error) {
	a, err := guard.Open(ctx, i)
	if err != nil {
		return nil, fmt.Errorf("open watch: %w", err)
	}
	w := &watcher{roles: r, i: i, admin: a, peers: map[kurabe.InstanceID]*peer{}, bounded: time.Now()}
	if w.can, err = askGuard(ctx, a); err != nil {
		return nil, fmt.Errorf("open watch: %w", errors.Join(err, a.Close()))
	}
	return w, nil
}

// Close implements engine.Watcher.
func (w *watcher) Close() {
	for _, p := range w.peers {
		p.close()
	}
	_ = w.admin.Close() // whatever it says, the session is gone
}

// Look implements engine.Watcher. Positions are numbers of transactions: equal ones of two
// members mean the same history.
func (w *watcher) Look(ctx context.Context) (engine.RoleView, error) {
	if w.i.Role == nil {
		return engine.RoleView{}, w.admin.Exec(ctx, "SELECT 1")
	}
	state, err := ReadFollowing(w.i.Home)
	var v engine.RoleView
	switch {
	case err != nil:
	case state != nil:
		v, err = w.lookAtFollower(ctx)
		v.Following = v.Following && state.Rebuild == ""
		if err == nil && len(w.i.Role.Followers) > 0 { // a replica has replicas
			var list []guard.Thread
			list, err = guard.Threads(ctx, w.admin)
			v.Asks = transfer.Asks(w.i, list)
		}
	default:
		v, err = w.lookAtWriter(ctx)
	}
	if err != nil {
		return engine.RoleView{}, fmt.Errorf("look: %w", err)
	}
	return v, nil
}

// boundEvery is how often the binary log of a follower is bounded, which nothing else
// comes by to do.
const boundEvery = time.Minute

// lookAtFollower: its position is what it has received in full and has on its disk, applied or
// not. It says that it receives before its source has refused it: so something must have come, the
// name of the log first of all.
func (w *watcher) lookAtFollower(ctx context.Context) (engine.RoleView, error) {
	s, err := AskSlave(ctx, w.admin)
	if err != nil {
		return engine.RoleView{}, err
	}
	var v engine.RoleView
	if v.Position, err = Applied(ctx, w.admin); err != nil || s == nil {
		return v, err
	}
	v.Applied, v.Kept = v.Position, v.Position // what it has received only is synced by a new guard alone
	v.Lag = s.lag
	if s.received > v.Position {
		if err := synced(ctx, w.admin); err != nil {
			return v, err
		}
		v.Position = s.received
	}
	v.Following = role.Follows(w.i) && s.of(w.i) && s.receives == "Yes" && s.sourceFile != "" && s.applies
	if time.Since(w.bounded) >= boundEvery {
		// What fails is tried again, and says nothing of the server.
		_ = binlog.BoundLog(ctx, w.i)
		w.bounded = time.Now()
	}
	return v, w.heal(ctx, *s)
}

// lookAtWriter: the number is given to a transaction before it is synced, so what is
// inserted may be a few ahead of what is durable. Nobody goes by that difference: what
// counts is what followers have received.
func (w *watcher) lookAtWriter(ctx context.Context) (engine.RoleView, error) {
	note := "''"
	if w.can.groups {
		note = "@@GLOBAL.kurabe_guard_waits_for"
	}
	rows, err := w.admin.Query(ctx, "SELECT @@GLOBAL.read_only, @@GLOBAL.gtid_binlog_pos, @@GLOBAL."+WaitingSetting+", "+note)
	if err != nil {
		return engine.RoleView{}, err
	}
	v := engine.RoleView{Writing: rows[0][0] == "0"}
	if v.Inserted, err = binlog.Sequence(rows[0][1]); err != nil {
		return v, err
	}
	v.Position = v.Inserted
	waits := rows[0][2] == "1"
	if waits {
		status, err := semiSync(ctx, w.admin)
		if err != nil {
			return v, err
		}
		if status.on {
			v.WaitsFor = role.WaitedFor(w.i.Instance.Owner(), rows[0][3])
		}
	}
	list, err := guard.Threads(ctx, w.admin)
	if err != nil {
		return v, err
	}
	v.Asks = transfer.Asks(w.i, list)
	v.Followers, err = w.lookAtFollowers(ctx, list, waits, v.Inserted)
	return v, err
}

// lookAtFollowers: a follower is there when a session of its sends it the log. Any member is
// looked at: those of the assignment may have become others since the session was opened.
func (w *watcher) lookAtFollowers(ctx context.Context, list []guard.Thread, waits bool, inserted int64) (map[kurabe.InstanceID]engine.FollowerView, error) {
	hosts, err := w.admin.Query(ctx, "SHOW SLAVE HOSTS")
	if err != nil {
		return nil, err
	}
	log, err := measureLog(w.i.Home.DataDir())
	if err != nil {
		return nil, err
	}
	before, now := w.written, time.Now()
	w.written = inserted
	views := map[kurabe.InstanceID]engine.FollowerView{}
	for _, t := range list {
		id, ours := role.FollowerOf(w.i, t.User)
		if !ours || t.Command != guard.DumpCommand {
			continue
		}
		p := w.peers[id]
		if p == nil {
			p = newPeer(now)
			w.peers[id] = p
		}
		p.lookAt(w.i, addressOf(id, hosts))
		views[id] = p.view(now, before, waits, log)
	}
	for id, p := range w.peers {
		if _, there := views[id]; !there {
			p.close()
			delete(w.peers, id)
		}
	}
	return views, nil
}

// addressOf is where a follower listens, as it has told this server when it came. Sessions are
// listed in the order in which they began, and the newest counts: somebody else may have used
// the follower's id before it came, and cannot once it is there (ext/kurabe_guard/member.c).
func addressOf(id kurabe.InstanceID, hosts [][]string) address {
	for _, row := range slices.Backward(hosts) {
		if len(row) >= 3 && row[0] == role.ServerID(id) {
			return address{row[1], row[2]}
		}
	}
	return address{}
}
