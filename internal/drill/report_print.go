package drill

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Print tells it to a person.
func (o *Report) Print(w io.Writer) {
	head := o.Order
	if o.Interrupted {
		head += ", interrupted"
	}
	fmt.Fprintf(w, "\nDrill of %s (%s): %s", o.Instance, o.Engine, head)
	if !o.Fault.IsZero() {
		fmt.Fprintf(w, ", at %s", o.Fault.UTC().Format(time.DateTime+".000 MST"))
	}
	fmt.Fprintf(w, "\n\nbefore  %s\nafter   %s\n", o.Before.words(), o.After.words())
	zero := "the fault"
	if o.Fault.IsZero() {
		zero = "the beginning; the drill left the server alone"
	}
	fmt.Fprintf(w, "\nTimeline, in seconds from %s\n", zero)
	for _, e := range o.Timeline {
		fmt.Fprintf(w, "%+9.3f  %-8s %s\n", e.Seconds, e.Source, strings.ReplaceAll(e.Text, "\n", " "))
	}
	o.printFigures(w)
}

func (p Place) words() string {
	if p.Writer.Server == "" {
		return "not known"
	}
	standby := "no standby has every commit"
	switch {
	case p.Standby.Server != "":
		standby = p.Standby.words() + " has every commit"
	case len(p.Readers) == 1:
		standby = p.Readers[0].words() + " has every commit"
	case len(p.Readers) > 1:
		var all []string
		for _, s := range p.Readers {
			all = append(all, s.words())
		}
		standby = "one of " + strings.Join(all, " and ") + " has every commit"
	}
	return fmt.Sprintf("epoch %d: %s writes, %s", p.Epoch, p.Writer.words(), standby)
}

func (s Seat) words() string {
	return fmt.Sprintf("%s (%s, process %d)", name(s.Server), s.Zone, s.Process)
}

// figureWidth is that of the longest name of a figure.
const figureWidth = 42

func (o *Report) printFigures(w io.Writer) {
	line := func(what, format string, args ...any) {
		fmt.Fprintf(w, "%-*s %s\n", figureWidth, what, fmt.Sprintf(format, args...))
	}
	fmt.Fprintln(w)
	line("Longest time without an acknowledgement", "%.2f s, which began at %+.3f", o.Gap, o.GapFrom)
	line("Longest wait of one commit", "%.2f s", o.LongestCommit)
	line("Errors that the client met", "%d", o.Errors)
	line("Rows acknowledged", "%d", o.Rows.Acknowledged)
	if o.Rows.Unread != "" {
		line("  of these missing", "not known: %s", o.Rows.Unread)
	} else {
		line("  of these missing", "%s", count(len(o.Rows.Missing)))
		line("Rows there without an acknowledgement", "%d (allowed: the commit succeeded and its answer was lost)", o.Rows.Unanswered)
		if odd := len(o.Rows.Twice) + len(o.Rows.Strange); odd > 0 {
			line("Rows there twice, or never written", "%d", odd)
		}
	}
	if r := o.Reads; r != nil {
		line("Reads answered at the reader endpoint", "%d, of which the writer answered %d", r.Answered, r.AtWriter)
		line("  longest time without one", "%.2f s, which began at %+.3f; %d errors", r.Gap, r.GapFrom, r.Errors)
	}
	if o.WholeAfter > 0 {
		line("Whole again", "after %.1f s", o.WholeAfter)
	} else if !o.Fault.IsZero() {
		line("Whole again", "not seen")
	}
}

func count(n int) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprint(n)
}
