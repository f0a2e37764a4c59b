package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"kurabe/internal/volume"
)

// readApplied returns the note of what was done to the database; no file means
// nothing was.
func readApplied(h Home) (Applied, error) {
	var a Applied
	data, err := os.ReadFile(h.AppliedFile())
	if errors.Is(err, fs.ErrNotExist) {
		return a, nil
	}
	if err != nil {
		return a, fmt.Errorf("read note of %s: %w", h.Dir, err)
	}
	if err := json.Unmarshal(data, &a); err != nil {
		return a, fmt.Errorf("read note %s: %w", h.AppliedFile(), err)
	}
	return a, nil
}

// note changes what is remembered as done. One worker acts on an instance at a
// time, so reading and writing need no lock.
func note(h Home, change func(*Applied)) error {
	a, err := readApplied(h)
	if err != nil {
		return err
	}
	change(&a)
	data, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("write note of %s: %w", h.Dir, err)
	}
	return volume.AtomicWrite(h.AppliedFile(), data, 0o600)
}
