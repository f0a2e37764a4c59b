package probe

import (
	"context"
	"strings"
	"time"

	"kurabe/lab/dial"
)

// checkpointEvery: the question has the server sum up all its status variables, which
// takes it about a millisecond.
const checkpointEvery = time.Second

// innodbCheckpoint is the place in the redo up to which InnoDB's pages are on disk. A
// server that is not pressed for redo moves it by leaps, minutes apart, each with a burst
// of writes before it; one that is moves it all the time. Either is a checkpoint as long
// as it moves.
type innodbCheckpoint struct {
	asked    time.Time
	position string
	moving   bool
}

// MariaDB's and MySQL's names of it.
const checkpointQuestion = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Innodb_lsn_last_checkpoint', 'Innodb_redo_log_checkpoint_lsn')"

// see adds to a moment whether the checkpoint moves, where the server tells it.
func (c *innodbCheckpoint) see(ctx context.Context, s *dial.Session, m *moment) error {
	if now := time.Now(); now.Sub(c.asked) >= checkpointEvery {
		rows, err := s.Rows(ctx, checkpointQuestion)
		if err != nil {
			return err
		}
		c.asked = now
		c.read(rows)
	}
	m.checkpoints, m.checkpointing = c.position != "", c.moving
	return nil
}

// read takes the newest place.
func (c *innodbCheckpoint) read(rows [][]string) {
	position := ""
	for _, row := range rows {
		if len(row) == 2 && strings.Trim(row[1], "0123456789") == "" {
			position = row[1]
		}
	}
	c.moving = c.position != "" && position != "" && position != c.position
	c.position = position
}
