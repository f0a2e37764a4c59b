package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"kurabe"
	"kurabe/internal/proc"
	"kurabe/internal/volume"
)

// Modes of an instance's folders: the engine's user may enter what it needs and
// write only its data, logs and socket.
const (
	homeMode    = 0o750
	privateMode = 0o700
	confMode    = 0o640
)

// keyMode is what PostgreSQL demands of a private key: readable by the engine's
// group only when root owns it.
func keyMode() os.FileMode {
	if os.Getuid() == 0 {
		return 0o640
	}
	return 0o600
}

func owner(user *proc.Credential) (uid, gid int) {
	if user == nil {
		return os.Getuid(), os.Getgid()
	}
	return user.UID, user.GID
}

// OwnerFor is whom files that an engine works with are given to, nil where it runs as the
// service. All that changes hands below a home does so as this says.
func OwnerFor(user *proc.Credential) *volume.Owner {
	if user == nil {
		return nil
	}
	return &volume.Owner{UID: user.UID, GID: user.GID}
}

// Give makes the engine's user the owner of a file or folder.
func Give(path string, user *proc.Credential) error {
	if user == nil {
		return nil
	}
	return volume.Give(path, *OwnerFor(user))
}

// GiveTree gives a folder and all in it.
func GiveTree(path string, user *proc.Credential) error {
	if user == nil {
		return nil
	}
	return volume.GiveTree(path, *OwnerFor(user))
}

// homeDir is one of the folders that an instance has from its first step on.
type homeDir struct {
	path     string
	mode     os.FileMode
	uid, gid int
}

// homeDirs are those folders, parents first. The home and the rendered files stay the
// service's, with the engine's group; the rest is the engine's.
func homeDirs(i Instance) []homeDir {
	uid, gid := owner(i.User)
	return []homeDir{
		{i.Home.Dir, homeMode, os.Getuid(), gid},
		{i.Home.ConfDir(), homeMode, os.Getuid(), gid},
		{i.Home.TLSDir(), homeMode, os.Getuid(), gid},
		{i.Home.RunDir(), privateMode, uid, gid},
		{i.Home.LogDir(), privateMode, uid, gid},
	}
}

// hasHome says whether all of them are there, as makeHome leaves them.
func hasHome(i Instance) bool {
	return !slices.ContainsFunc(homeDirs(i), func(d homeDir) bool { return !volume.HasDir(d.path, d.mode, d.uid, d.gid) })
}

func (l *Lifecycle) makeHome(i Instance) error {
	if !exists(i.Home.Dir) {
		var err error
		if i.User, err = l.takeAccount(forInstance + string(i.Instance)); err != nil {
			return err
		}
	}
	for _, d := range homeDirs(i) {
		if err := volume.EnsureDir(d.path, d.mode, d.uid, d.gid); err != nil {
			return err
		}
	}
	return nil
}

// template is the folder that new instances of a version and locale are copied
// from.
func (l *Lifecycle) template(v kurabe.EngineVersion, locale string) TemplateRequest {
	dir := filepath.Join(l.c.Templates, string(v.Engine), v.Version, locale)
	return TemplateRequest{Version: v, Locale: locale, Dir: dir, Scratch: dir + ".scratch", User: l.c.User}
}

// EnsureTemplate makes the template unless it exists. Two callers of one
// template wait for each other.
func (l *Lifecycle) EnsureTemplate(ctx context.Context, v kurabe.EngineVersion, locale string) (TemplateRequest, error) {
	r := l.template(v, locale)
	var err error
	if r.User, err = l.takeAccount(forTemplate + string(v.Engine)); err != nil {
		return r, fmt.Errorf("make template: %w", err)
	}
	l.mu.Lock()
	making := l.making[r.Dir]
	if making == nil {
		making = &sync.Mutex{}
		l.making[r.Dir] = making
	}
	l.mu.Unlock()
	making.Lock()
	defer making.Unlock()
	ours := l.givesAccounts()
	if exists(r.Dir) && (!ours || ownTemplate(r.Dir)) {
		return r, nil
	}
	if exists(r.Dir) { // one of an earlier version belongs to an account that tenants' code has run as
		if err := volume.RemoveTree(l.c.Templates, r.Dir); err != nil {
			return r, err
		}
	}
	for _, dir := range []string{l.c.Templates, filepath.Dir(filepath.Dir(r.Dir)), filepath.Dir(r.Dir)} {
		if err := volume.MkdirAll(dir, 0o711); err != nil {
			return r, fmt.Errorf("make template: %w", err)
		}
	}
	if err := l.c.Driver.MakeTemplate(ctx, r); err != nil {
		return r, fmt.Errorf("make template of %s %s: %w", v.Engine, v.Version, err)
	}
	if !ours {
		return r, nil
	}
	if _, err := volume.Claim(r.Dir); err != nil {
		return r, fmt.Errorf("make template of %s %s: %w", v.Engine, v.Version, err)
	}
	return r, nil
}

// ownTemplate says whether a template is the service's own: nobody else may change what
// all instances begin with.
func ownTemplate(dir string) bool {
	info, err := volume.Lstat(dir)
	return err == nil && volume.OwnerOf(info).UID == os.Getuid()
}

// copyTemplate gives the instance its data folder. It appears by rename, so a
// copy that was cut off is never mistaken for data.
func (l *Lifecycle) copyTemplate(ctx context.Context, i Instance) error {
	t, err := l.EnsureTemplate(ctx, i.Version, i.Locale)
	if err != nil {
		return err
	}
	uid, gid := owner(i.User)
	fresh := i.Home.DataDir() + ".fresh"
	if err := volume.RemoveTree(i.Home.Dir, fresh); err != nil {
		return err
	}
	if err := volume.CopyTree(ctx, t.Dir, fresh, volume.CopyOptions{UID: uid, GID: gid, Sync: true}); err != nil {
		return err
	}
	if d, ok := l.c.Driver.(Identifier); ok {
		if err := d.GiveIdentity(fresh); err != nil {
			return fmt.Errorf("give the data folder its identity: %w", err)
		}
	}
	if err := volume.Rename(fresh, i.Home.DataDir()); err != nil {
		return fmt.Errorf("copy template: %w", err)
	}
	return volume.SyncDir(i.Home.Dir)
}

// writeSettings writes the rendered files and removes others.
func (l *Lifecycle) writeSettings(i Instance) error {
	files := l.c.Driver.Render(i)
	_, gid := owner(i.User)
	for name, content := range files {
		path := filepath.Join(i.Home.ConfDir(), name)
		if have, err := volume.ReadFile(path); err == nil && string(have) == content && readableBy(path, gid) {
			continue
		}
		if err := writeFor(path, []byte(content), confMode, gid); err != nil {
			return fmt.Errorf("write settings: %w", err)
		}
	}
	entries, err := volume.ReadDir(i.Home.ConfDir())
	if err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	for _, e := range entries {
		if _, ok := files[e.Name()]; !ok {
			if err := volume.RemoveAll(filepath.Join(i.Home.ConfDir(), e.Name())); err != nil {
				return fmt.Errorf("write settings: %w", err)
			}
		}
	}
	return nil
}

// writeFor writes a file that the engine's group may read.
func writeFor(path string, data []byte, mode os.FileMode, gid int) error {
	if os.Getuid() != 0 {
		return volume.AtomicWrite(path, data, mode)
	}
	return volume.AtomicWriteOwned(path, data, mode, volume.Owner{UID: -1, GID: gid})
}

// readableBy says whether a file is of the engine's group. Earlier versions gave it to
// the group after it had its name, and could die in between.
func readableBy(path string, gid int) bool {
	info, err := volume.Stat(path)
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return os.Getuid() != 0 || ok && int(stat.Gid) == gid
}

// removeHome removes everything that belongs to the instance.
func (l *Lifecycle) removeHome(ctx context.Context, i Instance) error {
	// The mount point first, since whoever dies in between finds the rest by the home. It is
	// no more than that: the mount itself lived in the engine's namespace.
	if i.SeenDir != i.Home.Dir {
		if err := volume.Remove(i.SeenDir); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove mount point: %w", err)
		}
	}
	if err := volume.RemoveTree(l.c.Homes, i.Home.Dir); err != nil {
		return fmt.Errorf("remove %s: %w", i.Home.Dir, err)
	}
	if err := l.dropAccount(ctx, forInstance+string(i.Instance)); err != nil {
		return fmt.Errorf("give the account of %s back: %w", i.Home.Dir, err)
	}
	return nil
}
