// Package lab has the commands of the lab: flags, files and printing around the studies, which
// are in the folder lab.
package lab
