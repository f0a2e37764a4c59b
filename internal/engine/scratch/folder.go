package scratch

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"kurabe/internal/engine"
	"kurabe/internal/proc"
	"kurabe/internal/volume"
)

// Folder is a folder that an engine's programs work in.
type Folder struct {
	Dir      string // as the service sees it
	User     *proc.Credential
	Programs []string // folders that the programs see beside the system's
	Cgroups  []string

	seen string // as the programs see it, "" where they see Dir
}

// Open finds the path at which the programs see the folder.
func (f *Folder) Open() (err error) {
	if f.User != nil && !proc.Traversable(filepath.Dir(f.Dir), f.User.UID, f.User.GID) {
		// The mount is in the programs' own namespace; here the folder stays empty.
		f.seen, err = os.MkdirTemp("", "kurabe-")
	}
	return err
}

// Close removes what Open made.
func (f *Folder) Close() error {
	if f.seen == "" {
		return nil
	}
	return os.Remove(f.seen)
}

// Make makes a fresh folder below root, with a folder for the data.
func Make(root string, user *proc.Credential, programs []string) (f Folder, err error) {
	f = Folder{User: user, Programs: programs}
	if err := volume.MkdirAll(root, 0o711); err != nil {
		return f, err
	}
	if f.Dir, err = volume.MkdirTemp(root, "making-"); err != nil {
		return f, err
	}
	err = errors.Join(volume.Mkdir(f.Data(), 0o700), engine.Give(f.Dir, user), engine.Give(f.Data(), user), f.Open())
	if err != nil {
		f.Remove()
	}
	return f, err
}

// Remove removes a folder that Make made. What cannot be removed harms nobody.
func (f *Folder) Remove() {
	_ = volume.RemoveAll(f.Dir)
	_ = volume.Remove(filepath.Dir(f.Dir))
	_ = f.Close()
}

// Data is the data folder in one that Make made.
func (f *Folder) Data() string { return filepath.Join(f.Dir, "data") }

// Seen is a path below the folder as the programs see it.
func (f *Folder) Seen(path string) string {
	return cmp.Or(f.seen, f.Dir) + strings.TrimPrefix(path, f.Dir)
}

// Env is the whole environment of an engine's program: messages in English, so that the
// service can read them, and no setting of the caller's that could redirect it.
func Env() []string {
	return []string{"PATH=/usr/bin:/bin", "LC_ALL=C", "TZ=UTC", "HOME=/nonexistent"}
}

// Run runs a program in the folder, of which the caller says no more than what it is and
// what it reads.
func (f *Folder) Run(ctx context.Context, t proc.Tool) ([]byte, error) {
	t.Env, t.User, t.Cgroups, t.Seclude = Env(), f.User, f.Cgroups, f.seclude()
	t.Dir = cmp.Or(t.Dir, f.Dir)
	if f.seen != "" {
		t.BindAs, t.BindFrom = f.seen, f.Dir
	}
	return proc.Run(ctx, t)
}

func (f *Folder) seclude() *proc.Seclusion {
	return engine.Seclude(f.User, f.Programs, f.Seen(f.Dir))
}
