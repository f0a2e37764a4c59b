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
	"kurabe/test/bench/bed"
	"kurabe/test/bench/failover"
	"kurabe/test/bench/fleet"
	"kurabe/test/bench/labproof"
	"kurabe/test/bench/logs"
	"kurabe/test/bench/metrics"
	"kurabe/test/bench/notify"
	"kurabe/test/bench/proxy"
	"kurabe/test/bench/snapshot"
)

// parts are the benchmarks in their order; b is what the file has of the failovers.
func parts(b *failover.Book) []bed.Part {
	return append([]bed.Part{
		{Names: []string{"create"}, Run: createOne},
		{Names: []string{"many"}, Run: createMany},
		{Names: []string{"tpcb", "select", "sysbench"}, Run: speed},
		{Names: []string{"io"}, Run: limits},
		{Names: []string{"snapshot"}, Run: snapshot.Snapshots},
		{Names: []string{"accounts"}, Run: snapshot.Accounts},
		{Names: []string{"log"}, Run: snapshot.LogPrice},
		{Names: []string{"moment"}, Run: snapshot.Moment},
		{Names: []string{"service"}, Run: idle},
		{Names: []string{"metrics"}, Run: metrics.Measure},
		{Names: []string{"week"}, Run: metrics.Week},
		{Names: []string{"queries"}, Run: logs.Queries},
		{Names: []string{"export"}, Run: logs.Exports},
		{Names: []string{"notify"}, Run: notify.Measure},
		{Names: []string{"proxy"}, Run: proxy.Measure},
		{Names: []string{"fleet"}, Run: fleet.Measure},
		{Names: []string{"lab"}, Run: labproof.Proof},
	}, failover.Parts(b)...)
}

func main() {
	if proc.IsShim() { // how internal/proc starts the engines' tools
		proc.ShimMain()
	}
	if dir := os.Getenv(fleet.ServerEnv); dir != "" {
		exitOn(fleet.Serve(dir))
		return
	}
	if server := os.Getenv(proxy.ServerEnv); server != "" {
		exitOn(proxy.Serve(server))
		return
	}
	s, err := parseFlags()
	exitOn(err)
	if s.List || s.Print {
		exitOn(failover.WithoutMeasuring(s))
		return
	}
	if failover.MachinesNamed(s) {
		os.Exit(harness.Isolated(func() int {
			measure(s)
			return 0
		}))
	}
	measure(s)
}

func measure(s bed.Settings) {
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

func parseFlags() (bed.Settings, error) {
	var s bed.Settings
	flag.StringVar(&s.Only, "only", "", "benchmarks to run, with commas: create,many,tpcb,select,sysbench,io,snapshot,accounts,log,moment,service,metrics,week,queries,export,notify,proxy,fleet,lab,failover,hosts,replica,clusters (default: all)")
	flag.BoolVar(&s.Quick, "quick", false, "small sizes: shows that everything runs, not how fast")
	flag.IntVar(&s.Blocks, "blocks", 0, "blocks of each comparison (default 8; 6 with --quick, the least that has an interval)")
	flag.IntVar(&s.Seconds, "seconds", 0, "seconds of one measurement under load (default 8; 1 with --quick)")
	flag.Uint64Var(&s.Seed, "seed", uint64(time.Now().UnixNano()), "seed of every random order")
	flag.BoolVar(&s.AA, "aa", false, "measure the hand-started server twice in each block: how much the machine alone differs")
	flag.StringVar(&s.Class, "class", "", "class of the compared instance (default: one with all processors of this machine), and of the idle ones of the metrics")
	flag.StringVar(&s.Arm, "arm", "", "only the ways of taking a snapshot whose name has this in it, such as \"paced\"")
	flag.IntVar(&s.Instances, "instances", 0, "idle instances of each engine of the metrics (default 20; 3 with --quick)")
	flag.IntVar(&s.Rounds, "rounds", 0, "rounds of the failovers (default 20; 2 with --quick)")
	flag.StringVar(&s.Peers, "peers", "", "forms of Patroni beside the failovers, with commas: "+strings.Join(failover.PeerForms, ",")+", or none (default all; debian-fastest with --quick)")
	flag.StringVar(&s.Resume, "resume", "", "go on with this file of raw JSON lines: what it has of the failovers is not measured again")
	flag.DurationVar(&s.Within, "within", 0, "begin nothing new in the failovers after this long, such as 50m; --resume goes on with it")
	flag.BoolVar(&s.Abreast, "abreast", false, "all forms of Patroni go through a loss of the failovers at the same time, and Kurabe alone: much shorter, since their own settings mostly wait")
	flag.BoolVar(&s.List, "list", false, "say what is left to measure of the failovers, and how long it takes, and measure nothing")
	flag.BoolVar(&s.Print, "print", false, "print the figures that the file of --resume has, and measure nothing")
	flag.StringVar(&s.Engine, "engine", "", "only this engine of the snapshots, the log and the metrics: postgres or mariadb")
	flag.StringVar(&s.Sizes, "sizes", "", "GB of the data of which snapshots are taken, with commas (default "+snapshot.DefaultSizes+"; 0.3 with --quick)")
	flag.StringVar(&s.Out, "out", "", "file for the raw JSON lines; the table goes beside it (default .cache/bench/TIME.jsonl)")
	flag.StringVar(&s.Dir, "dir", "", "parent of the temporary folder; its disk is the one measured (default /var/tmp)")
	flag.StringVar(&s.Bin, "bin", "bin/kurabe", "the program to measure; built when it is missing")
	flag.BoolVar(&s.Keep, "keep", false, "keep the temporary folder, with the service's log")
	flag.Parse()
	if flag.NArg() > 0 {
		return s, fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	if err := check(s); err != nil {
		return s, err
	}
	if s.Blocks == 0 {
		s.Blocks = map[bool]int{false: 8, true: 6}[s.Quick]
	}
	if s.Seconds == 0 {
		s.Seconds = map[bool]int{false: 8, true: 1}[s.Quick]
	}
	if s.Dir == "" {
		s.Dir = "/var/tmp"
	}
	if s.Out == "" {
		s.Out = filepath.Join(".cache", "bench", time.Now().UTC().Format("20060102-150405")+".jsonl")
	}
	return s, nil
}

// check refuses what is not known, and what the failovers alone can do for others.
func check(s bed.Settings) error {
	var known []string
	for _, p := range parts(nil) {
		known = append(known, p.Names...)
	}
	names := strings.Split(s.Only, ",")
	for _, name := range names {
		if name != "" && !slices.Contains(known, name) {
			return fmt.Errorf("--only %s: choose from %s", name, strings.Join(known, ","))
		}
	}
	if s.Peers != "" && s.Peers != failover.NoPeers {
		for _, form := range strings.Split(s.Peers, ",") {
			if !slices.Contains(failover.PeerForms, form) {
				return fmt.Errorf("--peers %s: choose from %s, or %s", form, strings.Join(failover.PeerForms, ","), failover.NoPeers)
			}
		}
	}
	others := slices.ContainsFunc(names, func(name string) bool {
		return name != "failover" && name != failover.Hosts && name != failover.Clusters
	})
	if others && (s.Resume != "" || s.Within > 0 || s.List || s.Abreast) && !(s.Print && s.Only == "") {
		return errors.New("--resume, --within, --abreast and --list are for --only failover, hosts and clusters")
	}
	if s.Print && s.Resume == "" {
		return errors.New("--print needs the file of --resume")
	}
	return nil
}

// bench runs what was asked for. A part that fails does not keep the others from
// being measured; the run fails in the end.
func bench(ctx context.Context, s bed.Settings) (failure error) {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if s.Bin, err = bed.Program(ctx, s.Bin); err != nil {
		return err
	}
	r := &bed.Run{Settings: s, Rng: rand.New(rand.NewPCG(s.Seed, 0)), Self: self}
	b := failover.NewBook()
	if s.Resume != "" {
		if b, err = failover.ReadBook(s.Resume); err != nil {
			return err
		}
	}
	if r.Out, err = bed.OpenReport(ctx, s, b.Pieces); err != nil {
		return err
	}
	defer func() { failure = errors.Join(failure, r.Out.Close()) }()
	defer func() {
		if r.Lab != nil {
			failure = errors.Join(failure, r.Lab.Close())
		}
	}()
	for _, p := range parts(b) {
		if !slices.ContainsFunc(p.Names, r.Asked) {
			continue
		}
		title := strings.Join(slices.DeleteFunc(slices.Clone(p.Names), func(n string) bool { return !r.Asked(n) }), ", ")
		r.Out.Say("— %s", title)
		began := time.Now()
		err := p.Run(ctx, r)
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		if err != nil {
			r.Out.Row(bed.Row{Bench: p.Names[0], What: title, Value: bed.Failed, Note: bed.OneLine(err)})
			failure = errors.Join(failure, fmt.Errorf("%s: %w", title, err))
		}
		r.Out.Say("  %s took %.0f s", title, time.Since(began).Seconds())
	}
	return failure
}
