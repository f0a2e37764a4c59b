package engine

// Individual is implemented by a driver whose data folders carry an identity.
// Individualize gives a fresh copy of a template its own, before the copy takes
// its final name: of two folders with one identity, the log of either could be
// replayed into the other.
type Individual interface {
	Individualize(dataDir string) error
}
