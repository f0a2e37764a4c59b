package postgres

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// fillExtensions makes the extension folder of a tree.
func fillExtensions(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		text, linked, err := extensionFile(from, entry.Name())
		if err != nil {
			return err
		}
		target := filepath.Join(to, entry.Name())
		switch {
		case linked:
			err = os.Symlink(filepath.Join(from, entry.Name()), target)
		case text != "":
			err = writeReadable(target, text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// extensionFile decides what becomes of one file: linked, rewritten, or (no
// text) left out.
func extensionFile(dir, name string) (text string, linked bool, err error) {
	extension := extensionOf(name)
	isControl, isScript := strings.HasSuffix(name, ".control"), strings.HasSuffix(name, ".sql")
	if isControl {
		if offered, err := offers(dir, extension); err != nil || !offered {
			return "", false, err
		}
	}
	functions := granted[extension]
	if !isControl && (!isScript || (functions == nil && rewritten[extension] == nil)) {
		return "", true, nil
	}
	raw, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return "", false, err
	}
	if isControl {
		return trustedControl(string(raw)), false, nil
	}
	version, err := defaultVersion(filepath.Join(dir, extension+".control"))
	if err != nil {
		return "", false, err
	}
	text = rewrite(extension, string(raw))
	if functions != nil && strings.HasSuffix(name, "--"+version+".sql") {
		text += grantScript(extension, functions)
	}
	return text, false, nil
}

var defaultVersionLine = regexp.MustCompile(`(?m)^\s*default_version\s*=\s*'([^']+)'`)

func defaultVersion(control string) (string, error) {
	raw, err := os.ReadFile(control)
	if err != nil {
		return "", err
	}
	m := defaultVersionLine.FindSubmatch(raw)
	if m == nil {
		return "", fmt.Errorf("%s has no default version", control)
	}
	return string(m[1]), nil
}

func writeReadable(path, text string) error {
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return err
	}
	return os.Chmod(path, 0o444)
}
