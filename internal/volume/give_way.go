package volume

import (
	"runtime"
	"syscall"
)

// GiveWay has the rest of the calling goroutine run on a thread of its own that takes
// the processor time which others on this machine leave: for reading and packing that
// nobody waits for. The thread ends with the goroutine, as its weight cannot be raised
// again without privileges; so it is for goroutines that end.
func GiveWay() {
	const least = 19 // man 7 sched: the nice value with the smallest weight
	runtime.LockOSThread()
	// Without effect it is only less polite. On Linux it is about the calling thread.
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, least)
}
