package mariadb

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/replica"
)

// markerName is the routine whose comment holds the time of the newest marker, in
// milliseconds. A row of a table of its own could be had in new instances only: the
// schema's folder is closed. This one is guarded like the procedures beside it, so
// that nobody but the service writes it.
const markerName = "rds_heartbeat2"

var markerForm = regexp.MustCompile(`^[0-9]{1,15}$`)

// mark writes the time into the row. It is in the binary log too. A follower has the marks
// of its source.
func mark(ctx context.Context, i engine.Instance, at time.Time) error {
	if state, err := replica.ReadFollowing(i.Home); err != nil || state != nil {
		return err
	}
	err := guard.With(ctx, i, func(a *guard.Session) error {
		return replica.ExecLogged(ctx, a, i,
			fmt.Sprintf("CREATE OR REPLACE DEFINER=`mariadb.sys`@`localhost` PROCEDURE mysql.%s() SQL SECURITY DEFINER COMMENT '%d' SELECT 1",
				markerName, at.UnixMilli()))
	})
	if err != nil {
		return fmt.Errorf("write the marker: %w", err)
	}
	return nil
}

// markerSQL reads the row.
const markerSQL = "SELECT comment FROM mysql.proc WHERE db = 'mysql' AND name = '" + markerName + "' AND type = 'PROCEDURE'"

func parseMarker(text string) (time.Time, error) {
	if !markerForm.MatchString(text) {
		return time.Time{}, fmt.Errorf("the marker %q is no time", text)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return time.UnixMilli(n), err
}
