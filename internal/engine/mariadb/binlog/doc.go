// Package binlog reads MariaDB's binary log files of version 4 without a server: events,
// transactions and their GTIDs, the state of a stopped server's log, the relay logs that a
// follower has received, and the plan of a replay over the logs of several servers.
//
// Called by the driver (package mariadb). It opens no session and runs no program; a folder
// is opened through package volume, since its owner is not the service.
//
// Invariant: an event is returned only when its length, its place and its checksum are right.
package binlog
