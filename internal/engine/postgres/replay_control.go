package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/postgres/wal"
	"kurabe/internal/proc"
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
