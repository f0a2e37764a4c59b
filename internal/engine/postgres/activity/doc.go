// Package activity lists the active sessions of a PostgreSQL server with their wait events,
// once a second. It reads pg_stat_activity, and asks who blocks whom only while sessions wait
// for locks.
package activity
