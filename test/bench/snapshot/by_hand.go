package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/jackc/pgx/v5"

	"kurabe/test/bench/bed"
)

// The copies that people make by hand, of the same server and onto the same disk.
// Each ends with its files on the disk, as a snapshot does.

// parallelCopy copies a data folder without its log by as many processes as two
// processors and a disk keep busy; reflinkCopy clones it.
const (
	parallelCopy = `cd "$1" && find . -path ./pg_wal -prune -o -type d -print0 | (cd "$2" && xargs -0 mkdir -p) &&
		find . -path ./pg_wal -prune -o -type f ! -name postmaster.pid -print0 | xargs -0 -P 4 -n 8 cp --parents -t "$2"`
	reflinkCopy = `cd "$1" && find . -mindepth 1 -maxdepth 1 ! -name pg_wal -print0 | xargs -0 cp -a --reflink=always -t "$2"`
	// The log is needed as it is when backup mode has ended.
	logCopy = `cp -a "$1/pg_wal" "$2" && sync -f "$2"`
)

// socketDSN is the way of the service into PostgreSQL, which root may take too.
func (s *snapshotLab) socketDSN() string {
	return fmt.Sprintf("host=%s port=%d user=rdsadmin dbname=postgres", filepath.Join(s.Home(s.i), "run"), s.i.Port)
}

// backupMode returns a copy in PostgreSQL's backup mode by a shell command.
func (s *snapshotLab) backupMode(command string) func(context.Context) error {
	return func(ctx context.Context) (failure error) {
		conn, err := pgx.Connect(ctx, s.socketDSN())
		if err != nil {
			return err
		}
		defer func() { failure = errors.Join(failure, conn.Close(context.WithoutCancel(ctx))) }()
		if err := os.Mkdir(s.hand, 0o700); err != nil {
			return err
		}
		if _, err := conn.Exec(ctx, "SELECT pg_backup_start('by hand', true)"); err != nil {
			return err
		}
		if err := s.shell(ctx, command); err != nil {
			return err
		}
		var label string
		if err := conn.QueryRow(ctx, "SELECT labelfile FROM pg_backup_stop(false)").Scan(&label); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(s.hand, "backup_label"), []byte(label), 0o600); err != nil {
			return err
		}
		return s.shell(ctx, logCopy)
	}
}

// shell runs a command with the data folder and the folder of the copy.
func (s *snapshotLab) shell(ctx context.Context, command string) error {
	return runTool(exec.CommandContext(ctx, "sh", "-c", command, "sh", filepath.Join(s.Home(s.i), "data"), s.hand))
}

func runTool(cmd *exec.Cmd) error {
	out, err := cmd.CombinedOutput()
	if err != nil {
		const most = 400
		return fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, out[max(0, len(out)-most):])
	}
	return nil
}

// baseBackup is PostgreSQL's own tool.
func (s *snapshotLab) baseBackup(ctx context.Context) error {
	return runTool(exec.CommandContext(ctx, bed.Newest("pg_basebackup"), "-D", s.hand, "-c", "fast", "-X", "fetch",
		"-h", filepath.Join(s.Home(s.i), "run"), "-p", strconv.Itoa(s.i.Port), "-U", "rdsadmin"))
}

// mariadbBackup is MariaDB's own tool, which has to prepare what it copied before it
// is of use. The password is in a file, as it would be.
func (s *snapshotLab) mariadbBackup(ctx context.Context) error {
	options := filepath.Join(s.Dir, "backup.cnf")
	text := fmt.Sprintf("[client]\nhost=%s\nport=%d\nuser=%s\npassword=%s\nssl\n", s.i.Host, s.i.Port, bed.MasterUser, bed.MasterPassword)
	if err := os.WriteFile(options, []byte(text), 0o600); err != nil {
		return err
	}
	err := runTool(exec.CommandContext(ctx, "mariadb-backup", "--defaults-extra-file="+options, "--backup", "--parallel=4",
		"--datadir="+filepath.Join(s.Home(s.i), "data"), "--target-dir="+s.hand))
	if err != nil {
		return err
	}
	if err := runTool(exec.CommandContext(ctx, "mariadb-backup", "--prepare", "--target-dir="+s.hand)); err != nil {
		return err
	}
	return runTool(exec.CommandContext(ctx, "sync", "-f", s.hand))
}
