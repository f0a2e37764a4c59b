package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"kurabe/internal/engine"
	"kurabe/internal/volume"
)

// Preparations implements engine.Driver.
func (d *Driver) Preparations() []engine.Preparation {
	return []engine.Preparation{
		{What: "resume what an earlier server began", Do: func(ctx context.Context, i engine.Instance) ([]string, error) { return nil, d.resume(ctx, i) }},
		{What: "read the settings that the data needs", Do: d.floors},
	}
}

const (
	labelFile     = "backup_label"
	labelDoneFile = "backup_label.old"
)

// resume is for a server that died and may not find by itself what it was about. A server that begins with a copy renames the label as soon
// as pg_control has what it says, and recovers to where the copy ended. If it dies on the way,
// the next one recovers as after any crash: it knows from pg_control that a copy must come to
// its end, does not look for that end outside of a recovery from an archive, and gives up for
// ever with "WAL ends before end of online backup". With the label it begins again where the
// first one did. A follower is in such a recovery, and goes on by itself.
func (d *Driver) resume(ctx context.Context, i engine.Instance) error {
	dir := i.Home.DataDir()
	if d.IsFollower(i.Home) {
		return nil
	}
	label, done := filepath.Join(dir, labelFile), filepath.Join(dir, labelDoneFile)
	if _, err := volume.Lstat(label); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := volume.Lstat(done); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	c, err := ownControl(ctx, i)
	if err != nil || !c.unended {
		return err
	}
	if err := volume.Rename(done, label); err != nil {
		return fmt.Errorf("restart the recovery of a copy: %w", err)
	}
	return volume.SyncDir(dir)
}
