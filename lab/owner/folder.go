package owner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const (
	// Prefix begins the name of every folder and file; the number of our process follows.
	Prefix = "kurabe-lab-"
	// File in a folder says which process that is.
	File = "owner"
)

// Folder makes a folder of ours that names our process, for us alone. kind is part of its
// name, "" for none.
func Folder(parent, kind string) (string, error) {
	dir, err := os.MkdirTemp(parent, pattern(kind))
	if err != nil {
		return "", fmt.Errorf("make a folder: %w", err)
	}
	me, err := This()
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, File), []byte(me.String()+"\n"), 0o644)
	}
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
}

// Temporary makes a file of ours. Whoever writes it begins with Line.
func Temporary(parent, kind string) (*os.File, error) {
	return os.CreateTemp(parent, pattern(kind))
}

// Line is what a file of ours begins with: it says whose it is.
func Line() (string, error) {
	me, err := This()
	return me.String() + "\n", err
}

func pattern(kind string) string {
	name := fmt.Sprintf("%s%d-", Prefix, os.Getpid())
	if kind != "" {
		name += kind + "-"
	}
	return name
}
