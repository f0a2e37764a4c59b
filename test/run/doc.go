// Run runs the test suites, says what happens while it does, and prints the totals as its
// last line: "N passed, N failed, N skipped". Pure tests and studies come first, one
// after the other; then the other suites with real servers, in lanes at the same time, and
// static checks beside them. Each package of these, pytest and the tests without root have processes,
// addresses and temporary folders of their own (harness.Contained), so that lanes cannot
// meet.
//
//	go build -o .cache/test-run ./test/run && .cache/test-run [-v] [-whole|-rest] [suite ...]
//
// Pure tests run as if the machine had just started, in a zone and a language of their own
// (young.go), where the kernel and the user's rights allow that.
//
// Without a suite it runs all of them. Tests that take long are named in left.txt and run
// with -whole, or by themselves with -rest: a change has to be proved in a quarter of an
// hour, a release may take longer.
//
// It exists because a suite that silently runs nothing looks like one that
// passes. Each suite is counted, not trusted: a required suite without a test,
// or one in which everything was skipped, fails. What is counted is a test or
// subtest without subtests of its own; one static check counts as one test.
//
// Only Make and CI call it. No test lives here but its own.
package main
