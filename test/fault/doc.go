// Package fault breaks things on purpose while a ledger counts what was
// acknowledged: the service is killed before and after each named step and at
// random times, engines are killed under load and at named steps, disks fill up, files
// are damaged. The places are named by internal/faultpoint.
//
// Hosts are network namespaces, and their cables are what is slow, lossy or cut: cuts are the
// kernel's (harness.Cuts), distances are carried by the test itself between two TAP devices
// (harness.FarMachine), since not every kernel has netem. A pair that is far apart keeps the
// promises of one that is near (apart_far_test.go); only its commits take as long as a word and
// its answer do. Bounds that are promises do not stretch with the distance: a commit waits for
// two seconds, and leases are as long as they are.
//
// A failed run with chance in it prints its seed and how to repeat it.
package fault
