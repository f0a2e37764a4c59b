// Package blob is the repository of backups: named objects that never change, in a
// folder or in any S3-compatible store. Snapshots and the continuous log are kept
// in it; what they mean is their rooms' business.
//
// Store is the contract, and blobtest the suite that every kind of it passes:
// Folder and S3, and a memory for tests. Sealed is a layer over
// a Store that compresses, checks and, with a Key, encrypts. Init makes a
// repository once, Open gives it back with its layers; the caller remembers the
// repository's ID and hands it to every later Open, so that neither an empty mount
// point nor somebody else's disk passes for it. Never call Init because Open said
// ErrNoRepository: that is how an unmounted disk becomes an empty repository.
//
// Invariants: an object is whole or absent, whatever dies; Put answers nil when the
// object will survive a loss of power; bytes that a Sealed hands out are those that
// were put, or it fails before it says EOF.
//
// Nothing here logs or retries across calls: an error says what is wrong, with
// which object, what to do, and by Retryable whether to come back. DESIGN.md has
// the format and what every crash leaves.
package blob
