package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"kurabe"
	"kurabe/internal/engine"
)

// Config is what a Driver needs to know of its host.
type Config struct {
	// Root is the folder of the private trees (see package tree). Every account that
	// runs an engine must be able to reach it.
	Root string
	// LibDir and ShareDir are where the packages install, one folder per major.
	// Empty means Debian's.
	LibDir   string
	ShareDir string
	// ServiceUser is the account that this process runs as, the only one that
	// may log in as rdsadmin. Empty means: look it up.
	ServiceUser string
}

// Driver implements engine.Driver. Everything it knows of a version is in the EngineVersion
// that Discover returned. It keeps no state but when the log of followers was seen to grow,
// without which it only waits longer.
type Driver struct {
	root        string
	libDir      string
	shareDir    string
	serviceUser string
	arrivals    arrivals
}

var (
	_ engine.Driver     = (*Driver)(nil)
	_ engine.Identifier = (*Driver)(nil)
)

// New returns a driver. It does nothing until asked.
func New(c Config) *Driver {
	d := &Driver{root: c.Root, libDir: c.LibDir, shareDir: c.ShareDir, serviceUser: c.ServiceUser}
	if d.libDir == "" {
		d.libDir = "/usr/lib/postgresql"
	}
	if d.shareDir == "" {
		d.shareDir = "/usr/share/postgresql"
	}
	if d.serviceUser == "" {
		d.serviceUser = currentAccount()
	}
	return d
}

// currentAccount is the account name as the server's peer authentication will
// see it. Without an entry in the user database peer cannot succeed at all; the
// number is returned so that the rendered map still names nobody else.
func currentAccount() string {
	uid := strconv.Itoa(os.Geteuid())
	if u, err := user.LookupId(uid); err == nil {
		return u.Username
	}
	return uid
}

// Name implements engine.Driver.
func (d *Driver) Name() kurabe.EngineName { return kurabe.Postgres }

// StopSignal is a fast shutdown: sessions are ended, a checkpoint is written.
func (d *Driver) StopSignal() int { return int(syscall.SIGINT) }

// KillSignal is an immediate shutdown: the postmaster ends its children, and
// itself sends them SIGKILL after five seconds. SIGKILL to the postmaster would
// leave backends behind that go on writing.
func (d *Driver) KillSignal() int { return int(syscall.SIGQUIT) }

// goodbyeTimeout bounds closing a session; the server does not need it.
const goodbyeTimeout = time.Second

// Ready implements engine.Driver. A server in recovery answers queries but
// would refuse the next write, so it is not ready, unless that is its duty.
func (d *Driver) Ready(ctx context.Context, i engine.Instance) error {
	return d.withAdmin(ctx, i, func(conn *pgx.Conn) error {
		recovering, err := inRecovery(ctx, conn)
		if err != nil {
			return fmt.Errorf("ask whether ready: %w", err)
		}
		if recovering && !(follows(i) && d.IsFollower(i.Home)) {
			return fmt.Errorf("%w: it is in recovery", engine.ErrNotReady)
		}
		return nil
	})
}

// LogEnd implements engine.Ender. The last thing that a clean stop writes is a checkpoint;
// whoever has its end has all.
func (d *Driver) LogEnd(ctx context.Context, i engine.Instance) (int64, error) {
	c, end, err := checkpointEnd(ctx, i)
	if err != nil {
		return 0, err
	}
	if end == 0 {
		return 0, fmt.Errorf("pg_controldata reports %q instead of a clean shutdown", c.state)
	}
	return int64(end), nil
}

// EaseStop implements engine.Driver: the checkpoint of the stop has only to write what was
// changed since this one.
func (d *Driver) EaseStop(ctx context.Context, i engine.Instance) error {
	return d.withAdmin(ctx, i, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "CHECKPOINT")
		return err
	})
}

// reloadPoll is how often a session asks whether it has heard of the reload; the
// signal takes about a millisecond.
const reloadPoll = 2 * time.Millisecond

// Reload implements engine.Driver. The server would only log what it does not
// like in the files, so it is asked before and after.
func (d *Driver) Reload(ctx context.Context, i engine.Instance) error {
	err := d.withAdmin(ctx, i, func(conn *pgx.Conn) error {
		if err := fileErrors(ctx, conn); err != nil {
			return err
		}
		return reload(ctx, conn)
	})
	if err != nil {
		return err
	}
	// The postmaster has done with the files before it takes a new connection,
	// so this one meets the new certificate or there is none.
	return sameCertificate(ctx, i)
}

// fileErrors has the server read the files without obeying them. A static
// setting that waits for a restart is not an error.
func fileErrors(ctx context.Context, conn *pgx.Conn) error {
	const settings = `SELECT pg_catalog.concat_ws(' ', name, '=', setting, '(' || error || ')') FROM pg_catalog.pg_file_settings
		WHERE error IS NOT NULL AND error <> 'setting could not be applied'
		UNION ALL SELECT pg_catalog.concat_ws(' ', f.name, '=', f.setting) FROM pg_catalog.pg_file_settings f
		JOIN pg_catalog.pg_settings s ON pg_catalog.lower(s.name) = pg_catalog.lower(f.name)
		WHERE f.error = 'setting could not be applied' AND s.context <> 'postmaster'
		UNION ALL SELECT 'pg_hba.conf: ' || error FROM pg_catalog.pg_hba_file_rules WHERE error IS NOT NULL
		LIMIT 1`
	var problem string
	err := conn.QueryRow(ctx, settings).Scan(&problem)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("check the files: %w", err)
	}
	return fmt.Errorf("the server refuses %s", problem)
}

// reload waits until this session has heard of it: the postmaster tells its
// sessions after it has read the files itself. The time is that of a clock which may have
// been set back since, so any other one will do.
func reload(ctx context.Context, conn *pgx.Conn) error {
	const loadTime = "SELECT pg_catalog.pg_conf_load_time()"
	var before, after time.Time
	if err := conn.QueryRow(ctx, loadTime).Scan(&before); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "SELECT pg_catalog.pg_reload_conf()"); err != nil {
		return err
	}
	ticker := time.NewTicker(reloadPoll)
	defer ticker.Stop()
	for {
		if err := conn.QueryRow(ctx, loadTime).Scan(&after); err != nil {
			return err
		}
		if !after.Equal(before) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the server has not taken up the files: %w", context.Cause(ctx))
		case <-ticker.C:
		}
	}
}

const (
	majorMin = 13
	majorMax = 18
)

var versionLine = regexp.MustCompile(`\(PostgreSQL\) (\d+)(\.\d+|\w+)?`)

// parseVersion reads the answer of "postgres --version".
func parseVersion(line string) (version string, major int, err error) {
	m := versionLine.FindStringSubmatch(line)
	if m == nil {
		return "", 0, fmt.Errorf("no version in %q", line)
	}
	major, err = strconv.Atoi(m[1])
	return m[1] + m[2], major, err
}

// majorOf is the number that decides what a server understands. A version that
// did not come from Discover counts as the oldest.
func majorOf(v kurabe.EngineVersion) int {
	if major, err := strconv.Atoi(v.Major()); err == nil {
		return major
	}
	return majorMin
}
