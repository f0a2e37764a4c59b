package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"kurabe"
	"kurabe/internal/cgroup"
	"kurabe/internal/proc"
	"kurabe/internal/snapshot"
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
	if user, own := l.bookedAccount(forScratch + string(id)); own {
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

// hindrances are what goes wrong with a host rather than with a file.
var hindrances = []error{
	context.Canceled, context.DeadlineExceeded, syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE,
	syscall.ENOMEM, syscall.EINTR, syscall.EAGAIN, syscall.EROFS, syscall.EACCES, syscall.EPERM,
}

func hinders(err error) bool {
	for _, h := range hindrances {
		if errors.Is(err, h) {
			return true
		}
	}
	return false
}

// copyFolder copies or clones the folder of a snapshot. What is missing or has
// another size ends it: a check would only repeat that. Content that is wrong does
// not, as the engine's tools say what it means.
func (v *verifying) copyFolder(ctx context.Context, store snapshot.Store, opts volume.TransferOptions) (whole bool, err error) {
	r := v.from.record
	data := store.Data(r.Snapshot)
	known, err := store.List(r)
	if err != nil {
		if ctx.Err() != nil || hinders(err) {
			return false, err
		}
		v.add("%v", err)
		return false, nil
	}
	if err := v.compareSizes(data, known); err != nil || len(v.result.Problems) > 0 {
		return false, err
	}
	if err := roomToCopy(data, v.home.DataDir()); err != nil {
		return false, err
	}
	files, _, err := volume.Transfer(ctx, data, v.home.DataDir(), opts)
	if errors.Is(err, syscall.EIO) && ctx.Err() == nil {
		v.add("the disk cannot read it: %v", err)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, v.compareSums(ctx, data, known, files, opts.BytesPerSecondMax)
}

// compareSizes looks at every file of the list.
func (v *verifying) compareSizes(data string, known []volume.File) error {
	for _, f := range known {
		if !filepath.IsLocal(f.Path) {
			v.add("the list of files names %q", f.Path)
			continue
		}
		info, err := volume.Lstat(filepath.Join(data, f.Path))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			v.add("file %s is missing", f.Path)
		case err != nil:
			return err
		case !info.Mode().IsRegular():
			v.add("file %s is none any more: %s", f.Path, info.Mode())
		case info.Size() != f.Size:
			v.add("file %s has %d bytes, and had %d", f.Path, info.Size(), f.Size)
		}
	}
	return nil
}

// compareSums compares content with the list. What was cloned was not read, so it is
// read here.
func (v *verifying) compareSums(ctx context.Context, data string, known, files []volume.File, bytesPerSecondMax int64) error {
	copied := map[string]volume.File{}
	for _, f := range files {
		copied[f.Path] = f
	}
	pace := volume.NewPace(bytesPerSecondMax)
	for _, f := range known {
		have, ok := copied[f.Path]
		if !ok {
			v.add("file %s went away while it was copied", f.Path)
			continue
		}
		if !have.Summed {
			var err error
			have.Sum, have.Size, err = volume.SumFile(ctx, filepath.Join(data, f.Path), pace)
			if errors.Is(err, syscall.EIO) && ctx.Err() == nil {
				v.add("the disk cannot read file %s: %v", f.Path, err)
				continue
			}
			if err != nil {
				return err
			}
		}
		if have.Size != f.Size || f.Summed && have.Sum != f.Sum {
			v.add("the content of file %s differs from what was written", f.Path)
		}
	}
	return nil
}
