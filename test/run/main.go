package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
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
	skips   []string    // "package test: reason", for the summary
	mu      *sync.Mutex // of out, where suites run beside each other
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
	return &runner{root: root, goCmd: goCmd, verbose: verbose, out: os.Stdout, mu: &sync.Mutex{}}, nil
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
	results := make([]suiteResult, len(chosen))
	for _, batch := range lanes(chosen) {
		var wg sync.WaitGroup
		for _, lane := range batch {
			wg.Go(func() {
				for _, n := range lane {
					if ctx.Err() == nil {
						own := r.beside(chosen[n].name, len(batch) > 1)
						results[n] = own.runSuite(ctx, chosen[n])
						if w, ok := own.out.(*lineWriter); ok && len(w.rest) > 0 {
							fmt.Fprintln(w) // what ended without a line's end
						}
					}
				}
			})
		}
		wg.Wait()
	}
	for _, got := range results {
		all.add(got.total)
		r.skips = append(r.skips, got.skips...)
	}
	if ctx.Err() != nil {
		return all, errors.New("stopped before the end")
	}
	r.summary(results)
	return all, nil
}

// lanes are the numbers of the suites in the order in which they run: batches follow
// one another, the lanes of a batch run beside each other. Suites with real servers
// wait for these half of the time.
func lanes(chosen []suite) (batches [][][]int) {
	var rest [][]int
	at := map[int]int{}
	for n, s := range chosen {
		if s.lane == 0 {
			batches = append(batches, [][]int{{n}})
			continue
		}
		k, known := at[s.lane]
		if !known {
			k = len(rest)
			at[s.lane], rest = k, append(rest, nil)
		}
		rest[k] = append(rest[k], n)
	}
	if len(rest) > 0 {
		batches = append(batches, rest)
	}
	return batches
}

// beside is a runner of one suite. Where others run at the same time, each line says
// whose it is.
func (r *runner) beside(name string, others bool) *runner {
	own := *r
	own.skips = nil
	if others {
		own.out = &lineWriter{to: r.out, mu: r.mu, prefix: fmt.Sprintf("%-12s | ", name)}
	}
	return &own
}

// lineWriter writes whole lines, each with its prefix.
type lineWriter struct {
	to     io.Writer
	mu     *sync.Mutex // of to, and of rest: a command's two streams share a writer
	prefix string
	rest   []byte
}

func (w *lineWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rest = append(w.rest, b...)
	for {
		end := bytes.IndexByte(w.rest, '\n')
		if end < 0 {
			return len(b), nil
		}
		if _, err := fmt.Fprintf(w.to, "%s%s", w.prefix, w.rest[:end+1]); err != nil {
			return 0, err
		}
		w.rest = w.rest[end+1:]
	}
}

// suiteResult is what one suite came to. The line is empty for a suite that does not
// exist and need not.
type suiteResult struct {
	total
	line  string
	skips []string
}

// runSuite runs one suite and judges it.
func (r *runner) runSuite(ctx context.Context, s suite) suiteResult {
	fmt.Fprintf(r.out, "\n== %s: %s\n", s.name, s.about)
	start := time.Now()
	got, err := s.run(r, ctx)
	switch {
	case err == errAbsent && !s.required:
		fmt.Fprintln(r.out, "   nothing to run")
		return suiteResult{}
	case err != nil:
		fmt.Fprintf(r.out, "FAIL %s: %v\n", s.name, err)
		got.failed++
	case got.passed+got.failed == 0:
		fmt.Fprintf(r.out, "FAIL %s: not one test ran\n", s.name)
		got.failed++
	}
	return suiteResult{got, fmt.Sprintf("   %-14s %8s   %s", s.name, time.Since(start).Round(100*time.Millisecond), got), r.skips}
}

// maxSkipLines bounds the summary; -v shows the rest in passing.
const maxSkipLines = 40

func (r *runner) summary(results []suiteResult) {
	fmt.Println()
	for i, s := range r.skips {
		if i == maxSkipLines {
			fmt.Printf("   … and %d more skipped\n", len(r.skips)-i)
			break
		}
		fmt.Println("   skipped:", s)
	}
	for _, got := range results {
		if got.line != "" {
			fmt.Println(got.line)
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
