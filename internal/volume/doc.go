// Package volume handles folders of data and the files we keep in them: whole or
// absent after a crash, on disk when we say so, and cloned as cheaply as the file
// system allows.
//
// Invariant: what bears its final name is complete. Files and trees are built, and
// trees are taken down, under a name that ends in ".tmp", so that after a crash
// half-way Clean finds them and nobody mistakes them for data.
//
// Most of these folders belong to engines, whose users may be hostile: nothing here, and
// nothing that root does there, follows a link (Root, and the functions of a path).
//
// Called by engine, agent and snapshot. It knows nothing of what is in the files.
// Imports nothing of ours.
package volume
