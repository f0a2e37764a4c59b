package replica

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/guard"
)

const (
	// EasyPages are so few that a clean stop has written them at once: 8 MB of the usual size.
	EasyPages = 512
	easePoll  = 20 * time.Millisecond
)

// EaseStop implements engine.Easer. InnoDB writes its pages by itself only when there are very
// many, or the log is full; a clean stop writes them all. The statement returns when all that was
// changed meanwhile is written, too, which under load is never, so nobody waits for that.
func (r *Roles) EaseStop(ctx context.Context, i engine.Instance) error {
	ctx, cancel := context.WithCancel(ctx)
	written := make(chan error, 1)
	begun := false
	defer func() {
		cancel()
		if begun {
			<-written
		}
	}()
	return guard.With(ctx, i, func(watch *guard.Session) error {
		for {
			pages, err := Unwritten(ctx, watch)
			if err != nil || pages <= EasyPages {
				return err
			}
			if !begun {
				begun = true
				go func() {
					written <- guard.With(ctx, i, func(a *guard.Session) error { return a.Exec(ctx, "SET GLOBAL innodb_log_checkpoint_now = 1") })
				}()
			}
			select {
			case err := <-written:
				begun = false
				return err
			case <-time.After(easePoll):
			}
		}
	})
}

// Unwritten is how many changed pages of InnoDB are not in its files yet.
func Unwritten(ctx context.Context, a *guard.Session) (int64, error) {
	rows, err := a.Query(ctx, `SHOW GLOBAL STATUS LIKE 'Innodb\_buffer\_pool\_pages\_dirty'`)
	if err != nil {
		return 0, err
	}
	if len(rows) != 1 || len(rows[0]) != 2 {
		return 0, fmt.Errorf("the server tells of its unwritten pages in %d rows", len(rows))
	}
	return strconv.ParseInt(rows[0][1], 10, 64)
}
