// Package snapshot is the folder of a snapshot on its host: what is in it, how it
// becomes complete, and how it is checked before anything is made of it.
//
//	SNAPSHOTS/ID/             mode 0700, the service's
//	├── data/                 an engine's data folder
//	├── files-SUM.json        every file of data with its size and, once sealed, its CRC-32C
//	└── snapshot.json         written last: what it is, whose, and SUM
//
// Invariants: a folder without snapshot.json is nothing but rubbish, whatever else
// is in it; one with it is complete and on the disk. What was complete never changes
// but to gain sums. Removing takes the name away first.
//
// It knows nothing of engines and asks no server: engine says when a data folder is
// consistent and copies it here. Called by engine.
package snapshot
