package failover

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"kurabe/lab/stat"
	"kurabe/test/bench/bed"
	"kurabe/test/bench/labproof"
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
func (r *comparison) over() bool {
	return r.Within > 0 && time.Since(r.began) >= r.Within
}

// once measures a part, unless the file has it, or its time is up.
func (r *comparison) once(ctx context.Context, name string, open func(context.Context) (*site, error), measure func(context.Context, *site) error) error {
	if ctx.Err() != nil {
		return nil
	}
	if rows, had := r.book.parts[name]; had {
		r.Out.Rows = append(r.Out.Rows, rows...)
		return nil
	}
	if r.over() {
		r.Out.Row(bed.Row{Bench: "failover", What: name, Value: bed.NotMeasured, Note: "left for another piece"})
		return nil
	}
	began, from := time.Now(), len(r.Out.Rows)
	l, err := open(ctx)
	if err != nil {
		return err
	}
	if err := measure(ctx, l); err != nil {
		return err
	}
	rows := r.Out.Rows[from:]
	r.book.parts[name] = rows
	r.Out.Sample(recordPart, map[string]any{"part": name, "rows": rows, "took": time.Since(began).Seconds()})
	r.Out.Keep()
	return nil
}

// listFailovers prints what is left to measure and how long it takes.
func (r *comparison) listFailovers(w io.Writer) {
	l := &site{Lab: &bed.Lab{Engines: map[string]string{}}}
	p := &peers{r: r}
	together, alone := r.ours(l, &apart{r: r}, true)
	if len(together)+len(alone) > 0 {
		p.builds = patroniBuilds(r)
	}
	total := guessStart
	fmt.Fprintf(w, "%d rounds of each loss; what one takes is the median of the file, or a guess\n\n", r.rounds())
	abreast := time.Duration(0) // the slowest of those that go at the same time
	all := append(append(together, p.contenders()...), alone...)
	if r.Asked(Clusters) && r.Only != "" {
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

func (r *comparison) partNames() (names []string) {
	if r.Asked("failover") {
		names = append(names, partPrice, partGateway)
	}
	if r.hostsToBeHad() {
		names = append(names, partPrice+overTwoHosts, partGateway+overTwoHosts)
	}
	return names
}

// partTime is that of its blocks: each has two arms.
func (r *comparison) partTime(name string) time.Duration {
	rates := 2 * r.Blocks
	took := guessPart
	if strings.HasPrefix(name, partGateway) {
		took += time.Duration(2*labproof.AgreeRuns*r.Blocks) * (labproof.AgreeWarm + labproof.AgreeTime(r.Run))
	} else {
		rates *= len(priceClients)
	}
	return took + time.Duration(rates*(r.Seconds+1))*time.Second
}

// figuresOnly prints the table of a raw file.
func figuresOnly(s bed.Settings) error {
	b, err := ReadBook(s.Resume)
	if err != nil {
		return err
	}
	newest := b.Pieces[len(b.Pieces)-1]
	o := &bed.Report{Path: s.Resume, Host: newest.Machine, Began: newest.Started, Pieces: b.Pieces}
	r := &comparison{Run: &bed.Run{Settings: newest.Settings, Out: o}, book: b}
	r.failoverFigures()
	r.clusterFigures()
	for _, name := range []string{partPrice, partGateway, partPrice + overTwoHosts, partGateway + overTwoHosts} {
		o.Rows = append(o.Rows, b.parts[name]...)
	}
	return o.Print()
}

// WithoutMeasuring answers from what a file has.
func WithoutMeasuring(s bed.Settings) error {
	if s.Print {
		return figuresOnly(s)
	}
	r := &comparison{Run: &bed.Run{Settings: s}, book: NewBook()}
	if s.Resume != "" {
		var err error
		if r.book, err = ReadBook(s.Resume); err != nil {
			return err
		}
		// It can be asked on any machine, and gone on with on one.
		if err := bed.SameSetting(r.book.Pieces, bed.DescribeMachine(context.Background(), s), s); err != nil {
			fmt.Fprintf(os.Stderr, "bench: it would be refused here: %v\n", err)
		}
	}
	r.listFailovers(os.Stdout)
	return nil
}
