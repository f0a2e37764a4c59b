package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// allTags makes vet read every file, whatever suite it belongs to.
const allTags = "-tags=integration,fault"

// staticcheck is run once go.mod names it as a tool, at the version pinned there.
const staticcheck = "honnef.co/go/tools/cmd/staticcheck"

type check struct {
	name string
	argv []string
}

func (r *runner) lint(ctx context.Context) (total, error) {
	goFiles, shellFiles, err := r.sources()
	if err != nil {
		return total{}, err
	}
	gofmt, err := r.gofmt(ctx)
	if err != nil {
		return total{}, err
	}
	checks := []check{
		{"gofmt", append([]string{gofmt, "-l"}, goFiles...)},
		{"vet", r.goArgv("vet", allTags, "./...")},
	}
	if mod, err := os.ReadFile(filepath.Join(r.root, "go.mod")); err == nil && bytes.Contains(mod, []byte(staticcheck)) {
		checks = append(checks, check{"staticcheck", r.goArgv("tool", "staticcheck", allTags, "./...")})
	}
	for _, f := range shellFiles {
		checks = append(checks, check{"bash -n " + f, []string{"bash", "-n", f}})
	}
	var t total
	for _, c := range checks {
		// Servers that are tested beside it come first.
		c.argv = append([]string{"nice"}, c.argv...)
		// gofmt reports with output only, the others also by status.
		cmd := r.command(ctx, c.argv...)
		out, err := cmd.CombinedOutput()
		r.used(cmd)
		if err != nil || c.name == "gofmt" && len(out) > 0 {
			t.failed++
			fmt.Fprintf(r.out, "FAIL %s (%v)\n%s", c.name, err, out)
			continue
		}
		t.passed++
		fmt.Fprintln(r.out, "ok  ", c.name)
	}
	return t, nil
}

// sources lists the Go and shell files that are ours.
func (r *runner) sources() (goFiles, shellFiles []string, err error) {
	err = filepath.WalkDir(r.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(r.root, path)
		if err != nil {
			return err
		}
		name := d.Name()
		switch {
		case d.IsDir() && name == ".ci", d.IsDir() && name == ".githooks", rel == ".":
		case d.IsDir() && (strings.HasPrefix(name, ".") || name == "node_modules" || rel == "bin"):
			return fs.SkipDir
		case d.IsDir():
		case strings.HasSuffix(name, ".go"):
			goFiles = append(goFiles, rel)
		case strings.HasSuffix(name, ".sh"), filepath.Dir(rel) == ".ci", filepath.Dir(rel) == ".githooks":
			shellFiles = append(shellFiles, rel)
		}
		return nil
	})
	return goFiles, shellFiles, err
}

// gofmt is the one that belongs to the go command, which need not be on PATH.
func (r *runner) gofmt(ctx context.Context) (string, error) {
	out, err := r.command(ctx, r.goArgv("env", "GOROOT")...).Output()
	if err != nil {
		return "", fmt.Errorf("find gofmt: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "bin", "gofmt"), nil
}

func (r *runner) goArgv(args ...string) []string {
	return append(append([]string{}, r.goCmd...), args...)
}

// command runs in the root of the repository and is interrupted, not killed,
// when we are, so that it can end what it started.
func (r *runner) command(ctx context.Context, argv ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = r.root
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = interruptGrace
	return cmd
}
