package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"kurabe/internal/harness"
	"kurabe/internal/proc"
)

// settings are the flags, as they are recorded with the run.
type settings struct {
	Only    string `json:"only"`
	Quick   bool   `json:"quick"`
	Blocks  int    `json:"blocks"`
	Seconds int    `json:"seconds"`
	Seed    uint64 `json:"seed"`
	AA      bool   `json:"aa"`
	Class   string `json:"class"`
	Sizes   string `json:"sizes"`
	Engine  string `json:"engine,omitempty"`
	Arm     string `json:"arm,omitempty"`
	Rounds  int    `json:"rounds,omitempty"`
	Peers   string `json:"peers,omitempty"`
	Resume  string `json:"resume,omitempty"`
	// Within is how long new losses of the failovers are begun.
	Within time.Duration `json:"within,omitempty"`
	// Abreast has the peers go through each loss at the same time.
	Abreast bool `json:"abreast,omitempty"`

	out, dir, bin     string
	keep, list, print bool
}

// part is one benchmark, or several that share what they set up.
type part struct {
	names []string
	run   func(context.Context, *run) error
}

var parts = []part{
	{[]string{"create"}, createOne},
	{[]string{"many"}, createMany},
	{[]string{"tpcb", "select", "sysbench"}, speed},
	{[]string{"io"}, limits},
	{[]string{"snapshot"}, snapshots},
	{[]string{"accounts"}, accounts},
	{[]string{"log"}, logPrice},
	{[]string{"moment"}, moment},
	{[]string{"service"}, idle},
	{[]string{"fleet"}, fleet},
	{[]string{"lab"}, labProof},
}

// run is one run of the program.
type run struct {
	settings
	rng  *rand.Rand
	out  *report
	lab  *lab // opened by the first part that needs it
	self string

	book  *book     // of the failovers
	began time.Time // when their piece began
}

// asked says whether a benchmark is to run.
func (r *run) asked(name string) bool {
	return r.Only == "" || slices.Contains(strings.Split(r.Only, ","), name)
}

// pick is a size that --quick makes small.
func pick[T any](r *run, full, quick T) T {
	if r.Quick {
		return quick
	}
	return full
}

func main() {
	if proc.IsShim() { // how internal/proc starts the engines' tools
		proc.ShimMain()
	}
	if dir := os.Getenv(fleetEnv); dir != "" {
		exitOn(fleetServer(dir))
		return
	}
	s, err := parseFlags()
	exitOn(err)
	if s.list || s.print {
		exitOn(withoutMeasuring(s))
		return
	}
	if s.machinesNamed() {
		os.Exit(harness.Isolated(func() int {
			measure(s)
			return 0
		}))
	}
	measure(s)
}

func measure(s settings) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	exitOn(bench(ctx, s))
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func parseFlags() (settings, error) {
	var s settings
	flag.StringVar(&s.Only, "only", "", "benchmarks to run, with commas: create,many,tpcb,select,sysbench,io,snapshot,accounts,log,moment,service,fleet,lab,failover,hosts,replica,clusters (default: all)")
	flag.BoolVar(&s.Quick, "quick", false, "small sizes: shows that everything runs, not how fast")
	flag.IntVar(&s.Blocks, "blocks", 0, "blocks of each comparison (default 8; 6 with --quick, the least that has an interval)")
	flag.IntVar(&s.Seconds, "seconds", 0, "seconds of one measurement under load (default 8; 1 with --quick)")
	flag.Uint64Var(&s.Seed, "seed", uint64(time.Now().UnixNano()), "seed of every random order")
	flag.BoolVar(&s.AA, "aa", false, "measure the hand-started server twice in each block: how much the machine alone differs")
	flag.StringVar(&s.Class, "class", "", "class of the compared instance (default: one with all processors of this machine)")
	flag.StringVar(&s.Arm, "arm", "", "only the ways of taking a snapshot whose name has this in it, such as \"paced\"")
	flag.IntVar(&s.Rounds, "rounds", 0, "rounds of the failovers (default 20; 2 with --quick)")
	flag.StringVar(&s.Peers, "peers", "", "forms of Patroni beside the failovers, with commas: "+strings.Join(peerForms, ",")+", or none (default all; debian-fastest with --quick)")
	flag.StringVar(&s.Resume, "resume", "", "go on with this file of raw JSON lines: what it has of the failovers is not measured again")
	flag.DurationVar(&s.Within, "within", 0, "begin nothing new in the failovers after this long, such as 50m; --resume goes on with it")
	flag.BoolVar(&s.Abreast, "abreast", false, "all forms of Patroni go through a loss of the failovers at the same time, and Kurabe alone: much shorter, since their own settings mostly wait")
	flag.BoolVar(&s.list, "list", false, "say what is left to measure of the failovers, and how long it takes, and measure nothing")
	flag.BoolVar(&s.print, "print", false, "print the figures that the file of --resume has, and measure nothing")
	flag.StringVar(&s.Engine, "engine", "", "only this engine of the snapshots and the log: postgres or mariadb")
	flag.StringVar(&s.Sizes, "sizes", "", "GB of the data of which snapshots are taken, with commas (default "+snapshotSizes+"; 0.3 with --quick)")
	flag.StringVar(&s.out, "out", "", "file for the raw JSON lines; the table goes beside it (default .cache/bench/TIME.jsonl)")
	flag.StringVar(&s.dir, "dir", "", "parent of the temporary folder; its disk is the one measured (default /var/tmp)")
	flag.StringVar(&s.bin, "bin", "bin/kurabe", "the program to measure; built when it is missing")
	flag.BoolVar(&s.keep, "keep", false, "keep the temporary folder, with the service's log")
	flag.Parse()
	if flag.NArg() > 0 {
		return s, fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	if err := s.check(); err != nil {
		return s, err
	}
	if s.Blocks == 0 {
		s.Blocks = map[bool]int{false: 8, true: 6}[s.Quick]
	}
	if s.Seconds == 0 {
		s.Seconds = map[bool]int{false: 8, true: 1}[s.Quick]
	}
	if s.dir == "" {
		s.dir = "/var/tmp"
	}
	if s.out == "" {
		s.out = filepath.Join(".cache", "bench", time.Now().UTC().Format("20060102-150405")+".jsonl")
	}
	return s, nil
}

// check refuses what is not known, and what the failovers alone can do for others.
func (s settings) check() error {
	var known []string
	for _, p := range parts {
		known = append(known, p.names...)
	}
	names := strings.Split(s.Only, ",")
	for _, name := range names {
		if name != "" && !slices.Contains(known, name) {
			return fmt.Errorf("--only %s: choose from %s", name, strings.Join(known, ","))
		}
	}
	if s.Peers != "" && s.Peers != noPeers {
		for _, form := range strings.Split(s.Peers, ",") {
			if !slices.Contains(peerForms, form) {
				return fmt.Errorf("--peers %s: choose from %s, or %s", form, strings.Join(peerForms, ","), noPeers)
			}
		}
	}
	others := slices.ContainsFunc(names, func(name string) bool { return name != "failover" && name != hosts && name != clusters })
	if others && (s.Resume != "" || s.Within > 0 || s.list || s.Abreast) && !(s.print && s.Only == "") {
		return errors.New("--resume, --within, --abreast and --list are for --only failover, hosts and clusters")
	}
	if s.print && s.Resume == "" {
		return errors.New("--print needs the file of --resume")
	}
	return nil
}

// withoutMeasuring answers from what a file has.
func withoutMeasuring(s settings) error {
	if s.print {
		return figuresOnly(s)
	}
	r := &run{settings: s, book: newBook()}
	if s.Resume != "" {
		var err error
		if r.book, err = readBook(s.Resume); err != nil {
			return err
		}
		// It can be asked on any machine, and gone on with on one.
		if err := errors.Join(r.book.sameMachine(describeMachine(context.Background(), s)), r.book.sameSizes(s)); err != nil {
			fmt.Fprintf(os.Stderr, "bench: it would be refused here: %v\n", err)
		}
	}
	r.listFailovers(os.Stdout)
	return nil
}

// bench runs what was asked for. A part that fails does not keep the others from
// being measured; the run fails in the end.
func bench(ctx context.Context, s settings) (failure error) {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if s.bin, err = program(ctx, s.bin); err != nil {
		return err
	}
	r := &run{settings: s, rng: rand.New(rand.NewPCG(s.Seed, 0)), self: self, book: newBook()}
	if s.Resume != "" {
		if r.book, err = readBook(s.Resume); err != nil {
			return err
		}
	}
	if r.out, err = openReport(ctx, s, r.book); err != nil {
		return err
	}
	defer func() { failure = errors.Join(failure, r.out.close()) }()
	defer func() {
		if r.lab != nil {
			failure = errors.Join(failure, r.lab.close())
		}
	}()
	for _, p := range parts {
		if !slices.ContainsFunc(p.names, r.asked) {
			continue
		}
		title := strings.Join(slices.DeleteFunc(slices.Clone(p.names), func(n string) bool { return !r.asked(n) }), ", ")
		r.out.say("— %s", title)
		began := time.Now()
		err := p.run(ctx, r)
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		if err != nil {
			r.out.row(row{Bench: p.names[0], What: title, Value: failed, Note: oneLine(err)})
			failure = errors.Join(failure, fmt.Errorf("%s: %w", title, err))
		}
		r.out.say("  %s took %.0f s", title, time.Since(began).Seconds())
	}
	return failure
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
