// Package hostlinktest is the suite that every hostlink.Link passes, healthy or
// faulty: what must hold in the end, however often it takes.
package hostlinktest
