package proc

import (
	"time"

	"golang.org/x/sys/unix"
)

// Boottime is the machine's time since it booted, in nanoseconds (CLOCK_BOOTTIME). Nobody
// can set it, and it counts while the machine is suspended.
func Boottime() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		panic("CLOCK_BOOTTIME: " + err.Error()) // Linux has had it since 2.6.39
	}
	return now.Nano()
}

// notAfter is the error of a start that came too late.
type notAfter struct{ until, now int64 }

func (e notAfter) Error() string {
	return "it is " + time.Duration(e.now-e.until).String() + " too late to start"
}
