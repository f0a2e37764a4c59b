package guard

import (
	"context"
	"errors"
	"slices"
)

// Thread is one of a server's, as SHOW PROCESSLIST tells it.
// text is the beginning of its statement.
type Thread struct{ ID, User, Command, Text string }

// DumpCommand is that of one that sends the log.
const DumpCommand = "Binlog Dump"

// Threads of the server's own, by what they do and by whose they are.
var (
	OwnCommands = []string{DumpCommand, "Daemon", "Slave_IO", "Slave_SQL", "Slave_worker"}
	OwnUsers    = []string{"system user", "event_scheduler"}
)

// OfClient says whether a thread is not one of the server's own.
func OfClient(user, command string) bool {
	return !slices.Contains(OwnCommands, command) && !slices.Contains(OwnUsers, user)
}

// Threads are those that a server has.
//
// All sessions of the service's have the thread number 0, and the server names the files of
// its temporary tables by that number (10.11.19, create_tmp_table). Two sessions that have one
// at a time take each other's, and the server dies (ha_maria::drop_table). The tables of
// information_schema that have long texts, PROCESSLIST and SYSTEM_VARIABLES, are such ones.
// SHOW makes none on disk. So whatever is asked beside something else is asked by SHOW.
func Threads(ctx context.Context, a *Session) ([]Thread, error) {
	rows, err := a.Query(ctx, "SHOW PROCESSLIST")
	if err != nil {
		return nil, err
	}
	var list []Thread
	for _, row := range rows {
		if len(row) < 8 { // Id, User, Host, db, Command, Time, State, Info
			return nil, errors.New("SHOW PROCESSLIST answers in an unknown form")
		}
		list = append(list, Thread{row[0], row[1], row[4], row[7]})
	}
	return list, nil
}
