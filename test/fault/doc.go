// Package fault breaks things on purpose while a ledger counts what was
// acknowledged: the service is killed before and after each named step and at
// random times, engines are killed under load and at named steps, disks fill up, files
// are damaged. The places are named by internal/faultpoint.
//
// A failed run with chance in it prints its seed and how to repeat it.
package fault
