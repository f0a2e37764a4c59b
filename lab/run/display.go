package run

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"kurabe/lab/report"
	"kurabe/lab/result"
)

// Display says on w how a run goes on: on a terminal in lines that are drawn over, the
// trial under way and below it what is known of each variant; elsewhere in one line for
// each trial and one for each block, which a log can keep. The result is for Options.Say.
func Display(w io.Writer, terminal bool) func(Progress) {
	d := &display{w: w, terminal: terminal, size: sizeOf(w)}
	return d.say
}

type display struct {
	w        io.Writer
	terminal bool
	size     func() (columns, lines int) // of the terminal, as it is now
	drawn    int                         // lines that stand to be drawn over
	known    *report.Live                // as of the last block; nil before
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
		d.block(p)
	case "trial":
		d.trial(p)
	}
}

func (d *display) block(p Progress) {
	// Once a block: between trials of one there is a machine to be left alone.
	known := report.NewLive(p.File)
	d.known = &known
	where := fmt.Sprintf("block %d of %d", p.Block, p.Blocks)
	if !d.terminal {
		d.line(where + ": " + known.Line())
		return
	}
	d.erase()
	d.draw(where + " is measured" + left(p))
}

func (d *display) trial(p Progress) {
	where := fmt.Sprintf("block %d of %d, trial %d of %d", p.Block, p.Blocks, p.Trial, p.Trials)
	what := p.Cell.Variant + " under " + p.Cell.Workload
	switch {
	case p.Status != "" && p.Status != result.StatusOK:
		d.erase()
		d.line(fmt.Sprintf("%s: %s: %s (%s)", where, what, p.Status, p.Reason))
	case d.terminal && p.Status == "":
		d.erase()
		d.draw(where + left(p) + ": " + what)
	case !d.terminal && p.Status != "":
		d.line(fmt.Sprintf("%s%s: %s: %s", where, left(p), what, p.Status))
	}
}

func left(p Progress) string {
	if p.Left <= 0 {
		return ""
	}
	return ", about " + p.Left.Round(time.Second).String() + " left"
}

func (d *display) line(text string) { fmt.Fprintln(d.w, text) }

// draw writes a line and below it what is known, all of which the next one may replace.
// A line that wrapped could not be taken back, nor one that was scrolled out on top.
func (d *display) draw(text string) {
	columns, lines := d.size()
	most := columns - 1
	if r := []rune(text); len(r) > most {
		text = string(r[:most-1]) + "…"
	}
	all := []string{text}
	if d.known != nil {
		const others = 2 // the line above, and the one that the cursor is in
		all = append(all, d.known.Lines(most, lines-others)...)
	}
	fmt.Fprintln(d.w, strings.Join(all, "\n"))
	d.drawn += len(all)
}

// erase takes back what was drawn: up a line and clear it, for each.
func (d *display) erase() {
	fmt.Fprint(d.w, strings.Repeat("\x1b[1A\x1b[2K", d.drawn))
	d.drawn = 0
}

// The size of a terminal that does not tell, and the least that is drawn for.
const (
	usualColumns, usualLines = 80, 24
	leastColumns, leastLines = 20, 4
)

// sizeOf asks the terminal each time, since it may be made larger or smaller meanwhile.
func sizeOf(w io.Writer) func() (columns, lines int) {
	f, ok := w.(*os.File)
	return func() (int, int) {
		if !ok {
			return usualColumns, usualLines
		}
		size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
		if err != nil || size.Col == 0 || size.Row == 0 {
			return usualColumns, usualLines
		}
		return max(int(size.Col), leastColumns), max(int(size.Row), leastLines)
	}
}
