package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/postgres/wal"
	"kurabe/internal/proc"
	"kurabe/internal/volume"
)

// control is what pg_control says of a cluster that no server works on.
type control struct {
	state      string
	checkpoint wal.LSN
	timeline   uint32 // of the checkpoint
	segments   wal.Segments
	checksums  bool
	unended    bool // a recovery from a copy has not come to the end of that copy
	// settings are those that recovery must not fall short of, by their names.
	settings map[string]string
}

// The cluster's state in pg_controldata's words. The second is that of a follower.
const (
	controlShutDown         = "shut down"
	controlShutDownFollower = "shut down in recovery"
)

// controlSettings are settings that recovery needs as they were, by the tool's words.
var controlSettings = map[string]string{
	"max_connections setting":        "max_connections",
	"max_worker_processes setting":   "max_worker_processes",
	"max_wal_senders setting":        "max_wal_senders",
	"max_prepared_xacts setting":     "max_prepared_transactions",
	"max_locks_per_xact setting":     "max_locks_per_transaction",
	"track_commit_timestamp setting": "track_commit_timestamp",
}

func readControlData(ctx context.Context, p *private) (control, error) {
	out, err := p.tool(ctx, controlTool, p.Seen(p.data))
	if err != nil {
		return control{}, err
	}
	return parseControlData(string(out))
}

const controlTool = "pg_controldata"

// stoppedAt is where the log of a server ends that was shut down cleanly: after its
// last checkpoint. Of one that ended otherwise only a recovery would tell, so it is
// the zero position.
func stoppedAt(ctx context.Context, i engine.Instance) (kurabe.LogPosition, error) {
	c, end, err := checkpointEnd(ctx, i)
	if err != nil || c.state != controlShutDown {
		return kurabe.LogPosition{}, err
	}
	return c.segments.Position(c.timeline, end), nil
}

// checkpointEnd is what a server that was shut down has noted, and the end of its last
// checkpoint; of one that ended otherwise, 0.
func checkpointEnd(ctx context.Context, i engine.Instance) (control, wal.LSN, error) {
	c, err := ownControl(ctx, i)
	if err != nil || c.state != controlShutDown {
		return c, 0, err
	}
	log := &wal.Scanner{
		Dir: filepath.Join(i.Home.DataDir(), wal.Dir), Segments: c.segments, Timeline: c.timeline,
		Limit: c.checkpoint + wal.PageBytes, // a checkpoint is a hundred bytes
	}
	defer log.Close()
	r, err := log.Read(c.checkpoint)
	return c, r.End, err
}

// ownControl is that of an instance's data folder.
func ownControl(ctx context.Context, i engine.Instance) (control, error) {
	var out bytes.Buffer
	err := memberTool(ctx, i, proc.Tool{Dir: "/", Argv: []string{controlTool, seenPath(i, i.Home.DataDir())}, Stdout: &out})
	if err != nil {
		return control{}, err
	}
	return parseControlData(out.String())
}

// parseControlData reads the tool's lines of a name, a colon and a value. It warns of
// a wrong checksum in the same output and goes on, so that is looked for.
func parseControlData(out string) (control, error) {
	if strings.Contains(out, "WARNING:") {
		return control{}, &recoveryError{"pg_control is damaged"}
	}
	values := map[string]string{}
	for text := range strings.Lines(out) {
		if name, value, ok := strings.Cut(text, ":"); ok {
			values[name] = strings.TrimSpace(value)
		}
	}
	c := control{
		state: values["Database cluster state"], unended: values["End-of-backup record required"] == "yes", settings: map[string]string{},
	}
	var err error
	c.checkpoint, err = wal.ParseLSN(values["Latest checkpoint location"])
	timeline, timelineErr := strconv.ParseUint(values["Latest checkpoint's TimeLineID"], 10, 32)
	bytes, bytesErr := strconv.ParseInt(values["Bytes per WAL segment"], 10, 64)
	checksums, sumErr := strconv.Atoi(values["Data page checksum version"])
	if err = errors.Join(err, timelineErr, bytesErr, sumErr); err != nil {
		return control{}, fmt.Errorf("read pg_controldata: %w", err)
	}
	c.timeline, c.checksums = uint32(timeline), checksums != 0
	for words, name := range controlSettings {
		value, ok := values[words]
		if !ok {
			return control{}, fmt.Errorf("read pg_controldata: no %s", words)
		}
		c.settings[name] = value
	}
	c.segments, err = wal.NewSegments(bytes)
	return c, err
}

// floors are what a server that follows must not have less of than the one that wrote the
// log, with the server's own defaults (manual, "Administrator's Overview" of hot standby).
var floors = map[string]int{
	"max_connections": 100, "max_locks_per_transaction": 64, "max_prepared_transactions": 0, "max_wal_senders": 10, "max_worker_processes": 8,
}

// optionsFile is where a server notes the arguments that it was started with.
const optionsFile = "postmaster.opts"

// floors are for a server that may not start with less of some settings than the data wants. A follower that has not replayed yet that its writer has
// less of something now, must start with as much as before. Its control file says how much
// that is, as of what it has replayed. One that was killed replays some of that again, and
// may meet settings of long before: it starts with what it ran with when it replayed them
// first, which is why every follower is told all of them as arguments.
//
// One whose data was restored is no follower: nobody reads while it recovers, so it needs room
// for the prepared transactions of its source and for nothing else. It has that room until its
// next start, if its own parameters say less.
func (d *Driver) floors(ctx context.Context, i engine.Instance) ([]string, error) {
	follows := d.IsFollower(i.Home)
	if !follows && !i.Fresh {
		return nil, nil
	}
	c, err := ownControl(ctx, i)
	if err != nil {
		return nil, err
	}
	if !follows {
		return preparedArgs(i, c), nil
	}
	var before string
	if c.state != controlShutDownFollower && c.state != controlShutDown {
		text, err := volume.ReadFile(filepath.Join(i.Home.DataDir(), optionsFile))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		before = string(text)
	}
	return floorArgs(i, c, before), nil
}

// preparedFloor is the one that recovery needs whether or not anybody reads meanwhile
// (RestoreTwoPhaseData and PrescanPreparedTransactions of the server).
const preparedFloor = "max_prepared_transactions"

// preparedArgs are none where the parameters of the instance have room enough.
func preparedArgs(i engine.Instance, c control) []string {
	need, err := strconv.Atoi(c.settings[preparedFloor])
	own, _ := strconv.Atoi(i.Settings[preparedFloor]) // not set: the server's default is 0
	if err != nil || need <= own {
		return nil
	}
	return []string{"-c", preparedFloor + "=" + strconv.Itoa(need)}
}

// optionForm is one of floorArgs as the server notes it.
var optionForm = regexp.MustCompile(`"-c" "([a-z_]+)=([0-9]+)"`)

// floorArgs are the largest of what the assignment, the control file and the arguments of
// the start before say.
func floorArgs(i engine.Instance, c control, before string) []string {
	most := maps.Clone(floors)
	for name := range most {
		if n, err := strconv.Atoi(i.Settings[name]); err == nil {
			most[name] = n
		}
	}
	for _, l := range plumbing(i) {
		if n, err := strconv.Atoi(l.value); err == nil && floored(l.name) {
			most[l.name] = n
		}
	}
	raise := func(name, value string) {
		if n, err := strconv.Atoi(value); err == nil && floored(name) {
			most[name] = max(most[name], n)
		}
	}
	for name, value := range c.settings {
		raise(name, value)
	}
	for _, m := range optionForm.FindAllStringSubmatch(before, -1) {
		raise(m[1], m[2])
	}
	var args []string
	for _, name := range slices.Sorted(maps.Keys(most)) {
		args = append(args, "-c", name+"="+strconv.Itoa(most[name]))
	}
	return args
}

func floored(name string) bool {
	_, is := floors[name]
	return is
}
