package main

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// compat runs the Python tests in the environment that scripts/install.sh made.
func (r *runner) compat(ctx context.Context) (total, error) {
	files, err := filepath.Glob(filepath.Join(r.root, "test", "compat", "test_*.py"))
	if err != nil {
		return total{}, err
	}
	if len(files) == 0 {
		return total{}, errAbsent
	}
	venv := filepath.Join(r.root, ".cache", "venv", "bin")
	python := filepath.Join(venv, "python")
	if _, err := os.Stat(python); err != nil {
		return total{}, fmt.Errorf("no Python environment; run scripts/install.sh test: %w", err)
	}
	report := filepath.Join(r.root, ".cache", "compat.xml")
	if err := os.Remove(report); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return total{}, err
	}
	cmd := r.command(ctx, r.isolated(python, "-B", "-m", "pytest", "-p", "no:cacheprovider", "-v", "--tb=short", "-rs", "--color=no", "--junitxml="+report, "test/compat")...)
	cmd.Env = append(os.Environ(), "PATH="+venv+":"+os.Getenv("PATH"))
	cmd.Env = append(cmd.Env, r.binaryEnv()...)
	cmd.Stdout, cmd.Stderr = r.out, r.out
	runErr := cmd.Run()
	r.used(cmd)
	t, skips, err := readJUnit(report)
	r.skips = append(r.skips, skips...)
	if err != nil {
		return t, errors.Join(runErr, err)
	}
	if runErr != nil && t.failed == 0 {
		return t, fmt.Errorf("pytest: %w", runErr)
	}
	return t, nil
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

func readJUnit(path string) (total, []string, error) {
	var t total
	data, err := os.ReadFile(path)
	if err != nil {
		return t, nil, fmt.Errorf("pytest left no report: %w", err)
	}
	var report junit
	if err := xml.Unmarshal(data, &report); err != nil {
		return t, nil, fmt.Errorf("read report of pytest: %w", err)
	}
	var skips []string
	for _, s := range report.Suites {
		for _, c := range s.Cases {
			switch {
			case c.Failure != nil || c.Error != nil:
				t.failed++
			case c.Skipped != nil:
				t.skipped++
				skips = append(skips, c.Class+" "+c.Name+": "+c.Skipped.Message)
			default:
				t.passed++
			}
		}
	}
	return t, skips, nil
}
