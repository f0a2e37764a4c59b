package labproof

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"kurabe/test/bench/bed"
)

// goBenchTime bounds one run of compiled benchmarks.
const goBenchTime = 10 * time.Minute

// goBench is what Go benchmarks reported: by name without the number of processors, then
// by unit, a value of each run.
type goBench map[string]map[string][]float64

// goBenchmarks compiles the tests of a package, so that no compiler runs beside what is
// measured, and runs benchmarks of it. They look inside the package, as a program from
// outside cannot.
func goBenchmarks(ctx context.Context, r *bed.Run, folder, pattern string, args ...string) (found goBench, failure error) {
	compiler, err := exec.LookPath("go")
	if err != nil {
		return nil, errNoGo
	}
	dir, err := os.MkdirTemp(r.Dir, "kurabe-bench-go-")
	if err != nil {
		return nil, err
	}
	defer func() { failure = errors.Join(failure, os.RemoveAll(dir)) }()
	// The benchmarks run in the folder of their package, from where a path may lead elsewhere.
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, goBenchTime)
	defer cancel()
	program := filepath.Join(dir, "bench.test")
	if out, err := exec.CommandContext(ctx, compiler, "test", "-c", "-o", program, "./"+folder).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compile the benchmarks of %s: %w: %s", folder, err, out)
	}
	cmd := exec.CommandContext(ctx, program, append([]string{"-test.run=^$", "-test.bench=" + pattern}, args...)...)
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("run the benchmarks of %s: %w: %s", folder, err, out)
	}
	found = parseGoBench(string(out))
	for _, name := range sortedNames(found) {
		r.Out.Sample("goBench", map[string]any{"package": folder, "name": name, "values": found[name]})
	}
	return found, nil
}

var errNoGo = errors.New("the Go compiler is not installed")

// goBenchLine is a result: the name, the number of processors, the iterations, and pairs
// of value and unit.
var goBenchLine = regexp.MustCompile(`(?m)^Benchmark(\S+?)(?:-\d+)?[ \t]+\d+[ \t]+(\S.*)$`)

func parseGoBench(text string) goBench {
	found := goBench{}
	for _, m := range goBenchLine.FindAllStringSubmatch(text, -1) {
		values := strings.Fields(m[2])
		if found[m[1]] == nil {
			found[m[1]] = map[string][]float64{}
		}
		for n := 0; n+1 < len(values); n += 2 {
			if v, err := strconv.ParseFloat(values[n], 64); err == nil {
				found[m[1]][values[n+1]] = append(found[m[1]][values[n+1]], v)
			}
		}
	}
	return found
}

func sortedNames(b goBench) []string {
	var names []string
	for name := range b {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// noGo gives the row of what only a compiler could have measured.
func noGo(r *bed.Run, what string, err error) error {
	if !errors.Is(err, errNoGo) {
		return fmt.Errorf("%s: %w", what, err)
	}
	r.Out.Row(bed.Row{Bench: "lab", What: what, Value: bed.NotMeasured, Note: err.Error()})
	return nil
}
