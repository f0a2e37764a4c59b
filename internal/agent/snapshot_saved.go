package agent

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

// savedSnapshot is what is on disk of an order about a snapshot. Facts are set once
// the snapshot was complete: from then on it is never made again, because another
// one of a later moment under its name would be a lie.
type savedSnapshot struct {
	Assignment kurabe.SnapshotAssignment `json:"assignment"`
	Facts      *kurabe.SnapshotFacts     `json:"facts,omitempty"`
	// Verified is the newest verification, so that none is repeated after a restart.
	Verified *kurabe.Verification `json:"verified,omitempty"`
}

// The folder of saved orders lies beside that of the instances, for the same
// reasons.
func (a *Agent) savedSnapshotDir() string {
	return filepath.Join(filepath.Dir(a.Homes), "snapshot-assignments")
}

func (a *Agent) savedSnapshotFile(id kurabe.SnapshotID) string {
	return filepath.Join(a.savedSnapshotDir(), string(id)+".json")
}

func (a *Agent) saveSnapshot(s savedSnapshot) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := volume.EnsureDir(a.savedSnapshotDir(), 0o700, os.Getuid(), os.Getgid()); err != nil {
		return err
	}
	return volume.WriteSpared(a.savedSnapshotFile(s.Assignment.Snapshot), data, 0o600)
}

func (a *Agent) forgetSnapshot(id kurabe.SnapshotID) error {
	return volume.RemoveSpared(a.savedSnapshotFile(id))
}

// loadSnapshots reads every saved order; start takes them up. Unlike an instance's,
// one that cannot be read does not stop the agent: databases come first. What is
// known of it then is its id; that it was complete is assumed, so that it is not
// made again.
func (a *Agent) loadSnapshots() (start func(ctx context.Context), err error) {
	entries, err := os.ReadDir(a.savedSnapshotDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read saved assignments of snapshots: %w", err)
	}
	var list []savedSnapshot
	unreadable := map[kurabe.SnapshotID]error{}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok {
			continue
		}
		if s, err := a.loadSnapshot(kurabe.SnapshotID(name)); err == nil {
			list = append(list, s)
		} else {
			unreadable[kurabe.SnapshotID(name)] = err
		}
	}
	return func(ctx context.Context) {
		a.sweepVerified(ctx)
		for _, s := range list {
			u := a.snapshots.Get(ctx, s.Assignment.Snapshot)
			u.knows(s.Facts, s.Verified)
			u.Give(s.Assignment)
		}
		for id, err := range unreadable {
			a.Log.Error("saved assignment of a snapshot cannot be read", logkey.Snapshot, id, logkey.Error, err)
			a.snapshots.Get(ctx, id).knows(&kurabe.SnapshotFacts{}, nil)
		}
	}, nil
}

func (a *Agent) loadSnapshot(id kurabe.SnapshotID) (savedSnapshot, error) {
	var s savedSnapshot
	data, err := os.ReadFile(a.savedSnapshotFile(id))
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err == nil && s.Assignment.Snapshot != id {
		err = fmt.Errorf("it speaks of snapshot %q", s.Assignment.Snapshot)
	}
	return s, err
}
