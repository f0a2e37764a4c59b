// Package loggroup is the use cases of the records of log groups: which exist, how long their
// events are kept, and which hosts still have to learn of a deletion. It reads no events.
package loggroup
