// Package run is the story of a study: what is measured is decided by study, given a
// server by target, loaded by load, watched by probe, and appended to a result file
// trial by trial, so that a run that ends anywhere can be resumed there.
//
// It computes no figure of its own. Only the command calls it.
package run
