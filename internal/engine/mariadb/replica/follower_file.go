package replica

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/conf"
	"kurabe/internal/volume"
)

// FollowFile in the data folder says that its server follows. It is written when the data
// is complete and can follow, and removed when the server has become a writer.
const FollowFile = "kurabe-follower.json"

// Following is its content.
type Following struct {
	// Position is where to begin, as long as the server itself does not know.
	Position string `json:"position,omitempty"`
	// Rebuild is why this data can follow no more.
	Rebuild string `json:"rebuild,omitempty"`
	// Holds: it was told to receive nothing more, and nobody may set it going again by himself.
	Holds bool `json:"holds,omitempty"`
}

// ReadFollowing returns nil for the data of a writer.
func ReadFollowing(h engine.Home) (*Following, error) {
	text, err := conf.ReadSmall(h.DataDir(), FollowFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", FollowFile, err)
	}
	var f Following
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		return nil, fmt.Errorf("read %s: %w", FollowFile, err)
	}
	return &f, nil
}

func WriteFollowing(dataDir string, f Following) error {
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return volume.AtomicWrite(filepath.Join(dataDir, FollowFile), text, 0o600)
}

func RemoveFollowing(dataDir string) error {
	if err := volume.Remove(filepath.Join(dataDir, FollowFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return volume.SyncDir(dataDir)
}

// IsFollower implements engine.Replicator. One that can follow no more is none: the
// lifecycle then ends it and has it rejoin, which says that it must be cloned. What cannot
// be read is one, since no writer has the file.
func (r *Roles) IsFollower(h engine.Home) bool {
	f, err := ReadFollowing(h)
	return err != nil || f != nil && f.Rebuild == ""
}

// giveUp notes that the data of a follower is of no more use, unless its role is being
// changed now.
func (r *Roles) giveUp(h engine.Home, why string) error {
	lock := r.roleLock(h)
	if !lock.TryLock() {
		return nil
	}
	defer lock.Unlock()
	return noteBroken(h, why)
}

func noteBroken(h engine.Home, why string) error {
	f, err := ReadFollowing(h)
	if err != nil || f == nil {
		return err
	}
	f.Rebuild = why
	return WriteFollowing(h.DataDir(), *f)
}
