// Package systemtables writes the statements that make the system schemas of a new server: the
// scripts of the version, the probe's table, the procedures and the time zones. It starts nothing.
package systemtables
