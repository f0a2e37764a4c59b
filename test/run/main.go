package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	verbose := flag.Bool("v", false, "print the name of every test")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	all, err := run(ctx, *verbose, flag.Args())
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
	goCmd   []string // the go command, which may be "env X=Y go"
	verbose bool
	out     io.Writer
	skips   []string // "package test: reason", for the summary

	failures []string // lines of the summary: "package test", and its reasons
}

func newRunner(verbose bool) (*runner, error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		return nil, fmt.Errorf("start me in the folder of go.mod: %w", err)
	}
	goCmd := strings.Fields(os.Getenv("GO"))
	if len(goCmd) == 0 {
		goCmd = []string{"go"}
	}
	return &runner{root: root, goCmd: goCmd, verbose: verbose, out: os.Stdout}, nil
}

func run(ctx context.Context, verbose bool, names []string) (total, error) {
	var all total
	r, err := newRunner(verbose)
	if err != nil {
		return all, err
	}
	chosen, err := choose(names)
	if err != nil {
		return all, err
	}
	var lines []string
	for n := 0; n < len(chosen); {
		if ctx.Err() != nil {
			return all, fmt.Errorf("stopped before %s", chosen[n].name)
		}
		last := n
		for last < len(chosen)-1 && chosen[last].beside {
			last++
		}
		got, more := r.together(ctx, chosen[n:last+1])
		lines = append(lines, more...)
		all.add(got)
		n = last + 1
	}
	r.summary(lines)
	return all, nil
}

// together runs suites at the same time. What the last one prints is seen as it comes,
// that of the others when they have ended.
func (r *runner) together(ctx context.Context, of []suite) (total, []string) {
	out := r.out
	if len(of) > 1 {
		out = &lockedWriter{to: out}
	}
	runners, totals, lines := make([]*runner, len(of)), make([]total, len(of)), make([]string, len(of))
	var wait sync.WaitGroup
	for n, s := range of {
		c := *r
		runners[n], c.skips, c.failures = &c, nil, nil
		c.out = out
		if n == len(of)-1 {
			totals[n], lines[n] = c.runSuite(ctx, s)
			continue
		}
		kept := &bytes.Buffer{}
		c.out = kept
		wait.Go(func() {
			totals[n], lines[n] = c.runSuite(ctx, s)
			_, _ = out.Write(kept.Bytes())
		})
	}
	wait.Wait()
	var all total
	for n, c := range runners {
		all.add(totals[n])
		r.skips, r.failures = append(r.skips, c.skips...), append(r.failures, c.failures...)
	}
	return all, slices.DeleteFunc(lines, func(l string) bool { return l == "" })
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
	return got, fmt.Sprintf("   %-14s %8s   %s", s.name, time.Since(start).Round(100*time.Millisecond), got)
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
	for i, f := range r.failures {
		switch {
		case i < maxFailureLines, strings.HasPrefix(f, failedMark): // the name, whatever there is no room for
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
