// Package alarm holds the use cases of the alarms of metrics: they are written, listed, silenced,
// deleted and set to a state. Who evaluates them is internal/alarm, which also says what a
// change of state writes.
package alarm
