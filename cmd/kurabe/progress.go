package main

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// progress shows what an instance is going through.
type progress struct {
	out      *os.File
	name     string
	began    time.Time
	last     string
	terminal bool
}

func newProgress(out *os.File, name string) *progress {
	_, err := unix.IoctlGetTermios(int(out.Fd()), unix.TCGETS)
	return &progress{out: out, name: name, began: time.Now(), terminal: err == nil}
}

func (p *progress) show(status string) {
	if status == "" {
		return
	}
	elapsed := time.Since(p.began).Seconds()
	if p.terminal {
		fmt.Fprintf(p.out, "\r\033[K%s: %s, %.1f s", p.name, status, elapsed)
	} else if status != p.last {
		fmt.Fprintf(p.out, "%s: %s, %.1f s\n", p.name, status, elapsed)
	}
	p.last = status
}

func (p *progress) end() {
	if p.terminal && p.last != "" {
		fmt.Fprintln(p.out)
	}
}
