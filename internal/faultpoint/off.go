//go:build !fault

package faultpoint

// Reach does nothing: only builds with the tag "fault" can be told to die.
func Reach(when, step string) {}
