package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// interruptGrace is what a suite gets to stop its servers after an interrupt.
	interruptGrace = 30 * time.Second
	// maxLine bounds one line of test output: a golden difference may be long.
	maxLine = 16 << 20
)

// event is one line of go test -json (see go doc test2json).
type event struct {
	Action     string
	Package    string
	ImportPath string // of build events
	Test       string
	Output     string
	Elapsed    float64
}

// unit runs the pure tests as if the machine had just started, somewhere else: what leans on
// its age, zone or language fails here, and not at a user's.
func (r *runner) unit(ctx context.Context) (total, error) {
	r.env = oddPlace
	defer func() { r.env = nil }()
	return r.goTest(ctx, append(r.youngArgs(ctx), "-timeout=2m", "./...")...)
}

// taggedTime bounds the tests of one package behind a tag; two lanes share the processors.
const taggedTime = 70 * time.Minute

// tagged runs exactly the wanted tests of the files behind a build tag: the others have
// run as unit tests, and a test is counted once. Real servers share two cores, so
// one package at a time in a lane.
func (r *runner) tagged(ctx context.Context, suite, tag string, want func(folder, test string) bool) (total, error) {
	found, err := findTagged(r.root, tag)
	if err != nil {
		return total{}, err
	}
	found = r.leave(suite, found.only(want))
	if len(found) == 0 {
		return total{}, errAbsent
	}
	// A history may take hours on demand; whoever asks for one waits for it.
	history, err := time.ParseDuration(cmp.Or(os.Getenv("KURABE_HISTORY_TIME"), "0"))
	if err != nil {
		return total{}, fmt.Errorf("KURABE_HISTORY_TIME: %w", err)
	}
	args := []string{"-p=1", "-tags=" + tag, "-count=1", "-timeout=" + (taggedTime + history).String(), "-run=" + found.pattern()}
	r.again = func(r *runner, ctx context.Context, pkg, test string) (total, error) {
		return r.goTest(ctx, "-tags="+tag, "-count=1", "-timeout="+taggedTime.String(), "-run=^"+test+"$", pkg)
	}
	defer func() { r.again = nil }()
	return r.goTest(ctx, append(args, found.packages()...)...)
}

// testBuild is how tests are built. Vet is a check of its own in lint and need not run
// twice; what a debugger reads of a program is a third of the linker's work, and nobody's
// here. Stack traces are as ever.
var testBuild = []string{"-vet=off", "-ldflags=-w"}

func (r *runner) goTest(ctx context.Context, args ...string) (total, error) {
	cmd := r.command(ctx, r.goArgv(append(append([]string{"test", "-json"}, testBuild...), args...)...)...)
	cmd.Env = append(append(os.Environ(), r.binaryEnv()...), r.env...)
	cmd.Stderr = r.out
	out, err := cmd.StdoutPipe()
	if err != nil {
		return total{}, err
	}
	if err := cmd.Start(); err != nil {
		return total{}, err
	}
	t, readErr := r.consume(out)
	err = cmd.Wait()
	r.used(cmd)
	if readErr != nil {
		return t, readErr
	}
	if err != nil && t.failed == 0 {
		return t, fmt.Errorf("go test: %w", err)
	}
	return t, nil
}

// binaryEnv tells tests which binary was built, so that none builds its own.
func (r *runner) binaryEnv() []string {
	bin := filepath.Join(r.root, "bin", "kurabe")
	if _, err := os.Stat(bin); err != nil {
		return nil
	}
	return []string{"KURABE_BIN=" + bin}
}

// consume reads the events of a run, prints progress and counts.
func (r *runner) consume(from io.Reader) (total, error) {
	var all total
	packages := map[string]*tally{}
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintln(r.out, lines.Text())
			continue
		}
		switch e.Action {
		case "build-output":
			fmt.Fprint(r.out, e.Output)
			continue
		case "build-fail":
			continue // the package's own fail event follows and is counted
		}
		p := packages[e.Package]
		if p == nil {
			p = newTally(e.Package, r.verbose, r.out)
			packages[e.Package] = p
		}
		if p.see(e) {
			all.add(r.finish(p, e))
			delete(packages, e.Package)
		}
	}
	// The run was cut off: what had started and did not end has failed.
	for _, p := range packages {
		all.add(r.finish(p, event{Action: "fail"}))
	}
	return all, lines.Err()
}

func (r *runner) finish(p *tally, e event) total {
	t := p.count(e.Action == "fail")
	r.skips = append(r.skips, p.skips()...)
	word, failures := "ok  ", []string(nil)
	if t.failed > 0 {
		word = "FAIL"
		fmt.Fprint(r.out, p.packageOutput())
		failures = p.failures()
		r.failures = append(r.failures, failures...)
		if r.again != nil {
			r.retries = append(r.retries, retriesOf(p, r.again)...)
		}
	}
	if t != (total{}) {
		fmt.Fprintf(r.out, "%s %-40s %s (%.1fs)\n", word, strings.TrimPrefix(p.name, "kurabe/"), t, e.Elapsed)
	}
	for _, line := range shortly(failures) {
		fmt.Fprintln(r.out, line)
	}
	return t
}
