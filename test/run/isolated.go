package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// isolatedFlag has this program run another one isolated, which is no test binary and so
// cannot do it itself: pytest, and what has no root any more.
const isolatedFlag = "-isolated"

// isolated is the command that runs another isolated: it leaves no process, no folder, and
// meets no address of anybody else's.
func (r *runner) isolated(argv ...string) []string {
	return append([]string{r.self, isolatedFlag}, argv...)
}

// runInside runs the program and returns its status.
func runInside(argv []string) int {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "test/run:", err)
		return 1
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s)
		}
	}()
	err := cmd.Wait()
	var ended *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &ended) && ended.ExitCode() > 0:
		return ended.ExitCode()
	}
	fmt.Fprintln(os.Stderr, "test/run:", err)
	return 1
}
