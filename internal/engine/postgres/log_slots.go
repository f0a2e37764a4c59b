package postgres

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"kurabe/internal/volume"
)

// slotDir has a folder for each slot.
const slotDir = "pg_replslot"

// dropSlots empties a copied data folder of them: a slot of the source would hold
// back the log of whoever comes after it, for a reader that does not know it.
func dropSlots(dataDir string) error {
	root, err := volume.OpenRoot(dataDir)
	if err != nil {
		return fmt.Errorf("drop slots: %w", err)
	}
	defer root.Close()
	entries, err := root.ReadDir(slotDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		err = errors.Join(err, root.RemoveAll(filepath.Join(slotDir, e.Name())))
	}
	if err != nil {
		return fmt.Errorf("drop slots: %w", err)
	}
	return nil
}
