package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/jackc/pgx/v5"

	"kurabe/internal/blob"
	"kurabe/lab/stat"
	"kurabe/test/bench/bed"
)

const (
	momentBar     = 0.95 // of the rate of a recovery made by hand
	momentWait    = 2 * time.Minute
	momentSegment = 16 << 20
	momentScale   = 670 // of pgbench: 10 GB
)

// Moment restores PostgreSQL to a moment: a copy of the snapshot and a replay of the
// log after it, beside the same two steps made by hand with the same files.
func Moment(ctx context.Context, r *bed.Run) error {
	if os.Getuid() != 0 {
		r.Out.Row(bed.Row{Bench: "moment", What: "restore to a moment", Value: bed.NotMeasured, Note: "starting a server by hand as the engine's user needs root"})
		return nil
	}
	l, err := r.Service(ctx)
	if err != nil {
		return err
	}
	if l.Engines[bed.Postgres] == "" {
		r.NotInstalled("moment", "restore to a moment")
		return nil
	}
	m := momentLab{Lab: l, r: r}
	if err := m.open(ctx); err != nil {
		return err
	}
	defer func() {
		if ctx.Err() == nil {
			_ = l.Remove(ctx, m.i.Name)
		}
	}()
	var ours, byHand []float64
	for n := range min(r.Blocks, bed.Pick(r, 3, 1)) {
		got, err := m.restore(ctx, fmt.Sprintf("moment-%d", n))
		if err != nil {
			return err
		}
		hand, err := m.recoverByHand(ctx)
		if err != nil {
			return err
		}
		ours, byHand = append(ours, got.Seconds()), append(byHand, hand.Seconds())
		r.Out.Sample("moment", map[string]any{"restore": got.Seconds(), "byHand": hand.Seconds(), "logBytes": m.logBytes, "dataBytes": m.dataBytes})
	}
	ratio := stat.Median(byHand) / stat.Median(ours)
	r.Out.Row(bed.Row{Bench: "moment", What: "restore to a moment: rate / by hand (cp, then recovery with restore_command = cp)", Value: fmt.Sprintf("%.2f", ratio),
		Bar: fmt.Sprintf("≥ %.2f", momentBar), Verdict: bed.Verdict(ratio >= momentBar),
		Note: fmt.Sprintf("%.1f GB of data and %.2f GB of log; step of the restore %s, by hand %s", float64(m.dataBytes)/1e9, float64(m.logBytes)/1e9, spread(ours, "s"), spread(byHand, "s"))})
	return nil
}

// momentLab is an instance with a snapshot and log after it.
type momentLab struct {
	*bed.Lab
	r                   *bed.Run
	i                   *bed.Instance
	snapshot            string // folder of its data
	at                  time.Time
	logBytes, dataBytes int64
}

// open fills an instance, has it backed up, and then writes log.
func (m *momentLab) open(ctx context.Context) error {
	class := m.WholeClass(runtime.NumCPU())
	var err error
	if m.i, err = m.Create(ctx, bed.Order{Name: "moment", Engine: bed.Postgres, Class: class}); err != nil {
		return err
	}
	m.r.Out.Say("  filling")
	if err := m.i.PgbenchInit(ctx, true, bed.Pick(m.r, momentScale, 5)); err != nil {
		return err
	}
	_, err = m.Api.ModifyDBInstance(ctx, &rds.ModifyDBInstanceInput{DBInstanceIdentifier: aws.String(m.i.Name), BackupRetentionPeriod: aws.Int32(1), ApplyImmediately: aws.Bool(true)})
	if err != nil {
		return err
	}
	if _, err := m.latest(ctx, time.Time{}); err != nil {
		return err
	}
	if _, err := m.WaitStatus(ctx, m.i.Name, "available"); err != nil {
		return err
	}
	found, _ := filepath.Glob(filepath.Join(m.Data, "snapshots", "snap-*", "data"))
	if len(found) != 1 {
		return fmt.Errorf("%d snapshots", len(found))
	}
	m.snapshot = found[0]
	out, err := exec.CommandContext(ctx, "du", "-sb", m.snapshot).Output()
	if err != nil {
		return err
	}
	m.dataBytes, _ = strconv.ParseInt(strings.Fields(string(out))[0], 10, 64)
	if err := m.writeLog(ctx, int64(bed.Pick(m.r, 1<<30, 64<<20))); err != nil {
		return err
	}
	m.at, err = m.latest(ctx, time.Now())
	return err
}

// momentLoad is how long the log is that of small transactions; the rest of it, which
// they would take half an hour for, is that of large ones.
const momentLoad = time.Minute

// writeLog has clients write that many bytes of log.
func (m *momentLab) writeLog(ctx context.Context, want int64) error {
	began, err := m.written(ctx)
	if err != nil {
		return err
	}
	const rows = 100_000 // of an update
	for start, at := time.Now(), 0; m.logBytes < want; at += rows {
		if time.Since(start) < momentLoad {
			_, err = m.i.Pgbench(ctx, bed.Trial{Clients: bed.SpeedClients, Seconds: bed.Pick(m.r, 10, 2), Tls: true, Seed: 1})
		} else {
			err = m.i.Exec(ctx, fmt.Sprintf("UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid > %d AND aid <= %d", at, at+rows))
		}
		if err != nil {
			return err
		}
		now, err := m.written(ctx)
		if err != nil {
			return err
		}
		m.logBytes = now - began
	}
	return nil
}

// written is how many bytes of log the server has made.
func (m *momentLab) written(ctx context.Context) (n int64, err error) {
	conn, err := pgx.Connect(ctx, fmt.Sprintf("host=%s port=%d user=%s password=%s dbname=%s sslmode=require", m.i.Host, m.i.Port, bed.MasterUser, bed.MasterPassword, bed.Database))
	if err != nil {
		return 0, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return n, conn.QueryRow(ctx, "SELECT (pg_current_wal_lsn() - '0/0')::bigint").Scan(&n)
}

// latest waits until a moment can be restored.
func (m *momentLab) latest(ctx context.Context, after time.Time) (time.Time, error) {
	return restorable(ctx, m.Lab, m.i.Name, after)
}

// restorable waits until the log of an instance reaches past a moment, and says how far.
func restorable(ctx context.Context, l *bed.Lab, name string, after time.Time) (time.Time, error) {
	for deadline := time.Now().Add(momentWait); time.Now().Before(deadline); _ = bed.Wait(ctx, 200*time.Millisecond) {
		out, err := l.Api.DescribeDBInstances(ctx, &rds.DescribeDBInstancesInput{DBInstanceIdentifier: aws.String(name)})
		if err != nil {
			return time.Time{}, err
		}
		if at := aws.ToTime(out.DBInstances[0].LatestRestorableTime); !at.IsZero() && at.After(after) {
			return at, nil
		}
	}
	return time.Time{}, errors.New("no moment can be restored")
}

var restoreStep = regexp.MustCompile(`step=restore-snapshot .*duration_ms=(\d+)`)

// restore restores to the moment and returns how long its step took: copy, log and
// replay, up to a cleanly shut down folder.
func (m *momentLab) restore(ctx context.Context, name string) (time.Duration, error) {
	_, err := m.Api.RestoreDBInstanceToPointInTime(ctx, &rds.RestoreDBInstanceToPointInTimeInput{
		SourceDBInstanceIdentifier: aws.String(m.i.Name), TargetDBInstanceIdentifier: aws.String(name), RestoreTime: aws.Time(m.at), BackupRetentionPeriod: aws.Int32(0),
	})
	if err != nil {
		return 0, err
	}
	made, err := m.WaitStatus(ctx, name, "available")
	if err != nil {
		return 0, err
	}
	log, err := os.ReadFile(filepath.Join(m.Dir, "service.log"))
	if err != nil {
		return 0, err
	}
	for _, line := range bytes.Split(log, []byte("\n")) {
		if step := restoreStep.FindSubmatch(line); step != nil && bytes.Contains(line, []byte(made.Id)) {
			ms, _ := strconv.Atoi(string(step[1]))
			return time.Duration(ms) * time.Millisecond, m.Remove(ctx, name)
		}
	}
	return 0, errors.New("the service's log does not tell of the restore")
}

// recoverByHand does what the manual says: a copy of the base backup, recovery.signal,
// a restore_command, and a clean stop when the server has opened.
func (m *momentLab) recoverByHand(ctx context.Context) (time.Duration, error) {
	dir := filepath.Join(m.Dir, "by-hand")
	defer os.RemoveAll(dir)
	archive, data, run := filepath.Join(dir, "archive"), filepath.Join(dir, "data"), filepath.Join(dir, "run")
	if err := errors.Join(os.MkdirAll(archive, 0o755), os.MkdirAll(run, 0o777), os.Chmod(run, 0o777), os.Chmod(dir, 0o755)); err != nil {
		return 0, err
	}
	if err := m.writeArchive(ctx, archive); err != nil {
		return 0, fmt.Errorf("write an archive by hand: %w", err)
	}
	settings := fmt.Sprintf("listen_addresses=''\nunix_socket_directories='%s'\nhot_standby=off\nshared_buffers='%s'\nmax_wal_senders=0\nrestore_command='cp %s/%%f %%p'\nrecovery_target_time='%s'\nrecovery_target_action=promote\n",
		run, bed.Pick(m.r, "2GB", "128MB"), archive, m.at.UTC().Format("2006-01-02 15:04:05.000+00"))
	began := time.Now()
	for _, command := range []string{
		"cp -r \"$1\" \"$2\" && rm -f \"$2\"/pg_wal/0* && touch \"$2\"/recovery.signal && chown -R postgres:postgres \"$2\" && chmod 700 \"$2\"",
	} {
		if err := runTool(exec.CommandContext(ctx, "sh", "-c", command, "sh", m.snapshot, data)); err != nil {
			return 0, err
		}
	}
	for name, text := range map[string]string{"postgresql.conf": settings, "pg_hba.conf": "local all all trust\n", "pg_ident.conf": ""} {
		if err := os.WriteFile(filepath.Join(data, name), []byte(text), 0o644); err != nil {
			return 0, err
		}
	}
	control := func(argv ...string) error {
		return runTool(exec.CommandContext(ctx, "runuser", append([]string{"-u", "postgres", "--", bed.Newest("pg_ctl"), "-D", data, "-w", "-t", "3600"}, argv...)...))
	}
	if err := control("-l", filepath.Join(run, "log"), "start"); err != nil {
		text, _ := os.ReadFile(filepath.Join(run, "log"))
		return 0, fmt.Errorf("%w: %s", err, text[max(0, len(text)-1000):])
	}
	// The server takes connections when it has promoted itself, as hot_standby is off.
	if err := control("-m", "fast", "stop"); err != nil {
		return 0, err
	}
	return time.Since(began), nil
}

// writeArchive puts the log into plain segments, as an archive_command would have.
func (m *momentLab) writeArchive(ctx context.Context, dir string) error {
	repository, err := blob.Open(ctx, filepath.Join(m.Data, "repository"), blob.Options{})
	if err != nil {
		return err
	}
	for info, err := range repository.List(ctx, "logs/"+m.i.Id+"/") {
		if err != nil {
			return err
		}
		parts := strings.Split(info.Name, "/")
		if len(parts) != 5 || strings.HasSuffix(info.Name, ".marks") {
			continue
		}
		start, _, _ := strings.Cut(parts[4], "-")
		at, err := strconv.ParseInt(start, 10, 64)
		if err != nil {
			return err
		}
		if err := m.writePiece(ctx, repository, info.Name, filepath.Join(dir, parts[3]), at); err != nil {
			return err
		}
	}
	return m.writeNewest(dir)
}

func (m *momentLab) writePiece(ctx context.Context, from blob.Store, name, path string, at int64) error {
	in, err := from.Get(ctx, name)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.NewOffsetWriter(out, at), in)
	return errors.Join(err, out.Truncate(momentSegment), out.Close())
}

// writeNewest adds the segments that are not in the repository yet, from the server.
func (m *momentLab) writeNewest(dir string) error {
	have, _ := filepath.Glob(filepath.Join(dir, "0*"))
	newest := ""
	if len(have) > 0 {
		newest = filepath.Base(have[len(have)-1])
	}
	segments, _ := filepath.Glob(filepath.Join(m.Home(m.i), "data", "pg_wal", "0000000?????????????????"))
	for _, path := range segments {
		if filepath.Base(path) < newest {
			continue
		}
		data, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(path)), data, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
