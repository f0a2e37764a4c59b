package postgres

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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
	return eachOwnFile(func(name, text string) error { return writeReadable(filepath.Join(to, name), text) })
}

// eachOwnFile calls do with each file of the service's own extensions.
func eachOwnFile(do func(name, text string) error) error {
	return fs.WalkDir(ownFiles, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := ownFiles.ReadFile(path)
		if err != nil {
			return err
		}
		return do(entry.Name(), string(text))
	})
}

// extensionFile decides what becomes of one file: linked, rewritten, or (no
// text) left out.
func extensionFile(dir, name string) (text string, linked bool, err error) {
	extension := extensionOf(name)
	isControl, isScript := strings.HasSuffix(name, ".control"), strings.HasSuffix(name, ".sql")
	if !isControl && !isScript {
		return "", true, nil
	}
	// Scripts of what is not allowed are never reached: there is no control file.
	if !slices.Contains(allowed, extension) {
		return "", isScript, nil
	}
	if isScript && strings.Count(name, "--") > 1 && slices.Contains(frozen, extension) {
		return "", false, nil
	}
	standing, err := standingOf(dir, extension)
	if err != nil || (isControl && standing == closed) {
		return "", false, err
	}
	if isScript && standing != sheltered {
		return "", true, nil
	}
	raw, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return "", false, err
	}
	if isControl {
		return trustedControl(string(raw), standing), false, nil
	}
	text, err = shelteredScript(dir, name, string(raw))
	return text, false, err
}

// shelteredScript is a script that runs in rooms, and what comes after it.
func shelteredScript(dir, name, script string) (string, error) {
	extension := extensionOf(name)
	version, err := defaultVersion(filepath.Join(dir, extension+".control"))
	if err != nil {
		return "", err
	}
	text := inRooms(rewrite(extension, script))
	if !strings.HasSuffix(name, "--"+version+".sql") {
		return text, nil
	}
	text += appended[extension]
	if names := granted[extension]; names != nil {
		text += grantScript(extension, names)
	}
	return text, nil
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
