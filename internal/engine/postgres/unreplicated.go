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
	"strconv"

	"kurabe/internal/engine"
	"kurabe/internal/engine/postgres/wal"
	"kurabe/internal/proc"
	"kurabe/internal/volume"
)

// CommittedAlone implements engine.Driver by the server's own reader of its log. The
// commits of the server's upkeep are among those that it counts.
func (d *Driver) CommittedAlone(ctx context.Context, i engine.Instance, caFile string) (int64, error) {
	if d.IsFollower(i.Home) {
		return 0, nil
	}
	control, err := d.finishLog(ctx, i)
	if errors.Is(err, engine.ErrRebuild) {
		return 0, fmt.Errorf("%w: %w", engine.ErrUncounted, err)
	}
	if err != nil {
		return 0, err
	}
	source, err := d.sourceHistory(ctx, i, caFile)
	if err != nil {
		return 0, err
	}
	own, err := ownHistory(i.Home.DataDir(), control.timeline)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", engine.ErrUncounted, err)
	}
	at, from, err := parted(own, source)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", engine.ErrUncounted, err)
	}
	var total int64
	for _, t := range own[at:] {
		n, err := d.commits(ctx, i, t, from)
		if err != nil {
			return 0, err
		}
		total, from = total+n, t.End
	}
	return total, nil
}

func ownHistory(dataDir string, timeline uint32) ([]wal.Stretch, error) {
	if timeline <= wal.FirstTimeline {
		return wal.ParseHistory("", timeline)
	}
	file, err := volume.Open(filepath.Join(dataDir, wal.HistoryFile(timeline)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the history of timeline %d is gone", timeline)
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, wal.HistoryBytesMost))
	if err != nil {
		return nil, err
	}
	return wal.ParseHistory(string(text), timeline)
}

func (d *Driver) sourceHistory(ctx context.Context, i engine.Instance, caFile string) ([]wal.Stretch, error) {
	conn, err := d.sourceConn(ctx, i, caFile)
	if err != nil {
		return nil, err
	}
	defer closeConn(ctx, conn)
	var recovering bool
	if err := conn.QueryRow(ctx, "SELECT pg_catalog.pg_is_in_recovery()").Scan(&recovering); err != nil {
		return nil, err
	}
	if recovering {
		return nil, fmt.Errorf("%w: the source does not write yet", engine.ErrNotReady)
	}
	var at, file string
	err = conn.QueryRow(ctx, "SELECT f.at::text, pg_catalog.pg_walfile_name(f.at) FROM pg_catalog.pg_current_wal_insert_lsn() AS f(at)").Scan(&at, &file)
	if err != nil {
		return nil, err
	}
	_, timeline, err := end(at, file)
	if err != nil {
		return nil, err
	}
	return readHistory(ctx, conn, timeline)
}

// parted is where two histories part: which stretch of the first one has what the second
// one lacks, and from where on.
func parted(own, source []wal.Stretch) (at int, from wal.LSN, err error) {
	at = -1
	for n := range min(len(own), len(source)) {
		if own[n].Timeline != source[n].Timeline {
			break
		}
		at, from = n, min(own[n].End, source[n].End)
		if own[n].End != source[n].End {
			break
		}
	}
	switch {
	case at < 0:
		return 0, 0, errors.New("the two have no timeline in common")
	case from == wal.Endless:
		return 0, 0, fmt.Errorf("both have written timeline %d", own[at].Timeline)
	}
	return at, from, nil
}

// commitLine is a line of the reader's sums: how many records there are of a kind.
var commitLine = regexp.MustCompile(`(?m)^Transaction/COMMIT(?:_PREPARED)?\s+(\d+)\s`)

// What the reader says at the end of a log that goes on no further, or has nothing more.
var (
	logEnds    = regexp.MustCompile(`error in WAL record at`)
	logHasNone = regexp.MustCompile(`could not find a valid record after`)
)

// waldumpBytesMost bounds the reader's sums, a line for each kind of record.
const waldumpBytesMost = 1 << 20

// commits counts those in a stretch of the server's own log.
func (d *Driver) commits(ctx context.Context, i engine.Instance, t wal.Stretch, from wal.LSN) (int64, error) {
	data := i.Home.DataDir()
	argv := []string{"pg_waldump", "--path=" + filepath.Join(seenPath(i, data), wal.Dir), "--stats=record", "--rmgr=Transaction",
		"--timeline=" + strconv.FormatUint(uint64(t.Timeline), 10), "--start=" + from.String()}
	if t.End != wal.Endless {
		argv = append(argv, "--end="+t.End.String())
	}
	out := &bounded{most: waldumpBytesMost}
	err := memberTool(ctx, i, proc.Tool{Dir: data, LockFile: i.Home.LockFile(), Argv: argv, Stdout: out})
	if failed := (*proc.ToolError)(nil); errors.As(err, &failed) {
		switch {
		case logHasNone.MatchString(failed.Stderr):
			return 0, nil
		case !logEnds.MatchString(failed.Stderr):
			return 0, fmt.Errorf("%w: %w", engine.ErrUncounted, err)
		}
		err = nil
	}
	if err != nil {
		return 0, err
	}
	return countCommits(out.String())
}

func countCommits(sums string) (int64, error) {
	var total int64
	for _, m := range commitLine.FindAllStringSubmatch(sums, -1) {
		n, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%w: %w", engine.ErrUncounted, err)
		}
		total += n
	}
	return total, nil
}

// bounded keeps the beginning of what is written to it.
type bounded struct {
	bytes.Buffer
	most int
}

func (b *bounded) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:max(0, min(len(p), b.most-b.Len()))])
	return len(p), nil
}
