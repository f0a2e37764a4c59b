package mariadb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/binlog"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/replica"
	"kurabe/internal/volume"
)

var _ engine.Logger = (*Driver)(nil)

// binaryLog implements engine.Log: it asks the server where its binary log ends, and
// reads the files.
type binaryLog struct {
	admin *guard.Session
	root  *volume.Root // the data folder
	dir   string
	read  binlog.Place // how far Copy has come
	// group: followers need the log, too, and commits may wait for them.
	group bool
}

// OpenLog implements engine.Logger. A server that has not been restarted since the
// log was asked for has none, and is not ready.
func (d *Driver) OpenLog(ctx context.Context, i engine.Instance) (engine.Log, error) {
	a, err := guard.Open(ctx, i)
	if err != nil {
		return nil, fmt.Errorf("open the binary log: %w", err)
	}
	l := &binaryLog{admin: a, dir: i.Home.DataDir(), group: i.Role != nil}
	err = l.usable(ctx)
	if err == nil {
		l.root, err = volume.OpenRoot(l.dir)
	}
	if err != nil {
		return nil, fmt.Errorf("open the binary log: %w", errors.Join(err, a.Close()))
	}
	return l, nil
}

// usable: what Mark promises rests on these settings.
func (l *binaryLog) usable(ctx context.Context) error {
	rows, err := l.admin.Query(ctx, "SELECT @@GLOBAL.log_bin, @@GLOBAL.sync_binlog, @@GLOBAL.binlog_checksum, @@GLOBAL.log_bin_basename")
	if err != nil {
		return err
	}
	switch r := rows[0]; {
	case r[0] != "1":
		return fmt.Errorf("%w: the server was started without a binary log", engine.ErrNotReady)
	case r[1] != "1" || r[2] != "CRC32" || filepath.Base(r[3]) != binlog.BaseName:
		return fmt.Errorf("the binary log is not as the service sets it: sync_binlog %s, binlog_checksum %s, name %s", r[1], r[2], r[3])
	}
	return nil
}

// Close implements engine.Log.
func (l *binaryLog) Close() error { return errors.Join(l.root.Close(), l.admin.Close()) }

// Begin implements engine.Log. Nothing but Release and the bound on unread logs
// (binlog/bound.go) purges a file.
func (l *binaryLog) Begin(ctx context.Context) (kurabe.LogPosition, error) {
	now, err := l.position(ctx)
	if err != nil {
		return now, fmt.Errorf("begin to read the binary log: %w", err)
	}
	now.Offset = 0
	return now, nil
}

// position is how far the log is written, and so synced: the server answers under
// the lock that is held from the write of a group of commits to its sync.
func (l *binaryLog) position(ctx context.Context) (kurabe.LogPosition, error) {
	if l.group {
		if err := replica.Unstalled(ctx, l.admin); err != nil {
			return kurabe.LogPosition{}, err
		}
	}
	rows, err := l.admin.Query(ctx, "SHOW MASTER STATUS")
	if err != nil {
		return kurabe.LogPosition{}, err
	}
	if len(rows) != 1 || len(rows[0]) < 2 {
		return kurabe.LogPosition{}, errors.New("SHOW MASTER STATUS returned no row")
	}
	return binlog.ParsePosition(rows[0][0], rows[0][1])
}

// Resume implements engine.Log: the file is there, and an event ends at the place.
func (l *binaryLog) Resume(ctx context.Context, from kurabe.LogPosition) error {
	if err := l.resume(ctx, from); err != nil {
		return fmt.Errorf("resume the binary log at %s: %w", from, err)
	}
	return nil
}

func (l *binaryLog) resume(ctx context.Context, from kurabe.LogPosition) error {
	now, err := l.position(ctx)
	if err != nil {
		return err
	}
	if from.Compare(now) > 0 {
		return fmt.Errorf("%w: it ends at %s", engine.ErrLogGone, now)
	}
	if from.Offset == 0 {
		file, _, err := binlog.Open(l.root, from.File)
		return errors.Join(err, closeFile(file))
	}
	at, _, err := l.copyFile(ctx, kurabe.LogPosition{File: from.File}, from.Offset, io.Discard)
	if err == nil && at != from.Offset {
		err = fmt.Errorf("%w: not the end of an event", engine.ErrLogGone)
	}
	return err
}

func closeFile(file *os.File) error {
	if file == nil {
		return nil
	}
	return file.Close()
}

// Mark implements engine.Log.
func (l *binaryLog) Mark(ctx context.Context) (kurabe.LogMark, error) {
	m := kurabe.LogMark{At: time.Now()}
	var err error
	if m.Position, err = l.position(ctx); err != nil {
		return kurabe.LogMark{}, fmt.Errorf("mark the binary log: %w", err)
	}
	m.Until = time.Now()
	return m, nil
}

// Copy implements engine.Log. The end of a file that a crash tore is left out: the
// server rolled it back.
func (l *binaryLog) Copy(ctx context.Context, from, to kurabe.LogPosition, w io.Writer) (kurabe.LogPosition, error) {
	next, err := l.copy(ctx, from, to, w)
	if err != nil {
		return next, fmt.Errorf("copy the binary log from %s: %w", from, err)
	}
	return next, nil
}

func (l *binaryLog) copy(ctx context.Context, from, to kurabe.LogPosition, w io.Writer) (kurabe.LogPosition, error) {
	if from.Compare(to) >= 0 {
		return from, nil
	}
	successor := binlog.FileName(binlog.FileNumber(from.File) + 1)
	_, missing := l.root.Lstat(successor)
	if from.File == to.File {
		inside, err := l.inside(to)
		if err != nil || inside || missing != nil {
			at, _, err := l.copyFile(ctx, from, to.Offset, w)
			return kurabe.LogPosition{File: from.File, Offset: at}, err
		}
		// A bound behind the end of a file that is complete: all of it.
	}
	if missing != nil {
		return from, fmt.Errorf("%w: %s does not follow: %w", engine.ErrLogGone, successor, missing)
	}
	at, last, err := l.copyFile(ctx, from, wholeFile, w)
	if err == nil && !last.Ends() && at == from.Offset && from.Offset > 0 {
		// All of it was copied before, so its last event was not read just now.
		last, err = l.lastEvent(ctx, from.File)
	}
	if err == nil && !last.Ends() {
		err = l.survivedCrash(ctx)
	}
	if err != nil {
		return kurabe.LogPosition{File: from.File, Offset: at}, err
	}
	return kurabe.LogPosition{File: successor}, nil
}

// inside says whether a position is one within its file.
func (l *binaryLog) inside(p kurabe.LogPosition) (bool, error) {
	file, size, err := binlog.Open(l.root, p.File)
	if err != nil {
		return false, err
	}
	return p.Offset <= size, file.Close()
}

// survivedCrash: a file without an end is one of a server that died. What it says is
// what the server recovered only if the engine's own log was as durable.
func (l *binaryLog) survivedCrash(ctx context.Context) error {
	rows, err := l.admin.Query(ctx, "SELECT @@GLOBAL.innodb_flush_log_at_trx_commit")
	if err == nil && rows[0][0] != "1" {
		err = fmt.Errorf("%w: the server crashed with innodb_flush_log_at_trx_commit=%s, and may have lost what its binary log has", engine.ErrLogGone, rows[0][0])
	}
	return err
}

// wholeFile copies to the end.
const wholeFile = -1

// lastEvent reads a file again, up to its end or its torn tail.
func (l *binaryLog) lastEvent(ctx context.Context, name string) (binlog.Event, error) {
	_, last, err := l.copyFile(ctx, kurabe.LogPosition{File: name}, wholeFile, io.Discard)
	return last, err
}

// copyFile copies whole events up to a length and returns where it stopped, and the
// last event. Anything that does not follow is ErrLogGone.
func (l *binaryLog) copyFile(ctx context.Context, from kurabe.LogPosition, until int64, w io.Writer) (int64, binlog.Event, error) {
	file, size, err := binlog.Open(l.root, from.File)
	if err != nil {
		return from.Offset, binlog.Event{}, err
	}
	defer file.Close()
	if until == wholeFile {
		until = size
	}
	if until > size || from.Offset > size {
		return from.Offset, binlog.Event{}, fmt.Errorf("%w: %s has %d bytes", engine.ErrLogGone, from.File, size)
	}
	r := &binlog.Reader{Source: file, At: from.Offset, Until: until, CopyTo: &targetWriter{to: w}}
	if w == io.Discard {
		r.CopyTo = w
	}
	var last binlog.Event
	if from.Offset == 0 {
		l.read = binlog.Place{At: from}
		err = r.ReadMagic()
		l.read.At.Offset = r.At
	} else if l.read.At != from {
		l.read = binlog.Place{At: from} // of which nothing is known
	}
	for err == nil {
		if err = ctx.Err(); err != nil {
			return r.At, last, context.Cause(ctx)
		}
		var e binlog.Event
		if e, err = r.Next(); err == nil {
			last = e
			l.read.Add(e)
		}
	}
	var failed *writeError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, binlog.ErrTorn):
		return r.At, last, nil
	case errors.As(err, &failed):
		return r.At, last, failed.err
	}
	return r.At, last, fmt.Errorf("%w: %s: %w", engine.ErrLogGone, from.File, err)
}

// targetWriter tells an error of the target from one of the log.
type targetWriter struct{ to io.Writer }

type writeError struct{ err error }

func (e *writeError) Error() string { return e.err.Error() }
func (e *writeError) Unwrap() error { return e.err }

func (w *targetWriter) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	if err != nil {
		return n, &writeError{err}
	}
	return n, nil
}

// Release implements engine.Log. In a group a follower that was away for a while needs
// what is fetched already: there the bound alone (binlog/bound.go) purges.
func (l *binaryLog) Release(ctx context.Context, before kurabe.LogPosition) error {
	if l.group {
		return nil
	}
	names, err := binlog.List(l.dir)
	if err == nil && len(names) > 0 && (kurabe.LogPosition{File: names[0]}).Compare(kurabe.LogPosition{File: before.File}) < 0 {
		err = binlog.Purge(ctx, l.admin, before.File)
	}
	if err != nil {
		return fmt.Errorf("release the binary log before %s: %w", before, err)
	}
	return nil
}

// OpenLogHolder implements engine.Logger. Of a group nothing but the bound purges a file
// (binlog/bound.go), also on a follower, whose own files have what it has received.
func (d *Driver) OpenLogHolder(context.Context, engine.Instance) (engine.LogHolder, error) {
	return noHolder{}, nil
}

type noHolder struct{}

func (noHolder) Hold(context.Context, kurabe.LogPosition) error { return nil }
func (noHolder) Close()                                         {}

// DropLog implements engine.Logger. A server that still writes a binary log keeps the
// newest file; one that writes none keeps its name, without content: the numbers of a
// later log go on from there, so that one name never means two files. In a group it is
// for the followers.
func (d *Driver) DropLog(ctx context.Context, i engine.Instance) error {
	if i.Role != nil {
		return nil
	}
	err := guard.With(ctx, i, func(a *guard.Session) error {
		names, err := binlog.List(i.Home.DataDir())
		if err != nil || len(names) == 0 {
			return err
		}
		rows, err := a.Query(ctx, "SELECT @@GLOBAL.log_bin")
		if err != nil {
			return err
		}
		if rows[0][0] == "1" {
			return binlog.Purge(ctx, a, names[len(names)-1])
		}
		return dropFiles(i.Home.DataDir(), names)
	})
	if err != nil {
		return fmt.Errorf("drop the binary log: %w", err)
	}
	return nil
}

// dropFiles removes the binary logs of a folder that no server writes them to, but
// for the name of the newest.
func dropFiles(dataDir string, names []string) error {
	root, err := volume.OpenRoot(dataDir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range append([]string{binlog.BaseName + ".index", binlog.BaseName + ".state"}, names...) {
		if len(names) > 0 && name == names[len(names)-1] {
			file, _, err := binlog.Open(root, name)
			if err == nil {
				err = errors.Join(file.Close(), root.Chmod(name, 0o600), truncate(root, name))
			}
			if err != nil {
				return err
			}
			continue
		}
		if err := root.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return volume.SyncDir(dataDir)
}

func truncate(root *volume.Root, name string) error {
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_TRUNC, 0)
	return errors.Join(err, closeFile(file))
}

// Two servers of an instance number their files for themselves; what they have in common are
// the numbers of transactions. The newest one before a place is therefore noted with each
// mark, and tells another server's log where it goes on.

// State implements engine.Log.
func (l *binaryLog) State(at kurabe.LogPosition) string {
	ended := at.Offset == 0 && at.File == binlog.FileName(binlog.FileNumber(l.read.At.File)+1)
	if !l.read.Known || l.read.Within() || l.read.At != at && !ended {
		return ""
	}
	return l.read.Newest.String()
}

// Continue implements engine.Log. Who has the same number from the same writer has the same
// history up to it.
func (l *binaryLog) Continue(ctx context.Context, after kurabe.LogMark) (kurabe.LogPosition, error) {
	from, err := l.goOn(ctx, after.State)
	if err != nil {
		return kurabe.LogPosition{}, fmt.Errorf("continue the binary log after %q: %w", after.State, err)
	}
	return from, nil
}

func (l *binaryLog) goOn(ctx context.Context, state string) (from kurabe.LogPosition, err error) {
	list, err := binlog.ParseGTIDs(state)
	if err != nil {
		return from, err
	}
	want, ok := binlog.Newest(list)
	if !ok {
		return from, fmt.Errorf("%w: unknown binlog position", engine.ErrElsewhere)
	}
	names, err := binlog.List(l.dir)
	if err != nil {
		return from, err
	}
	for _, name := range slices.Backward(names) {
		first, err := binlog.FirstOf(l.root, name)
		switch {
		case errors.Is(err, engine.ErrLogGone), err == nil && first.At.Offset == 0:
			continue // purged meanwhile, or it took a number only
		case err != nil:
			return from, err
		case first.Newest.Seq > want.Seq:
			continue
		case first.Newest == want:
			return kurabe.LogPosition{File: name}, nil
		}
		has, err := binlog.Contains(ctx, l.root, name, want)
		if err == nil && !has {
			err = fmt.Errorf("%w: %s does not have transaction %s", engine.ErrElsewhere, name, want)
		}
		return kurabe.LogPosition{File: name}, err
	}
	return from, fmt.Errorf("%w: the oldest file begins after transaction %s", engine.ErrLogGone, want)
}
