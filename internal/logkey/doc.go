// Package logkey holds the keys of log attributes and the type for values that
// must never be logged.
//
// One word per idea: a key used in two places under two names cannot be searched
// for. Add a key here before using it. Everything that logs may import it; it
// imports only the standard library.
package logkey
