package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func sameDir(a, b string) bool {
	ai, err := os.Stat(a)
	if err != nil {
		return false
	}
	bi, err := os.Stat(b)
	return err == nil && os.SameFile(ai, bi)
}

// hasWord looks for a controller in a list of them.
func hasWord(file, word string) bool {
	raw, _ := os.ReadFile(file)
	return slices.Contains(strings.Fields(string(raw)), word)
}

// set writes a value to a file of a group. The file must exist: the kernel makes
// it, and one that we made would limit nothing.
func set(dir, file, value string) error {
	path := filepath.Join(dir, file)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("set %s to %q: %w", path, value, err)
	}
	return nil
}

// setIfPresent is for files that depend on the kernel's configuration.
func setIfPresent(dir, file, value string) error {
	err := set(dir, file, value)
	if errors.Is(err, fs.ErrNotExist) && exists(dir) {
		return nil
	}
	return err
}

// number reads a counter, or the "max" of v2 as 0.
func number(dir, file string) (int64, error) {
	raw, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return 0, err
	}
	text := strings.TrimSpace(string(raw))
	if text == "max" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", file, err)
	}
	return n, nil
}

// flat reads a file of "key value" lines.
func flat(dir, file string) (map[string]int64, error) {
	raw, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return nil, err
	}
	values := map[string]int64{}
	for _, line := range strings.Split(string(raw), "\n") {
		key, value, _ := strings.Cut(line, " ")
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			values[key] = n
		}
	}
	return values, nil
}

// readPIDs reads cgroup.procs.
func readPIDs(dir string) ([]int, error) {
	raw, err := os.ReadFile(filepath.Join(dir, procsFile))
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, word := range strings.Fields(string(raw)) {
		// 0 is a process outside our pid namespace; it cannot be named, but counts.
		pid, err := strconv.Atoi(word)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", procsFile, err)
		}
		pids = append(pids, pid)
	}
	return pids, nil
}
