package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/volume"
)

// waitsPoll is how often it is looked whether the server has taken up whom it waits for.
const waitsPoll = 2 * time.Millisecond

// Waits implements engine.Replicator. A session does not go by its own copy of the setting
// but by a flag in shared memory, which the checkpointer sets when it has heard of the
// reload; a session that releases others goes by its own copy. So there are two things to
// be seen (DESIGN.md): that every session that releases has the new setting, and that a
// commit waits. That nobody is waited for any more needs no proof.
func (d *Driver) Waits(ctx context.Context, i engine.Instance) error {
	if i.Role == nil || len(i.Role.WaitFor) == 0 {
		return nil
	}
	err := d.withAdmin(ctx, i, func(conn *pgx.Conn) error {
		if err := waitsAsOrdered(ctx, conn, i); err != nil {
			return err
		}
		if err := releasedByThose(ctx, conn, i.Role.WaitFor); err != nil {
			return err
		}
		return d.seeCommitWait(ctx, i, conn)
	})
	if err != nil {
		return fmt.Errorf("wait: %w", err)
	}
	return nil
}

func waitsAsOrdered(ctx context.Context, conn *pgx.Conn, i engine.Instance) error {
	var setting string
	if err := conn.QueryRow(ctx, "SELECT pg_catalog.current_setting('synchronous_standby_names')").Scan(&setting); err != nil {
		return err
	}
	if want := waitNames(i.Role.WaitFor); setting != want {
		return fmt.Errorf("the server's synchronous_standby_names is %q, not %q; have it load its settings first", setting, want)
	}
	return nil
}

// releasedByThose returns when no session of a member releases commits but those of whom one
// answer is wanted. Each writes into shared memory whether it is one of the list when it has
// heard of the reload: 1 is yes, of all of a list of this kind, 0 is no
// (SyncRepGetStandbyPriority). One that has not heard that others left the list counts these
// no more either, since it goes by what they have written.
func releasedByThose(ctx context.Context, conn *pgx.Conn, wanted []kurabe.InstanceID) error {
	names := make([]string, len(wanted))
	for n, id := range wanted {
		names[n] = memberName(id.Owner(), id)
	}
	return lookUntil(ctx, conn, `SELECT NOT EXISTS (SELECT FROM pg_catalog.pg_stat_replication
		WHERE pg_catalog.starts_with(application_name, $1) AND (sync_priority > 0) <> (application_name = ANY ($2)))`, memberPrefix, names)
}

// lookUntil asks until the answer is yes.
func lookUntil(ctx context.Context, conn *pgx.Conn, question string, args ...any) error {
	ticker := time.NewTicker(waitsPoll)
	defer ticker.Stop()
	for {
		var yes bool
		if err := conn.QueryRow(ctx, question, args...).Scan(&yes); err != nil || yes {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the server has not taken up the settings: %w", context.Cause(ctx))
		case <-ticker.C:
		}
	}
}

// seeCommitWait commits in a session of its own until that was seen to wait. Once one has
// waited, all do: the flag that made it wait is everybody's. What it commits leaves nothing
// behind but some bytes of log. When the follower is away it waits at once, and for long:
// so it is ended.
func (d *Driver) seeCommitWait(ctx context.Context, i engine.Instance, observer *pgx.Conn) error {
	conn, err := d.adminConn(ctx, i)
	if err != nil {
		return err
	}
	pid := int32(conn.PgConn().PID())
	committing, enough := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- commitAlways(committing, conn) }()
	seen := make(chan error, 1)
	looking, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		seen <- lookUntil(looking, observer, "SELECT EXISTS (SELECT FROM pg_catalog.pg_stat_get_activity($1) WHERE wait_event = 'SyncRep')", pid)
	}()
	select {
	case err = <-seen:
		err = errors.Join(err, d.endSession(ctx, i, pid))
		enough()
		<-ended
	case err = <-ended:
		enough()
		cancel()
		<-seen
		err = fmt.Errorf("the session whose commits were to be seen waiting has ended: %w", err)
	}
	closeConn(ctx, conn)
	return err
}

// commitAlways ends with an error only.
func commitAlways(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, "SET synchronous_commit = on")
	for err == nil {
		_, err = conn.Exec(ctx, "SELECT pg_catalog.pg_logical_emit_message(true, 'kurabe', ''::text)")
	}
	return err
}

// endSession ends one of our own, also one whose commit waits: its client going away would
// not.
func (d *Driver) endSession(ctx context.Context, i engine.Instance, pid int32) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbyeTimeout)
	defer cancel()
	return d.withAdmin(ctx, i, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "SELECT pg_catalog.pg_terminate_backend($1)", pid)
		return err
	})
}

// What the server writes of a commit that ends its wait for a follower (SyncRepWaitForLSN, the
// same words from 9.1 to 18). There is no counter of it, and the view of the sessions shows
// those that wait, not how a wait has ended. Nothing is written of one that was ended by the
// death of the server: nobody was answered then.
const (
	entryMark   = "]:WARNING:  "
	waitCancels = "canceling wait for synchronous replication due to user request\n"
	waitEnds    = "canceling the wait for synchronous replication and terminating connection due to administrator command\n"
)

// entryHead is how an entry begins by our log_line_prefix. Further lines of one begin with a
// tab, so nobody writes such a line by what is in a statement; a name of a user has fewer
// bytes than these words.
var entryHead = regexp.MustCompile(`^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC:`)

// ownEntry follows the time in entries of the service's sessions. A witness (DESIGN.md) is
// ended in its wait; its commit has nothing in it.
var ownEntry = []byte("[local]:" + adminRole + "@" + adminDatabase + ":[")

// sqlState is what log_error_verbosity puts before the words.
var sqlState = regexp.MustCompile(`^[0-9A-Z]{5}: `)

// countEnded counts in whole lines.
func countEnded(text []byte) (n kurabe.WaitCount) {
	for {
		at := bytes.Index(text, []byte(entryMark))
		if at < 0 {
			return n
		}
		head, rest := text[bytes.LastIndexByte(text[:at], '\n')+1:at], text[at+len(entryMark):]
		time := entryHead.Find(head)
		says := rest[len(sqlState.Find(rest)):]
		switch {
		case time == nil || bytes.HasPrefix(head[len(time):], ownEntry):
		case bytes.HasPrefix(says, []byte(waitCancels)):
			n.Cancelled++
		case bytes.HasPrefix(says, []byte(waitEnds)):
			n.Ended++
		}
		text = rest
	}
}

const (
	// endedChunk is read at once; a line that is longer is no entry of ours.
	endedChunk = 1 << 20
	// endedMost bounds one read: a server that logs everything writes less in a second.
	endedMost = 256 * endedChunk
	// logNameLength is that of a name in the form of logName, without what the server appends
	// to that of another form of log.
	logNameLength = len(logNamePrefix) + len("2006-01-02-15")
)

// ReadWaits implements engine.WaitTeller.
func (d *Driver) ReadWaits(ctx context.Context, i engine.Instance, from engine.LogPlace) (engine.LogPlace, kurabe.WaitCount, error) {
	var total kurabe.WaitCount
	names, err := errorLogs(i.Home.LogDir())
	if err != nil {
		return from, total, err
	}
	if from.File == "" {
		return newestEnd(i.Home.LogDir(), names)
	}
	at := from
	for budget := int64(endedMost); len(names) > 0 && budget > 0; names = names[1:] {
		name := names[0]
		if name < at.File {
			continue
		}
		if name > at.File {
			at = engine.LogPlace{File: name}
		}
		// The names were read before: what was written into this file before there was a
		// newer one is read now.
		n, offset, err := readEnded(ctx, filepath.Join(i.Home.LogDir(), name), at.Offset, budget)
		if err != nil {
			return from, kurabe.WaitCount{}, err
		}
		budget -= offset - at.Offset
		total, at.Offset = total.Plus(n), offset
	}
	return at, total, nil
}

// errorLogs are the names of the server's own logs, oldest first.
func errorLogs(dir string) (names []string, err error) {
	entries, err := volume.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list logs: %w", err)
	}
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasPrefix(e.Name(), logNamePrefix) && len(e.Name()) == logNameLength {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// newestEnd is the end of the newest log. Without one it is a place before any.
func newestEnd(dir string, names []string) (engine.LogPlace, kurabe.WaitCount, error) {
	if len(names) == 0 {
		return engine.LogPlace{File: logNamePrefix}, kurabe.WaitCount{}, nil
	}
	newest := names[len(names)-1]
	info, err := volume.Stat(filepath.Join(dir, newest))
	if err != nil {
		return engine.LogPlace{}, kurabe.WaitCount{}, err
	}
	return engine.LogPlace{File: newest, Offset: info.Size()}, kurabe.WaitCount{}, nil
}

// readEnded counts in a file from an offset on, to the end of its last whole line, or a little
// further than the budget.
func readEnded(ctx context.Context, path string, offset, budget int64) (total kurabe.WaitCount, end int64, err error) {
	file, err := volume.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return total, offset, nil // removed meanwhile
	}
	if err != nil {
		return total, offset, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return total, offset, err
	}
	if info.Size() == offset {
		return total, offset, nil
	}
	chunk := make([]byte, min(endedChunk, max(info.Size()-offset, 0)+1))
	for end = offset; end-offset < budget; {
		if err := ctx.Err(); err != nil {
			return total, end, err
		}
		n, err := file.ReadAt(chunk, end)
		if err != nil && !errors.Is(err, io.EOF) {
			return total, end, err
		}
		whole := bytes.LastIndexByte(chunk[:n], '\n') + 1
		if whole == 0 && n == endedChunk {
			whole = n // the rest of the line says nothing either
		}
		if whole == 0 {
			return total, end, nil
		}
		total, end = total.Plus(countEnded(chunk[:whole])), end+int64(whole)
	}
	return total, end, nil
}

// TellsWaits implements engine.WaitTeller. A session may set these for itself, which shows
// nowhere.
func (d *Driver) TellsWaits(i engine.Instance) bool {
	level, set := i.Settings["log_min_messages"]
	hides := set && slices.Contains([]string{"error", "log", "fatal", "panic"}, strings.ToLower(level))
	to, set := i.Settings["log_destination"]
	return !hides && (!set || strings.Contains(to, "stderr"))
}
