//go:build !race

package stat

// raced is false without the race detector.
const raced = false
