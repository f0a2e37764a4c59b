package mariadb

import (
	"context"
	"errors"
)

// thread is one of a server's, as SHOW PROCESSLIST tells it.
// text is the beginning of its statement.
type thread struct{ id, user, command, text string }

// dumpCommand is that of one that sends the log.
const dumpCommand = "Binlog Dump"

// Threads of the server's own, by what they do and by whose they are.
var (
	ownCommands = []string{dumpCommand, "Daemon", "Slave_IO", "Slave_SQL", "Slave_worker"}
	ownUsers    = []string{"system user", "event_scheduler"}
)

// threads are those that a server has.
//
// All sessions of the service's have the thread number 0, and the server names the files of
// its temporary tables by that number (10.11.19, create_tmp_table). Two sessions that have one
// at a time take each other's, and the server dies (ha_maria::drop_table). The tables of
// information_schema that have long texts, PROCESSLIST and SYSTEM_VARIABLES, are such ones.
// SHOW makes none on disk. So whatever is asked beside something else is asked by SHOW.
func threads(ctx context.Context, a *admin) ([]thread, error) {
	rows, err := a.query(ctx, "SHOW PROCESSLIST")
	if err != nil {
		return nil, err
	}
	var list []thread
	for _, row := range rows {
		if len(row) < 8 { // Id, User, Host, db, Command, Time, State, Info
			return nil, errors.New("SHOW PROCESSLIST answers in an unknown form")
		}
		list = append(list, thread{row[0], row[1], row[4], row[7]})
	}
	return list, nil
}
