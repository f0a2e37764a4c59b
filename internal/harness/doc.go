// Package harness starts the real service for tests: the real binary on a folder
// of its own, killed, ended and started again at will, with a client of the
// public API, ordinary logins to the databases and a ledger of acknowledged rows.
//
// Machines in miniature (NewNetwork) have a cable of the kernel's, or one that can be made long
// (FarMachine, Stretch): frames then pass through this process, which delays them. Where
// /dev/net/tun is missing, what needs that is skipped.
//
// It must not reach into the service: everything is seen from the outside, over
// the API, the endpoints, the file system and the kernel. Called by test/integration,
// test/fault and test/bench, which is a program and no test (see Standalone), only.
// Invariant: what a test started ends with it, also when it fails. As root the test
// binary therefore runs in process, mount and network namespaces of its own, without root
// below a process that ends what it leaves (see Main, Contained and Isolated). The suites of the
// engines use that too (enginetest.Main).
package harness
