// Package logevents keeps the log events of a host, by group and stream.
//
// A stream is a folder GROUP/STREAM, named by hashes, with
//
//	name         the name of the stream and when it was made (JSON)
//	tail         the newest events, in frames with a checksum; Append returns once its frame is synced
//	NNNNNNNN.seg older events, in compressed blocks of some blockBytes of text
//
// A full tail becomes a block: the block is appended to the newest segment and synced, then a new
// tail replaces the old one by rename. The header of a tail says which event is its first, so a block
// with that event or a later one, which a crash left beside its tail, is dropped at the next start.
//
// Each event has a number in its stream, which it keeps. A mark of the writer, such as the position
// of a reader in a file, is stored in the frame of the events that it is behind: both or neither
// survive a crash.
//
// What is damaged costs its block, or the end of its tail, and is told by Config.Lost.
package logevents
