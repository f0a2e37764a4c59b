package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"kurabe"
	"kurabe/internal/logkey"
	"kurabe/internal/volume"
)

// saved is what is on disk of an order about a snapshot. Facts are set once
// the snapshot was complete: from then on it is never made again, because another
// one of a later moment under its name would be a lie.
type saved struct {
	Assignment kurabe.SnapshotAssignment `json:"assignment"`
	Facts      *kurabe.SnapshotFacts     `json:"facts,omitempty"`
	// Verified is the newest verification, so that none is repeated after a restart.
	Verified *kurabe.Verification `json:"verified,omitempty"`
}

func (s *Set) file(id kurabe.SnapshotID) string {
	return filepath.Join(s.Dir, string(id)+".json")
}

func (s *Set) save(what saved) error {
	data, err := json.Marshal(what)
	if err != nil {
		return err
	}
	if err := volume.EnsureDir(s.Dir, 0o700, os.Getuid(), os.Getgid()); err != nil {
		return err
	}
	return volume.WriteSpared(s.file(what.Assignment.Snapshot), data, 0o600)
}

func (s *Set) forget(id kurabe.SnapshotID) error {
	return volume.RemoveSpared(s.file(id))
}

// Load reads every saved order; start takes them up. Unlike an instance's,
// one that cannot be read does not stop the agent: databases come first. What is
// known of it then is its id; that it was complete is assumed, so that it is not
// made again.
func (s *Set) Load() (start func(ctx context.Context), err error) {
	entries, err := os.ReadDir(s.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read saved assignments of snapshots: %w", err)
	}
	var list []saved
	unreadable := map[kurabe.SnapshotID]error{}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok {
			continue
		}
		if what, err := s.read(kurabe.SnapshotID(name)); err == nil {
			list = append(list, what)
		} else {
			unreadable[kurabe.SnapshotID(name)] = err
		}
	}
	return func(ctx context.Context) {
		s.sweepVerified(ctx)
		for _, what := range list {
			u := s.Get(ctx, what.Assignment.Snapshot)
			u.knows(what.Facts, what.Verified)
			u.Give(what.Assignment)
		}
		for id, err := range unreadable {
			s.Host.Log.Error("saved assignment of a snapshot cannot be read", logkey.Snapshot, id, logkey.Error, err)
			s.Get(ctx, id).knows(&kurabe.SnapshotFacts{}, nil)
		}
	}, nil
}

func (s *Set) read(id kurabe.SnapshotID) (what saved, err error) {
	data, err := os.ReadFile(s.file(id))
	if err == nil {
		err = json.Unmarshal(data, &what)
	}
	if err == nil && what.Assignment.Snapshot != id {
		err = fmt.Errorf("it belongs to snapshot %q", what.Assignment.Snapshot)
	}
	return what, err
}
