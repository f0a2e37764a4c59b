package probe

import (
	"context"
	"strings"

	"kurabe/lab/dial"
)

// Samples see the sessions of our own user, and of all where it has PROCESS. A wait for a
// lock of a row is in InnoDB's table of transactions alone: the session's state meanwhile
// is that of the statement's stage, as "Updating".
const (
	mysqlSessions  = `SELECT p.ID, COALESCE(p.STATE, ''), '' FROM information_schema.PROCESSLIST p` + mysqlActive
	innodbSessions = `SELECT p.ID, COALESCE(p.STATE, ''), COALESCE(t.TRX_STATE, '') FROM information_schema.PROCESSLIST p
	LEFT JOIN information_schema.INNODB_TRX t ON t.TRX_MYSQL_THREAD_ID = p.ID` + mysqlActive
	mysqlActive = ` WHERE p.ID <> CONNECTION_ID() AND p.DB = DATABASE() AND p.COMMAND NOT IN ('Sleep', 'Daemon', 'Binlog Dump')`
)

// prepareSample finds out whether we may see InnoDB's transactions.
func (m *mysql) prepareSample(ctx context.Context, s *dial.Session) error {
	m.sessions = innodbSessions
	if _, err := s.Rows(ctx, m.sessions); err == nil {
		return nil
	}
	m.sessions = mysqlSessions
	_, err := s.Rows(ctx, m.sessions)
	return err
}

func (m *mysql) sample(ctx context.Context, s *dial.Session) (moment, error) {
	rows, err := s.Rows(ctx, m.sessions)
	if err != nil {
		return moment{}, err
	}
	seen := mysqlMoment(rows)
	return seen, m.checkpoint.see(ctx, s, &seen)
}

// mysqlMoment reads the rows of a sample: number and state of the session, state of its
// transaction. InnoDB counts the waits for its rows itself, and nobody those for the
// server's locks, such as a table's while it is changed: these are counted by samples.
func mysqlMoment(rows [][]string) moment {
	seen := moment{locked: map[string]bool{}}
	for _, row := range rows {
		if len(row) != 3 {
			continue
		}
		wait := mysqlWait(row[1], row[2])
		seen.waits = append(seen.waits, wait)
		if strings.HasPrefix(wait, classLock) && wait != rowLock {
			seen.locked[row[0]] = true
		}
	}
	return seen
}

// Classes of what MariaDB's and MySQL's sessions do, before a colon, where their state
// tells one. A stage of a statement tells none: the session may compute, read a page or
// wait for a latch, so a stage is called that and counts for no resource.
const (
	classLock   = "Lock:"
	classCommit = "Commit:"
	classClient = "Client:"
	classStage  = "Stage:"

	rowLock = classLock + "row"
)

// commitStates are those of the end of a transaction: the logs are written and synced,
// or the turn of others that do so is waited for.
var commitStates = map[string]bool{
	"commit": true, "commit_implicit": true, "waiting for prior transaction to commit": true, "waiting for prior transaction to start commit": true,
	"waiting for handler commit": true, "waiting for semi-sync ack from slave": true, "waiting for semi-sync ack": true,
}

// clientStates are those in which the other end of the connection is waited for.
var clientStates = map[string]bool{
	"reading from net": true, "writing to net": true, "sending to client": true, "receiving from client": true,
}

// mysqlWait is a class and what exactly. A state in the words of "Waiting for table
// metadata lock" is of a lock of the server.
func mysqlWait(state, transaction string) string {
	lower := strings.ToLower(strings.TrimSpace(state))
	switch {
	case transaction == "LOCK WAIT":
		return rowLock
	case strings.HasPrefix(lower, "waiting for ") && strings.HasSuffix(lower, "lock"), lower == "user lock":
		return classLock + state
	case commitStates[lower]:
		return classCommit + state
	case clientStates[lower]:
		return classClient + state
	case lower == "":
		return classStage + "executing"
	}
	return classStage + state
}
