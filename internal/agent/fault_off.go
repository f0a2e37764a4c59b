//go:build !fault

package agent

// faultPoint does nothing: only builds with the tag "fault" can be told to die
// at a step.
func faultPoint(string, string) {}
