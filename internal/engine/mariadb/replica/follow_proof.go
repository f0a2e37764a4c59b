package replica

import (
	"context"
	"fmt"
	"strconv"

	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/role"
)

// askedQuery asks the guard when the host of a writer asked last whether the server follows, of
// CLOCK_BOOTTIME in nanoseconds. Asked by such a host it notes that.
const askedQuery = `SHOW GLOBAL STATUS LIKE 'Kurabe\_guard\_asked'`

// LastWord implements engine.Driver: by the guard's note of when this server was asked last.
// The writer's word from a follower is its answer that it follows, and is worth no more than from
// when it was asked, which was before the note; a server that was promoted gives none any more.
// Another follower may have been asked later: of a cluster nothing is known, where one that leaves
// is not named any more. Read replicas do not count, since their answers do not.
func (r *Roles) LastWord(ctx context.Context, i engine.Instance) (at int64, err error) {
	if i.Role == nil || i.ReaderAddress != "" || len(role.GroupFollowers(i)) > 1 {
		return 0, nil
	}
	state, err := ReadFollowing(i.Home)
	if err == nil && state == nil {
		err = guard.With(ctx, i, func(a *guard.Session) error {
			rows, err := a.Query(ctx, askedQuery)
			if err != nil || len(rows) == 0 { // the guard is of an earlier service
				return err
			}
			at, err = strconv.ParseInt(rows[0][1], 10, 64)
			return err
		})
	}
	if err != nil {
		return 0, fmt.Errorf("find when it was asked last: %w", err)
	}
	return at, nil
}
