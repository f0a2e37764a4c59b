package replica

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/binlog"
	"kurabe/internal/engine/mariadb/conf"
	"kurabe/internal/engine/mariadb/door"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/role"
	"kurabe/internal/engine/mariadb/sqltext"
	"kurabe/internal/faultpoint"
	"kurabe/internal/volume"
)

// ApplyPoll is how often a server is asked whether it has applied all. Clients wait for it
// when it is promoted.
const ApplyPoll = 10 * time.Millisecond

// follow has a server follow the source of its assignment. What it has received it applies
// first: it may have answered for that, and whoever it answered may be dead.
func (r *Roles) follow(ctx context.Context, a *guard.Session, i engine.Instance) error {
	if i.Role.Source == nil {
		return errors.New("the assignment's role names no source to follow")
	}
	if can, err := askGuard(ctx, a); err != nil || !can.wait {
		return errors.Join(err, errUnable)
	}
	lock := r.roleLock(i.Home)
	lock.Lock()
	defer lock.Unlock()
	state, err := ReadFollowing(i.Home)
	if err != nil || state == nil {
		return errors.Join(err, errNoFollower)
	}
	if state.Position != "" {
		err = begin(ctx, a, i, state.Position)
	} else {
		err = resume(ctx, a, i, *state)
	}
	var failed *applyError
	if errors.As(err, &failed) && !failed.passes() {
		return errors.Join(err, noteBroken(i.Home, err.Error()))
	}
	if err != nil {
		return err
	}
	return admit(ctx, a, i)
}

// errUnable: it would answer for what it may lose.
var errUnable = errors.New("the guard in this server cannot serve a group; the server's error log says what it misses")

var errNoFollower = errors.New("its data is not that of a follower")

// begin is for data that has never followed: it says from where on.
func begin(ctx context.Context, a *guard.Session, i engine.Instance, position string) error {
	if _, err := binlog.ParseGTIDs(position); err != nil {
		return err
	}
	if err := shut(ctx, a, i); err != nil {
		return err
	}
	// The account that a copy was made with is in it.
	if err := DropLeftCopiers(ctx, a); err != nil {
		return err
	}
	err := a.ExecAll(ctx, "STOP SLAVE", "RESET SLAVE ALL")
	if err == nil {
		err = setPosition(ctx, a, i, position)
	}
	if err == nil {
		err = a.Exec(ctx, changeSource(i))
	}
	if err != nil {
		return fmt.Errorf("begin to follow at %s: %w", position, err)
	}
	faultpoint.Reach("after", "change-source")
	err = binlog.ForgetPlace(i.Home.DataDir())
	if err == nil {
		err = WriteFollowing(i.Home.DataDir(), Following{})
	}
	if err != nil {
		return err
	}
	return startSlave(ctx, a)
}

// Modes of the folder of the system schema.
const (
	schemaOpen   = 0o700
	schemaClosed = 0o500 // as the guard leaves it
)

// setPosition empties a table of the system schema, which makes its file anew, so the
// folder is open meanwhile. No client is in a follower; a promotion closes it again if we
// die here.
func setPosition(ctx context.Context, a *guard.Session, i engine.Instance, position string) error {
	if err := setSchema(i, schemaOpen); err != nil {
		return err
	}
	err := a.Exec(ctx, "SET GLOBAL gtid_slave_pos = "+sqltext.Literal(position))
	return errors.Join(err, setSchema(i, schemaClosed))
}

func setSchema(i engine.Instance, mode os.FileMode) error {
	root, err := volume.OpenRoot(i.Home.DataDir())
	if err != nil {
		return err
	}
	defer root.Close()
	return root.Chmod(conf.SystemSchema, mode)
}

// resume goes on, with the same source or another one.
func resume(ctx context.Context, a *guard.Session, i engine.Instance, state Following) error {
	s, err := AskSlave(ctx, a)
	if err != nil {
		return err
	}
	if s != nil && s.of(i) && s.receives != "No" && s.applies {
		return nil
	}
	if err := settleReceived(ctx, a, i); err != nil {
		return fmt.Errorf("apply the relay log: %w", err)
	}
	if err := a.Exec(ctx, changeSource(i)); err != nil {
		return fmt.Errorf("follow %s: %w", i.Role.Source.ID, err)
	}
	if state.Holds {
		if err := WriteFollowing(i.Home.DataDir(), Following{}); err != nil {
			return err
		}
	}
	return startSlave(ctx, a)
}

func startSlave(ctx context.Context, a *guard.Session) error {
	if err := a.Exec(ctx, "START SLAVE"); err != nil {
		return fmt.Errorf("start to follow: %w", err)
	}
	return nil
}

// changeSource names the source. The account has no password: what lets this member in is
// the key that its server has anyway, which never leaves the host. The source is known by
// its certificate, which must be for this address.
func changeSource(i engine.Instance) string {
	tls, source := i.Seen().TLSDir(), i.Role.Source
	words := []string{
		"MASTER_HOST=" + sqltext.Literal(source.Address), "MASTER_PORT=" + strconv.Itoa(source.Port),
		"MASTER_USER=" + sqltext.Literal(role.MemberName(i.Instance)), "MASTER_PASSWORD=''",
		"MASTER_SSL=1", "MASTER_SSL_VERIFY_SERVER_CERT=1", "MASTER_SSL_CA=" + sqltext.Literal(filepath.Join(tls, door.AuthorityFile)),
		"MASTER_SSL_CERT=" + sqltext.Literal(filepath.Join(tls, door.CertificateFile)), "MASTER_SSL_KEY=" + sqltext.Literal(filepath.Join(tls, door.KeyFile)),
		"MASTER_CONNECT_RETRY=" + strconv.Itoa(conf.RetrySeconds), "MASTER_HEARTBEAT_PERIOD=" + conf.HeartbeatSeconds, "MASTER_USE_GTID=slave_pos",
	}
	return "CHANGE MASTER TO " + strings.Join(words, ", ")
}

// settleReceived returns when nothing more is received, and all that was is applied. A
// transaction of which a part was received is not: nobody has answered for it.
//
// While one of its threads lives the server knows what it lacks. A server that was started
// anew does not: it would throw away what it has received (start_slave_threads purges the
// relay logs where positions are GTIDs), so it is told to read its files on. One that was told
// that already has not come to their end for certain, and its threads know of no newest one.
func settleReceived(ctx context.Context, a *guard.Session, i engine.Instance) error {
	s, err := AskSlave(ctx, a)
	if err != nil || s == nil {
		return err
	}
	lives := s.applies || s.receives != "No"
	failed := &applyError{s.whyNotApply}
	switch {
	case !s.usesGTID:
		err = applyLeft(ctx, a, i)
	case !s.applies && failed.number != 0 && !failed.passes():
		return failed
	case lives:
		if !s.applies {
			err = a.Exec(ctx, "START SLAVE SQL_THREAD")
		}
		if err == nil {
			err = a.Exec(ctx, "STOP SLAVE IO_THREAD")
		}
		if err == nil {
			err = awaitApplied(ctx, a)
		}
	default:
		err = applyLeft(ctx, a, i)
	}
	if err != nil {
		return err
	}
	return a.Exec(ctx, "STOP SLAVE")
}

// awaitApplied is for a server whose threads have run since it was started: it knows the
// newest transaction that it has received in full.
func awaitApplied(ctx context.Context, a *guard.Session) error {
	var clients readers
	for {
		s, err := AskSlave(ctx, a)
		if err != nil {
			return err
		}
		if s == nil {
			return errNoFollower
		}
		if !s.applies && s.whyNotApply.number != 0 {
			return &applyError{s.whyNotApply}
		}
		if s.receives == "No" {
			n, err := Applied(ctx, a)
			if err != nil || n >= s.received {
				return err
			}
			if err := clients.mind(ctx, a, n); err != nil {
				return err
			}
		}
		if !s.applies {
			return errors.New("the server has stopped applying its relay log")
		}
		if err := guard.Pause(ctx, ApplyPoll); err != nil {
			return err
		}
	}
}

// AwaitRead returns when the applying thread has nothing more to read.
func AwaitRead(ctx context.Context, a *guard.Session) error {
	var clients readers
	for {
		s, err := AskSlave(ctx, a)
		switch {
		case err != nil:
			return err
		case s == nil:
			return errNoFollower
		case s.applies && s.applyState == allRead:
			return nil
		case !s.applies && s.whyNotApply.number != 0:
			return &applyError{s.whyNotApply}
		case !s.applies:
			return errors.New("the server has stopped reading its relay log")
		}
		n, err := Applied(ctx, a)
		if err == nil {
			err = clients.mind(ctx, a, n)
		}
		if err != nil {
			return err
		}
		if err := guard.Pause(ctx, ApplyPoll); err != nil {
			return err
		}
	}
}

// applyError is a transaction that cannot be applied.
type applyError struct{ reason }

func (e *applyError) Error() string {
	return "a transaction of the source cannot be applied: " + e.String()
}

// passing are errors that say nothing of the data: locks, disk, memory, network.
var passing = []int{1021, 1037, 1038, 1041, 1114, 1158, 1159, 1160, 1161, 1205, 1213, 2013}

func (e *applyError) passes() bool { return slices.Contains(passing, e.number) }
