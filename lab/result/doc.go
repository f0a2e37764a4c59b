// Package result is the file kurabe-lab/1: JSON lines, one study a file, append-only,
// each line with the hash of the line before. Every figure that the lab prints can be
// computed again from it, here.
//
// It must not open a database or a socket. run writes it; report and the commands read.
package result
