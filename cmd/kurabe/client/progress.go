package client

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Progress shows what an instance is going through.
type Progress struct {
	out      *os.File
	name     string
	began    time.Time
	last     string
	Terminal bool
}

// NewProgress shows the progress of an instance of this name on out.
func NewProgress(out *os.File, name string) *Progress {
	_, err := unix.IoctlGetTermios(int(out.Fd()), unix.TCGETS)
	return &Progress{out: out, name: name, began: time.Now(), Terminal: err == nil}
}

// Show replaces the status on a terminal, and adds a line for a new one elsewhere.
func (p *Progress) Show(status string) {
	if status == "" {
		return
	}
	elapsed := time.Since(p.began).Seconds()
	if p.Terminal {
		fmt.Fprintf(p.out, "\r\033[K%s: %s, %.1f s", p.name, status, elapsed)
	} else if status != p.last {
		fmt.Fprintf(p.out, "%s: %s, %.1f s\n", p.name, status, elapsed)
	}
	p.last = status
}

// End leaves the last status on the screen.
func (p *Progress) End() {
	if p.Terminal && p.last != "" {
		fmt.Fprintln(p.out)
	}
}
