package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"kurabe/internal/harness"
)

func main() {
	if len(os.Args) > 2 && os.Args[1] == isolatedFlag {
		os.Exit(harness.Contained(func() int { return runInside(os.Args[2:]) }))
	}
	if len(os.Args) > 2 && os.Args[1] == youngFlag {
		fmt.Fprintln(os.Stderr, "test/run:", becomeYoung(os.Args[2:]))
		os.Exit(1)
	}
	verbose := flag.Bool("v", false, "print the name of every test")
	whole := flag.Bool("whole", false, "run the tests that take long too (left.txt)")
	rest := flag.Bool("rest", false, "run those alone, after a run without")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	all, err := run(ctx, runner{verbose: *verbose, whole: *whole, rest: *rest}, flag.Args())
	if err != nil {
		fmt.Println("test/run:", err)
		all.failed++
	}
	saveTotals(all)
	fmt.Println(all)
	if all.failed > 0 {
		os.Exit(1)
	}
}

// runner is what every suite needs.
type runner struct {
	root    string   // the folder of go.mod
	self    string   // this program
	goCmd   []string // the go command, which may be "env X=Y go"
	verbose bool
	out     io.Writer
	whole   bool      // nothing is left out
	rest    bool      // only what others leave out is run
	left    leftTests // what that is
	env     []string  // what a suite's tests find beside the environment of this program
	skips   []string  // "package test: reason", for the summary

	leftOut  int           // how many tests that were
	cpu      time.Duration // of the processors, by what the suite has run so far
	failures []string      // lines of the summary: "package test", and its reasons
	again    testRun       // how the suite that runs would run one of its tests again; nil: not
	retries  []retry       // what failed and may be run again
}

// prepare adds to the wishes of a run what it needs.
func (r runner) prepare() (*runner, error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		return nil, fmt.Errorf("start me in the folder of go.mod: %w", err)
	}
	r.root, r.out = root, os.Stdout
	if r.goCmd = strings.Fields(os.Getenv("GO")); len(r.goCmd) == 0 {
		r.goCmd = []string{"go"}
	}
	if r.self, err = os.Executable(); err != nil {
		return nil, err
	}
	r.left, err = parseLeft(leftText)
	return &r, err
}

func run(ctx context.Context, wishes runner, names []string) (total, error) {
	var all total
	r, err := wishes.prepare()
	if err != nil {
		return all, err
	}
	chosen, err := choose(names)
	if err != nil {
		return all, err
	}
	if r.rest {
		chosen = slices.DeleteFunc(slices.Clone(chosen), func(s suite) bool { return r.left[s.leaves()] == nil })
	}
	alone, beside := lanes(chosen)
	var lines []string
	for _, s := range alone {
		got, more := r.inOrder(ctx, []suite{s}, false)
		all.add(got)
		lines = append(lines, more...)
	}
	got, more := r.together(ctx, beside)
	all.add(got)
	r.runAgain(ctx, &all)
	r.summary(append(lines, more...))
	if ctx.Err() != nil {
		return all, errors.New("stopped before the end")
	}
	return all, nil
}

// together runs lanes at the same time. What the first one prints is seen as it comes,
// that of the others whenever one of their suites has ended.
func (r *runner) together(ctx context.Context, lanes [][]suite) (total, []string) {
	out := &lockedWriter{to: r.out}
	runners, totals, lines := make([]*runner, len(lanes)), make([]total, len(lanes)), make([][]string, len(lanes))
	var wait sync.WaitGroup
	for n, lane := range lanes {
		c := *r
		runners[n], c.skips, c.failures, c.retries, c.leftOut, c.out = &c, nil, nil, nil, 0, out
		wait.Go(func() { totals[n], lines[n] = c.inOrder(ctx, lane, n > 0) })
	}
	wait.Wait()
	var all total
	for n, c := range runners {
		all.add(totals[n])
		r.skips, r.failures = append(r.skips, c.skips...), append(r.failures, c.failures...)
		r.retries = append(r.retries, c.retries...)
		r.leftOut += c.leftOut
	}
	return all, slices.Concat(lines...)
}

// inOrder runs one suite after the other. What a held one prints comes when it has ended.
func (r *runner) inOrder(ctx context.Context, of []suite, held bool) (total, []string) {
	var all total
	var lines []string
	out := r.out
	for _, s := range of {
		if ctx.Err() != nil {
			break
		}
		kept := &bytes.Buffer{}
		if held {
			// A bytes.Buffer itself would be handed to the programs of a suite, which
			// read into it beside what the suite says.
			r.out = &lockedWriter{to: kept}
		}
		got, line := r.runSuite(ctx, s)
		_, _ = out.Write(kept.Bytes())
		all.add(got)
		if line != "" {
			lines = append(lines, line)
		}
	}
	r.out = out
	return all, lines
}

// used adds what a command and all that it started have used of the processors: a suite is
// as long as that on a machine that has nothing else to do.
func (r *runner) used(cmd *exec.Cmd) {
	if s := cmd.ProcessState; s != nil {
		r.cpu += s.UserTime() + s.SystemTime()
	}
}

// lockedWriter takes what several write at the same time.
type lockedWriter struct {
	mu sync.Mutex
	to io.Writer
}

func (w *lockedWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(b)
}

// runSuite runs one suite and judges it. The line is empty for a suite that does
// not exist and need not.
func (r *runner) runSuite(ctx context.Context, s suite) (total, string) {
	fmt.Fprintf(r.out, "\n== %s: %s\n", s.name, s.about)
	start := time.Now()
	r.cpu = 0
	got, err := s.run(r, ctx)
	switch {
	case err == errAbsent && !s.required:
		fmt.Fprintln(r.out, "   nothing to run")
		return total{}, ""
	case err != nil:
		fmt.Fprintf(r.out, "FAIL %s: %v\n", s.name, err)
		got.failed++
	case got.passed+got.failed == 0:
		fmt.Fprintf(r.out, "FAIL %s: not one test ran\n", s.name)
		got.failed++
	}
	return got, fmt.Sprintf("   %-14s %8s, %4.0f s of processor   %s", s.name, time.Since(start).Round(100*time.Millisecond), r.cpu.Seconds(), got)
}

// maxSkipLines bounds the summary; -v shows the rest in passing.
const maxSkipLines = 40

// maxSkipLinesFailed is what is left of it where the failures are the news.
const maxSkipLinesFailed = 8

// maxFailureLines bounds those.
const maxFailureLines = 80

func (r *runner) summary(lines []string) {
	fmt.Println()
	most := maxSkipLines
	if len(r.failures) > 0 {
		most = maxSkipLinesFailed
	}
	for i, s := range r.skips {
		if i == most {
			fmt.Printf("   … and %d more skipped\n", len(r.skips)-i)
			break
		}
		fmt.Println("   skipped:", s)
	}
	fmt.Println(strings.Join(lines, "\n"))
	if r.leftOut > 0 {
		fmt.Printf("   %d tests that take long were left out (test/run/left.txt); make whole runs them too\n", r.leftOut)
	}
	for i, f := range r.failures {
		switch {
		case i < maxFailureLines, strings.HasPrefix(f, failedMark), strings.HasPrefix(f, unsteadyMark): // the name, whatever there is no room for
			fmt.Println("  ", f)
		case i == maxFailureLines:
			fmt.Println("   …")
		}
	}
}

// saveTotals leaves the totals for .ci/run, because Make has the last word on a
// failure. They are a copy: that it cannot be written fails nothing.
func saveTotals(all total) {
	if os.MkdirAll(".cache", 0o755) == nil {
		_ = os.WriteFile(".cache/test-totals", []byte(all.String()+"\n"), 0o644)
	}
}
