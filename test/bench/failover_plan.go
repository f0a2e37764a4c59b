package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"kurabe/lab/stat"
)

// The parts of the failovers that are measured in one go.
const (
	partPrice   = "price of the second server"
	partGateway = "what the endpoint adds"
)

// The guesses of what one loss takes, with the waits for a whole pair, and of what else there
// is: from the first run of all of it on a small machine. A file that has some of it knows better.
const (
	guessHere    = 4 * time.Second
	guessApart   = 6 * time.Second
	guessFastest = 35 * time.Second
	guessDefault = 60 * time.Second
	guessStart   = 2 * time.Minute
	guessPart    = time.Minute // beside its blocks
)

// over says that the time of this piece is up: nothing new is begun.
func (r *run) over() bool {
	return r.Within > 0 && time.Since(r.began) >= r.Within
}

// once measures a part, unless the file has it, or its time is up.
func (r *run) once(ctx context.Context, name string, open func(context.Context) (*lab, error), measure func(context.Context, *lab) error) error {
	if ctx.Err() != nil {
		return nil
	}
	if rows, had := r.book.parts[name]; had {
		r.out.rows = append(r.out.rows, rows...)
		return nil
	}
	if r.over() {
		r.out.row(row{Bench: "failover", What: name, Value: notMeasured, Note: "left for another piece"})
		return nil
	}
	began, from := time.Now(), len(r.out.rows)
	l, err := open(ctx)
	if err != nil {
		return err
	}
	if err := measure(ctx, l); err != nil {
		return err
	}
	rows := r.out.rows[from:]
	r.book.parts[name] = rows
	r.out.sample(recordPart, map[string]any{"part": name, "rows": rows, "took": time.Since(began).Seconds()})
	r.out.keep()
	return nil
}

// listFailovers prints what is left to measure and how long it takes.
func (r *run) listFailovers(w io.Writer) {
	l := &lab{engines: map[string]string{}}
	p := &peers{r: r}
	together, alone := r.ours(l, &apart{r: r}, true)
	if len(together)+len(alone) > 0 {
		p.builds = patroniBuilds(r)
	}
	total := guessStart
	fmt.Fprintf(w, "%d rounds of each loss; what one takes is the median of the file, or a guess\n\n", r.rounds())
	abreast := time.Duration(0) // the slowest of those that go at the same time
	all := append(append(together, p.contenders()...), alone...)
	if r.asked(clusters) && r.Only != "" {
		all = append(all, r.clusterContenders(l)...)
	}
	for _, c := range all {
		left, took := 0, time.Duration(0)
		for _, x := range c.losses {
			n := max(0, r.rounds()-c.rounds(x))
			left, took = left+n, took+time.Duration(n)*c.expected(x)
		}
		round := time.Duration(0)
		for _, x := range c.losses {
			round += c.expected(x)
		}
		if r.Abreast && c.Role == rolePeer {
			total, abreast = total+max(0, took-abreast), max(abreast, took)
		} else {
			total += took
		}
		fmt.Fprintf(w, "%-42s %2d losses, %s a round; %3d left: %s\n", c.Name, len(c.losses), inMinutes(round), left, inMinutes(took))
	}
	for _, name := range r.partNames() {
		took := r.partTime(name)
		if _, had := r.book.parts[name]; had {
			took = 0
		}
		total += took
		fmt.Fprintf(w, "%-42s %s\n", name, inMinutes(took))
	}
	fmt.Fprintf(w, "\nall that is left: about %s\n", inMinutes(total))
}

func inMinutes(d time.Duration) string { return fmt.Sprintf("%.1f min", d.Minutes()) }

// expected is what one loss is going to take.
func (c *contender) expected(x *loss) time.Duration {
	var took []float64
	for _, s := range c.of(x) {
		took = append(took, s.Took)
	}
	switch {
	case len(took) > 0:
		return time.Duration(stat.Median(took) * float64(time.Second))
	case c.Role == rolePeer && strings.HasSuffix(c.Name, patroniDefault.title):
		return guessDefault
	case c.Role == rolePeer:
		return guessFastest
	case c.Role == roleFar, c.Role == roleFarOther:
		return guessApart
	}
	return guessHere
}

func (r *run) partNames() (names []string) {
	if r.asked("failover") {
		names = append(names, partPrice, partGateway)
	}
	if r.hostsToBeHad() {
		names = append(names, partPrice+overTwoHosts, partGateway+overTwoHosts)
	}
	return names
}

// partTime is that of its blocks: each has two arms.
func (r *run) partTime(name string) time.Duration {
	rates := 2 * r.Blocks
	took := guessPart
	if strings.HasPrefix(name, partGateway) {
		took += time.Duration(2*agreeRuns*r.Blocks) * (agreeWarm + r.agreeTime())
	} else {
		rates *= len(priceClients)
	}
	return took + time.Duration(rates*(r.Seconds+1))*time.Second
}

// figuresOnly prints the table of a raw file.
func figuresOnly(s settings) error {
	b, err := readBook(s.Resume)
	if err != nil {
		return err
	}
	newest := b.pieces[len(b.pieces)-1]
	o := &report{path: s.Resume, host: newest.Machine, began: newest.Started, pieces: b.pieces}
	r := &run{settings: newest.Settings, out: o, book: b}
	r.failoverFigures()
	r.clusterFigures()
	for _, name := range []string{partPrice, partGateway, partPrice + overTwoHosts, partGateway + overTwoHosts} {
		o.rows = append(o.rows, b.parts[name]...)
	}
	return o.print()
}
