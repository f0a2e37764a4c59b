package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"kurabe/internal/engine"
)

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
