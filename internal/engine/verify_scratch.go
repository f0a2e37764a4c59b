package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kurabe"
	"kurabe/internal/cgroup"
	"kurabe/internal/proc"
	"kurabe/internal/volume"
)

// scratchClose is how long the end of a verification may take, whatever ended it.
const scratchClose = time.Minute

// open makes the scratch folder of a snapshot, and the control group of what works in
// it.
func (v *verifying) open(ctx context.Context) error {
	l := v.l
	dir := filepath.Join(l.scratchDir(), string(v.request.Snapshot))
	if err := l.sweep(ctx, dir, v.request.Snapshot); err != nil {
		return fmt.Errorf("remove what an earlier one left: %w", err)
	}
	var err error
	if v.user, err = l.takeAccount(forScratch + string(v.request.Snapshot)); err != nil {
		return err
	}
	// Accounts pass through the one, and nobody but the copy's own enters the other.
	mode, inner := os.FileMode(0o700), os.FileMode(privateMode)
	if v.user != nil {
		mode, inner = 0o711, homeMode
	}
	_, gid := owner(v.user)
	v.home = Home{Dir: dir}
	err = volume.EnsureDir(l.scratchDir(), mode, -1, -1)
	if err == nil {
		err = volume.EnsureDir(dir, inner, -1, gid)
	}
	if err != nil {
		return fmt.Errorf("make the scratch folder: %w", err)
	}
	return v.throttle()
}

// throttle makes a control group, as far as this host has levers.
func (v *verifying) throttle() error {
	levers := v.l.c.Levers
	var limits cgroup.Limits
	if levers.CPU.Enforceable {
		limits.CPUQuota = verifyCPUs
	}
	if levers.Memory.Enforceable {
		limits.MemoryBytes = verifyMemoryBytes
	}
	if limits == (cgroup.Limits{}) {
		return nil
	}
	group, err := levers.Ensure(string(v.request.Snapshot), limits)
	if err != nil {
		return fmt.Errorf("throttle it: %w", err)
	}
	v.group = &group
	return nil
}

// oomKills is 0 where nobody counts.
func (v *verifying) oomKills() int64 {
	if v.group == nil {
		return 0
	}
	kills, err := v.group.OOMKills()
	if err != nil {
		return 0
	}
	return kills
}

// close leaves nothing behind, also when the time for the rest is over.
func (v *verifying) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), scratchClose)
	defer cancel()
	return v.l.sweep(ctx, v.home.Dir, v.request.Snapshot)
}

// SweepVerified ends the processes and removes the folders that killed verifications
// left. It must not run beside Verify.
func (s *Snapshots) SweepVerified(ctx context.Context) error {
	var errs error
	for _, l := range s.engines {
		entries, err := volume.ReadDir(l.scratchDir())
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = errors.Join(errs, err)
		}
		for _, e := range entries {
			// What was being removed has the id and an ending.
			id, _, _ := strings.Cut(e.Name(), ".")
			errs = errors.Join(errs, l.sweep(ctx, filepath.Join(l.scratchDir(), e.Name()), kurabe.SnapshotID(id)))
		}
	}
	if errs != nil {
		return fmt.Errorf("remove what killed verifications left: %w", errs)
	}
	return nil
}

// sweep ends all of a verification, whatever a tenant's code in it has become, and only
// then removes its folder: by its control group, by its account, and by where it works.
func (l *Lifecycle) sweep(ctx context.Context, dir string, id kurabe.SnapshotID) error {
	group, grouped := l.c.Levers.Find(string(id))
	if grouped {
		if err := group.Kill(ctx); err != nil {
			return err
		}
	}
	if user, own := l.booked(forScratch + string(id)); own {
		if err := proc.KillOwned(ctx, user.UID); err != nil {
			return err
		}
	}
	if err := removeScratch(ctx, l.scratchDir(), dir); err != nil {
		return err
	}
	if grouped {
		if err := group.Remove(ctx); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return l.dropAccount(ctx, forScratch+string(id))
}

// removeScratch ends what works in a scratch folder, and removes it. Servers work in
// the data, the engines' tools at most two folders deep beside it.
func removeScratch(ctx context.Context, root, dir string) error {
	if _, err := volume.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, place := range scratchPlaces(dir) {
		if err := proc.KillSurvivors(ctx, place); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("end what works in %s: %w", place, err)
		}
	}
	return volume.RemoveTree(root, dir)
}

func scratchPlaces(dir string) []string {
	places := []string{dir}
	data := Home{Dir: dir}.DataDir()
	for _, place := range foldersIn(dir) {
		places = append(places, place)
		if place != data {
			places = append(places, foldersIn(place)...)
		}
	}
	return places
}

// foldersIn names the folders of a folder, as far as it can be read.
func foldersIn(dir string) []string {
	entries, _ := volume.ReadDir(dir)
	var folders []string
	for _, e := range entries {
		if e.IsDir() {
			folders = append(folders, filepath.Join(dir, e.Name()))
		}
	}
	return folders
}
