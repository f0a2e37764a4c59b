// Package scratch runs an engine's programs on data that is no instance's yet: a template in
// the making, a copy that is checked, a restore that replays its log.
//
// A Folder shows its programs nothing but itself and what they are made of, at a short path of
// its own where a parent bars the engine's user. A Server is a server in such a folder that
// only the service can reach; the next service ends what an earlier one left.
//
// Called by the drivers. It knows neither engine.
package scratch
