//go:build race

package stat

// raced is true under the race detector, which makes the simulations take minutes and has
// nothing to find in them: they share no memory.
const raced = true
