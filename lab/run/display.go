package run

import (
	"fmt"
	"io"
	"strings"
	"time"

	"kurabe/lab/report"
	"kurabe/lab/result"
)

// Display says on w how a run goes on: on a terminal in two lines that are drawn over,
// elsewhere in one line for each trial, which a log can keep. The result is for
// Options.Say.
func Display(w io.Writer, terminal bool) func(Progress) {
	d := &display{w: w, terminal: terminal}
	return d.say
}

type display struct {
	w        io.Writer
	terminal bool
	drawn    int    // lines that stand to be drawn over
	estimate string // as of the last block
}

func (d *display) say(p Progress) {
	switch p.Stage {
	case "check":
		d.line("checking the target")
	case "prepare":
		d.line("preparing the data; every trial starts from it")
	case "clean":
		d.erase()
		d.line("removing what the lab created")
	case "block":
		d.estimate = report.Line(p.File)
		if !d.terminal {
			d.line(fmt.Sprintf("block %d of %d: %s", p.Block, p.Blocks, d.estimate))
		}
	case "trial":
		d.trial(p)
	}
}

func (d *display) trial(p Progress) {
	where := fmt.Sprintf("block %d of %d, trial %d of %d", p.Block, p.Blocks, p.Trial, p.Trials)
	what := p.Cell.Variant + " under " + p.Cell.Workload
	left := ""
	if p.Left > 0 {
		left = ", about " + p.Left.Round(time.Second).String() + " left"
	}
	switch {
	case p.Status != "" && p.Status != result.StatusOK:
		d.erase()
		d.line(fmt.Sprintf("%s: %s: %s (%s)", where, what, p.Status, p.Reason))
	case d.terminal && p.Status == "":
		d.erase()
		d.draw(where + left + ": " + what)
		if d.estimate != "" {
			d.draw(d.estimate)
		}
	case !d.terminal && p.Status != "":
		d.line(fmt.Sprintf("%s%s: %s: %s", where, left, what, p.Status))
	}
}

func (d *display) line(text string) { fmt.Fprintln(d.w, text) }

// draw writes a line that the next one may replace; one that wrapped could not be.
func (d *display) draw(text string) {
	const most = 78
	if r := []rune(text); len(r) > most {
		text = string(r[:most-1]) + "…"
	}
	fmt.Fprintln(d.w, text)
	d.drawn++
}

// erase takes back what was drawn: up a line and clear it, for each.
func (d *display) erase() {
	fmt.Fprint(d.w, strings.Repeat("\x1b[1A\x1b[2K", d.drawn))
	d.drawn = 0
}
