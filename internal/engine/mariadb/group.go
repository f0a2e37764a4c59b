package mariadb

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"kurabe"
	"kurabe/internal/engine"
)

var (
	_ engine.Refuser = (*Driver)(nil)
	_ engine.Feeder  = (*Driver)(nil)
)

// A member of a group comes to the server that it follows as the first, by its
// certificate. The second is how a writer looks at its followers, with a password that
// stays on its host. Neither has a right that the master user has not, as for every
// account of ours. kurabe_guard knows both beginnings.
const (
	memberPrefix = "rdsmember_"
	lookPrefix   = "rdslook_"
)

// memberForm is that of both; the end is of the instance, so that no name of a user's is
// taken for one.
var memberForm = regexp.MustCompile(`^(?:` + memberPrefix + `|` + lookPrefix + `)[1-9][0-9]*_[0-9a-f]{8}$`)

func memberName(id kurabe.InstanceID) string { return memberPrefix + nameOf(id) }

func lookName(id kurabe.InstanceID) string { return lookPrefix + nameOf(id) }

func nameOf(id kurabe.InstanceID) string {
	sum := fnv.New32a()
	fmt.Fprint(sum, id.Owner())
	return fmt.Sprintf("%d_%08x", id.Number(), sum.Sum32())
}

// writes, follows: what the assignment says, not what the server does by now.
func writes(i engine.Instance) bool { return i.Role != nil && i.Role.Duty == kurabe.DutyWrite }

func follows(i engine.Instance) bool { return i.Role != nil && i.Role.Duty == kurabe.DutyFollow }

// holds says whether a follower is to follow nobody.
func holds(i engine.Instance) bool { return i.Role != nil && i.Role.Duty == kurabe.DutyHold }

// answers says whether a server answers for commits of the one that it follows: it is of the
// same group. A read replica answers for nothing.
func answers(i engine.Instance) bool {
	return holds(i) || follows(i) && (!reads(i) || i.Role.Source != nil && i.Role.Source.ID.Owner() == i.Instance.Owner())
}

// keepsOut says whether a server of a group lets no client in: a follower shows an older
// state than its writer, which only a read replica is there for, one that yields or rests is
// about to end, and one that is held may show what others lack.
func keepsOut(i engine.Instance) bool { return i.Role != nil && (i.Held || !writes(i)) && !reads(i) }

// waitsFor are those whose answer commits of the server wait for, once it has loaded that.
func waitsFor(i engine.Instance) []kurabe.InstanceID {
	if i.Role == nil || follows(i) || holds(i) {
		return nil
	}
	return i.Role.WaitFor
}

// keepsBinlog says whether the server writes a binary log: followers live on it, whether
// somebody keeps it for a restore or not. It is all of a group that takes a restart, and one
// that loses its role loses the log only in a clean stop; the planner sees to both.
func keepsBinlog(i engine.Instance) bool { return i.Log || i.Binlog || i.Role != nil }

// waitText says whom commits wait for, by their numbers for us, and by what the server knows
// its followers by for kurabe_guard, which lets nobody else's answer count. Their order has no
// meaning. waitedFor reads it.
func waitText(ids []kurabe.InstanceID) string {
	sorted := slices.SortedFunc(slices.Values(ids), func(a, b kurabe.InstanceID) int { return a.Number() - b.Number() })
	words := make([]string, len(sorted))
	for n, id := range sorted {
		words[n] = strconv.Itoa(id.Number()) + ":" + serverID(id)
	}
	return strings.Join(words, " ")
}

func waitedFor(owner kurabe.InstanceID, text string) []kurabe.InstanceID {
	var ids []kurabe.InstanceID
	for word := range strings.FieldsSeq(text) {
		word, _, _ := strings.Cut(word, ":") // an earlier service noted numbers alone
		if number, err := strconv.Atoi(word); err == nil && number > 0 {
			ids = append(ids, owner.Member(number))
		}
	}
	return ids
}

// errBroken is what becomes of a follower that can follow no more. Its data must not
// become a writer's either.
var errBroken = errors.New("its data must be cloned")

// assume makes a running server what its role says, as far as statements do it. What ends
// or begins the role of a writer is Promote's.
func (d *Driver) assume(ctx context.Context, a *admin, i engine.Instance) error {
	if i.Role == nil {
		return nil
	}
	state, err := readFollowing(i.Home)
	switch {
	case err != nil:
		return err
	case state != nil && state.Rebuild != "":
		return fmt.Errorf("%w: %s", errBroken, state.Rebuild)
	case follows(i):
		return d.follow(ctx, a, i)
	case holds(i) && state != nil:
		return d.receiveNothing(ctx, a, i, *state)
	case state != nil:
		return fmt.Errorf("%w: it follows, and has not been promoted", engine.ErrNotReady)
	case writes(i):
		err = openWrites(ctx, a, i)
	}
	if err == nil && keepsOut(i) {
		err = endSessions(ctx, a)
	}
	return err
}

// openWrites lets a server of a group write: each is started without that, because one
// that was told to write may be a follower still.
func openWrites(ctx context.Context, a *admin, i engine.Instance) error {
	rows, err := a.query(ctx, "SELECT @@GLOBAL.read_only, @@GLOBAL.event_scheduler")
	if err != nil {
		return err
	}
	if rows[0][0] != "0" {
		if err := a.exec(ctx, "SET GLOBAL read_only = 0"); err != nil {
			return fmt.Errorf("let it write: %w", err)
		}
	}
	want := "OFF"
	if isOn.MatchString(i.Settings[eventScheduler]) && !keepsOut(i) {
		want = "ON"
	}
	return setScheduler(ctx, a, rows[0][1], want)
}

func setScheduler(ctx context.Context, a *admin, have, want string) error {
	if strings.EqualFold(have, want) || strings.EqualFold(have, "DISABLED") {
		return nil
	}
	if err := a.exec(ctx, "SET GLOBAL event_scheduler = "+want); err != nil {
		return fmt.Errorf("set the scheduler of events: %w", err)
	}
	return nil
}

const eventScheduler = "event_scheduler"

// roleLock is held while the role of a server changes: what looks at it must not set a
// follower going again that is being promoted.
func (d *Driver) roleLock(h engine.Home) *sync.Mutex {
	lock, _ := d.roles.LoadOrStore(h.Dir, &sync.Mutex{})
	return lock.(*sync.Mutex)
}
