// Package faultpoint names the places at which tests break things.
//
// Builds without the tag "fault" have nothing of it: Reach is empty there. With the
// tag, the file that KURABE_FAULT names arms one point. "before:STEP" or "after:STEP"
// in it ends the service at once, without any clean-up. With a path behind that, the
// service lives: whoever comes to the point makes the file of that path and waits
// until it is gone, so that a test can break something else just there. The file that
// arms is removed first: a point is reached once, and the next service lives.
// Everything may import it; it imports nothing.
package faultpoint
