package main

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// wholeRunOnly judges what all other tests have shown. Alone it skips that, and would pass.
const wholeRunOnly = "test_coverage.py"

// compat runs the Python tests in the environment that scripts/install.sh made.
func (r *runner) compat(ctx context.Context) (total, error) {
	files, err := filepath.Glob(filepath.Join(r.root, "test", "compat", "test_*.py"))
	if err != nil {
		return total{}, err
	}
	if len(files) == 0 {
		return total{}, errAbsent
	}
	t, failed, err := r.pytest(ctx, "test/compat")
	for file, n := range failed {
		if filepath.Base(file) == wholeRunOnly {
			continue
		}
		r.retries = append(r.retries, retry{"compat " + file, n, func(r *runner, ctx context.Context) (total, error) {
			t, _, err := r.pytest(ctx, file)
			return t, err
		}})
	}
	return t, err
}

// pytest runs a file or a folder of tests. failed counts the failures of each file.
func (r *runner) pytest(ctx context.Context, what string) (t total, failed map[string]int, err error) {
	venv := filepath.Join(r.root, ".cache", "venv", "bin")
	python := filepath.Join(venv, "python")
	if _, err := os.Stat(python); err != nil {
		return t, nil, fmt.Errorf("no Python environment; run scripts/install.sh test: %w", err)
	}
	report := filepath.Join(r.root, ".cache", "compat.xml")
	if err := os.Remove(report); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return t, nil, err
	}
	cmd := r.command(ctx, r.isolated(python, "-B", "-m", "pytest", "-p", "no:cacheprovider", "-v", "--tb=short", "-rs", "--color=no", "--junitxml="+report, what)...)
	cmd.Env = append(os.Environ(), "PATH="+venv+":"+os.Getenv("PATH"))
	cmd.Env = append(cmd.Env, r.binaryEnv()...)
	cmd.Stdout, cmd.Stderr = r.out, r.out
	runErr := cmd.Run()
	r.used(cmd)
	t, failed, skips, err := readJUnit(report)
	r.skips = append(r.skips, skips...)
	if err != nil {
		return t, failed, errors.Join(runErr, err)
	}
	if runErr != nil && t.failed == 0 {
		return t, failed, fmt.Errorf("pytest: %w", runErr)
	}
	return t, failed, nil
}

type junit struct {
	Suites []struct {
		Cases []struct {
			Class   string    `xml:"classname,attr"`
			Name    string    `xml:"name,attr"`
			Failure *struct{} `xml:"failure"`
			Error   *struct{} `xml:"error"`
			Skipped *struct {
				Message string `xml:"message,attr"`
			} `xml:"skipped"`
		} `xml:"testcase"`
	} `xml:"testsuite"`
}

// readJUnit counts the tests of a report, and the failures of each file of tests.
func readJUnit(path string) (t total, failed map[string]int, skips []string, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return t, nil, nil, fmt.Errorf("pytest left no report: %w", err)
	}
	var report junit
	if err := xml.Unmarshal(data, &report); err != nil {
		return t, nil, nil, fmt.Errorf("read report of pytest: %w", err)
	}
	failed = map[string]int{}
	for _, s := range report.Suites {
		for _, c := range s.Cases {
			switch {
			case c.Failure != nil || c.Error != nil:
				t.failed++
				failed[fileOf(c.Class)]++
			case c.Skipped != nil:
				t.skipped++
				skips = append(skips, c.Class+" "+c.Name+": "+c.Skipped.Message)
			default:
				t.passed++
			}
		}
	}
	return t, failed, skips, nil
}

// fileOf is the file of a class of a report: pytest names "test.compat.test_x.TestX".
func fileOf(class string) string {
	words := strings.Split(class, ".")
	for len(words) > 1 && !strings.HasPrefix(words[len(words)-1], "test_") {
		words = words[:len(words)-1]
	}
	return strings.Join(words, "/") + ".py"
}
