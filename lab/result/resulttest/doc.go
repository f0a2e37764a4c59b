// Package resulttest makes files of results that no server was needed for: studies of
// known effect with everything in them that a real one has, failed trials too. Tests
// of what reads a file use it.
//
// The same seed and options give the same file. It must not be imported but by tests.
package resulttest
