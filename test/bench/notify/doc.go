// Package notify measures the way of a notification from its publisher to a subscriber on the same
// machine.
package notify
