package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"kurabe"
	"kurabe/internal/cgroup"
	"kurabe/internal/proc"
	"kurabe/internal/snapshot"
	"kurabe/internal/volume"
)

const (
	// verifyLimit ends a verification that gets nowhere: of the largest data on the
	// slowest disk, at half a processor.
	verifyLimit = 48 * time.Hour
	// markerSlack is how much older than it should be a marker may be: the host's clock
	// is set now and then.
	markerSlack = time.Minute
)

// What a verification may take from the databases beside it. In its memory are the
// buffers of one server and what its tools sort.
const (
	verifyCPUs        = 0.5
	verifyMemoryBytes = 1 << 30
)

// VerifyRequest says what to verify.
type VerifyRequest struct {
	Snapshot kurabe.SnapshotID
	// Until is the moment to which the log is replayed before the check, zero: not at
	// all. The log must hold a mark that is not before it.
	Until time.Time
	// Settings are the parameters of the instance that it was taken of, nil when they
	// are not known any more. Statements of the log may depend on them.
	Settings map[string]string
	Progress func(done, total int64) // of the copy, in bytes; may be nil
}

// Verify restores a complete snapshot beside the instances and looks for damage: the
// sums of all files, recovery by a server of its own, the engine's tools, and the
// marker. The snapshot stays as it is, and nothing of the copy is left. Damage is a
// result that is not OK; an error says what hindered, and the call may be repeated.
// One call at a time acts on a host.
func (s *Snapshots) Verify(ctx context.Context, r VerifyRequest) (kurabe.Verification, error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, verifyLimit)
	defer cancel()
	v := &verifying{s: s, request: r}
	err := v.run(ctx)
	if v.home.Dir != "" {
		err = errors.Join(err, v.close())
	}
	if err != nil {
		return kurabe.Verification{}, fmt.Errorf("verify snapshot %s: %w", r.Snapshot, err)
	}
	v.result.At = time.Now().UTC().Round(0)
	v.result.Duration = time.Since(began)
	v.result.OK = len(v.result.Problems) == 0
	return v.result, nil
}

// verifying is one verification under way.
type verifying struct {
	s       *Snapshots
	request VerifyRequest
	from    snapshotSource
	l       *Lifecycle
	home    Home             // in the scratch folder; "" until that is made
	user    *proc.Credential // of the copy alone: nobody's whom it was taken of
	group   *cgroup.Group
	result  kurabe.Verification
}

// add notes damage, within the bounds of a result.
func (v *verifying) add(format string, args ...any) {
	v.result.Problems = bounded(v.result.Problems, fmt.Sprintf(format, args...))
}

// bounded adds a line to a list of a result.
func bounded(list []string, line string) []string {
	if len(list) >= kurabe.VerifyProblemsMax {
		return list
	}
	text := []rune(strings.ToValidUTF8(line, "?"))
	return append(list, string(text[:min(len(text), kurabe.VerifyProblemCharsMax)]))
}

func (v *verifying) run(ctx context.Context) error {
	var err error
	v.from, err = openSource(ctx, v.s.store, v.s.archive, v.request.Snapshot)
	if isDamage(err) && ctx.Err() == nil {
		v.add("%v", err)
		return nil
	}
	if err != nil {
		return err
	}
	r := v.from.record
	l, ok := v.s.engines[r.Engine]
	if !ok {
		return fmt.Errorf("engine %s is not offered by this host", r.Engine)
	}
	v.l = l
	i := v.instance()
	if i.Version.Version == "" || i.Version.Family != r.Family {
		return fmt.Errorf("%s %s is not installed on this host, nor a later one of its major", r.Engine, r.Facts.EngineVersion)
	}
	if err := v.open(ctx); err != nil {
		return err
	}
	i = v.instance()
	whole, err := v.copy(ctx)
	if err != nil || !whole {
		return err
	}
	return v.check(ctx, l.c.Driver, i)
}

// instance is what the driver is told: of the source what the files need, and nothing
// by which it could be reached.
func (v *verifying) instance() Instance {
	r := v.from.record
	i := Instance{
		Assignment: kurabe.Assignment{
			Instance: r.Source.Instance, Name: "verification of " + r.Name, Goal: kurabe.GoalRunning, Engine: r.Engine, Version: r.Facts.EngineVersion,
			MasterUsername: r.Source.MasterUsername, Locale: r.Source.Locale, Settings: enginesOnly(v.request.Settings),
			Limits: kurabe.Limits{CPUs: verifyCPUs, MemoryBytes: verifyMemoryBytes},
		},
		Home: v.home, Version: v.l.version(r.Facts.EngineVersion), User: v.user, SeenDir: v.home.Dir,
	}
	if v.group != nil {
		i.Cgroups = v.group.ProcsFiles()
	}
	return i
}

// check has the driver look at the copy.
func (v *verifying) check(ctx context.Context, logger Logger, i Instance) error {
	var r CheckRequest
	if at := v.from.record.Facts.MarkedAt; !at.IsZero() {
		r.Marker = at.Add(-markerSlack)
	}
	var err error
	if r.Replay, err = v.fetch(ctx, i); err != nil {
		return err
	}
	before := v.oomKills()
	checked, err := logger.Check(ctx, i, v.home.DataDir(), r)
	switch {
	case v.oomKills() > before:
		return fmt.Errorf("it needs more memory than the %s that it may take", kurabe.FormatBytes(verifyMemoryBytes))
	case err != nil && len(v.result.Problems) > 0 && ctx.Err() == nil:
		// The damage that was found already may well be what hinders.
		v.add("%v", err)
		return nil
	case err != nil:
		return err
	}
	// A server that finds no room says so in the same breath as one that finds damage.
	if err := v.full(checked.Problems); err != nil {
		return err
	}
	for _, p := range checked.Problems {
		// Where the copy was is nobody's business.
		v.add("%s", strings.ReplaceAll(p, v.home.DataDir()+"/", ""))
	}
	for _, note := range checked.Notes {
		v.result.Notes = bounded(v.result.Notes, note)
	}
	v.result.Marker = checked.Marker
	if r.Replay != nil {
		v.result.Until = r.Replay.At
	}
	return nil
}

// fullBytes is how little free space a disk has that is as good as full.
const fullBytes = 16 << 20

// full says that problems may have come from a disk without room.
func (v *verifying) full(problems []string) error {
	if len(problems) == 0 {
		return nil
	}
	free, err := volume.FreeBytes(v.home.Dir)
	if err != nil {
		return err
	}
	for _, p := range problems {
		if strings.Contains(p, "No space left on device") || free < fullBytes {
			return fmt.Errorf("the disk of %s is full: %s", v.home.Dir, p)
		}
	}
	return nil
}

// fetch gets the log that the check is to replay, nil for none. A damaged log is a
// finding; the snapshot is then checked alone.
func (v *verifying) fetch(ctx context.Context, i Instance) (*ReplayRequest, error) {
	facts := v.from.record.Facts
	if v.request.Until.IsZero() || v.l.c.Fetch == nil || facts.Position.File == "" {
		return nil, nil
	}
	dir, err := v.l.emptyLogDir(i)
	if err != nil {
		return nil, err
	}
	r, err := v.l.fetchLog(ctx, i, FetchRequest{
		Instance: i.Instance, From: facts.Position, TakenAt: facts.TakenAt, At: v.request.Until, Dir: dir,
	})
	if isDamage(err) && ctx.Err() == nil {
		v.add("the log after the snapshot: %v", err)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("fetch its log up to %s: %w", v.request.Until.Format(time.RFC3339), err)
	}
	return &r, nil
}

// copy brings the data into the scratch folder and compares all content with its
// sums. whole is false when what is missing leaves nothing to check.
func (v *verifying) copy(ctx context.Context) (whole bool, err error) {
	uid, gid := owner(v.user)
	opts := volume.TransferOptions{
		Owner: &volume.Owner{UID: uid, GID: gid}, BytesPerSecondMax: v.s.BytesPerSecondMax, Progress: v.request.Progress,
	}
	if v.from.archive != nil {
		_, _, err := v.from.copyTo(ctx, v.home.DataDir(), opts) // it compares by itself
		if isDamage(err) && ctx.Err() == nil {
			v.add("%v", err)
			return false, nil
		}
		return err == nil, err
	}
	return v.copyFolder(ctx, v.from.store, opts)
}

// scratchDir is where copies are checked: beside the instances, so that the file
// system can clone to it.
func (l *Lifecycle) scratchDir() string { return filepath.Join(filepath.Dir(l.c.Homes), "scratch") }

// damaged is an error that says of itself that what was read is not whole, rather
// than out of reach.
type damaged interface{ Damaged() bool }

func isDamage(err error) bool {
	var d damaged
	return errors.As(err, &d) && d.Damaged()
}

// RestoreError is a restore that can never succeed: what it reads is damaged.
type RestoreError struct {
	Kind kurabe.FailureKind // FailureSnapshot or FailureLog
	Err  error
}

// Error implements error.
func (e *RestoreError) Error() string { return e.Err.Error() }

// Unwrap gives what is damaged.
func (e *RestoreError) Unwrap() error { return e.Err }

// Retryable is false.
func (e *RestoreError) Retryable() bool { return false }

// judgeRestore says of a failed restore if it is one for good.
func judgeRestore(err error) error {
	var s *snapshot.DamagedError
	switch {
	case errors.As(err, &s):
		return &RestoreError{kurabe.FailureSnapshot, err}
	case isDamage(err):
		return &RestoreError{kurabe.FailureLog, err}
	}
	return err
}
