// Package export makes log events of the files that engines write, and follows these files over
// growth, rotation and changes of the server's role.
//
// Split and the formats are pure: bytes in, events out. A Follower reads the log folder of one
// server through internal/volume, since that folder is the engine's and may hold anything. Its Mark
// is stored in the same atomic write as the events that it stands behind; so each line is exported
// once, whenever the process dies.
// Called by internal/agent.
package export
