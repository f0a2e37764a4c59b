package mariadb

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"kurabe/internal/engine"
	"kurabe/internal/volume"
)

// followFile in the data folder says that its server follows. It is written when the data
// is complete and can follow, and removed when the server has become a writer.
const followFile = "kurabe-follower.json"

// following is its content.
type following struct {
	// Position is where to begin, as long as the server itself does not know.
	Position string `json:"position,omitempty"`
	// Rebuild is why this data can follow no more.
	Rebuild string `json:"rebuild,omitempty"`
	// Holds: it was told to receive nothing more, and nobody may set it going again by himself.
	Holds bool `json:"holds,omitempty"`
}

// readFollowing returns nil for the data of a writer.
func readFollowing(h engine.Home) (*following, error) {
	text, err := readSmall(h.DataDir(), followFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", followFile, err)
	}
	var f following
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		return nil, fmt.Errorf("read %s: %w", followFile, err)
	}
	return &f, nil
}

func writeFollowing(dataDir string, f following) error {
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return volume.AtomicWrite(filepath.Join(dataDir, followFile), text, 0o600)
}

func removeFollowing(dataDir string) error {
	if err := volume.Remove(filepath.Join(dataDir, followFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return volume.SyncDir(dataDir)
}

// IsFollower implements engine.Replicator. One that can follow no more is none: the
// lifecycle then ends it and has it rejoin, which says that it must be cloned. What cannot
// be read is one, since no writer has the file.
func (d *Driver) IsFollower(h engine.Home) bool {
	f, err := readFollowing(h)
	return err != nil || f != nil && f.Rebuild == ""
}

// giveUp notes that the data of a follower is of no more use, unless its role is being
// changed now.
func (d *Driver) giveUp(h engine.Home, why string) error {
	lock := d.roleLock(h)
	if !lock.TryLock() {
		return nil
	}
	defer lock.Unlock()
	return noteBroken(h, why)
}

func noteBroken(h engine.Home, why string) error {
	f, err := readFollowing(h)
	if err != nil || f == nil {
		return err
	}
	f.Rebuild = why
	return writeFollowing(h.DataDir(), *f)
}
