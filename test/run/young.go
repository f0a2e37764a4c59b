package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// youngFlag has this program become another one, on a machine that has just started.
const youngFlag = "-young"

// youngAge is how long the machine of a young program says to have run, in seconds.
const youngAge = 1

// oddPlace is where pure tests run: a zone that is not whole hours off, and a locale whose small
// and capital letters are not those of English.
var oddPlace = []string{"TZ=Asia/Kathmandu", "LANG=tr_TR.UTF-8", "LC_ALL=tr_TR.UTF-8"}

// youngArgs are the words by which go test starts each program of tests on a young machine:
// none, where the kernel or the user's rights do not allow that.
func (r *runner) youngArgs(ctx context.Context) []string {
	if out, err := exec.CommandContext(ctx, r.self, youngFlag, "true").CombinedOutput(); err != nil {
		fmt.Fprintf(r.out, "   not on a machine that has just started: %v %s\n", err, out)
		return nil
	}
	return []string{"-exec=" + r.self + " " + youngFlag}
}

// becomeYoung becomes the program, in a time namespace whose clocks since the start of the
// machine began youngAge ago. It returns only when that fails.
func becomeYoung(argv []string) error {
	var up unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &up); err != nil {
		return fmt.Errorf("ask how long the machine has run: %w", err)
	}
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		return err
	}
	back := strconv.FormatInt(youngAge-up.Sec+timeOffset(), 10)
	return syscall.Exec(unshare, append([]string{unshare, "--time", "--boottime", back, "--monotonic", back, "--"}, argv...), os.Environ())
}

// timeOffset is by how many seconds the namespace that we are in is off the machine, from which
// the kernel counts: not 0 in a young program.
func timeOffset() int64 {
	text, err := os.ReadFile("/proc/self/timens_offsets")
	if err != nil {
		return 0 // a kernel without
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "boottime" {
			seconds, _ := strconv.ParseInt(f[1], 10, 64)
			return seconds
		}
	}
	return 0
}
