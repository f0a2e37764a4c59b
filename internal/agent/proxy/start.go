package proxy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"kurabe"
	"kurabe/internal/cgroup"
	"kurabe/internal/daemon"
	"kurabe/internal/faultpoint"
	"kurabe/internal/proc"
	"kurabe/internal/proxy/process"
	"kurabe/internal/volume"
)

const (
	// ownProgram is what the shim is: after an upgrade on disk still our version.
	ownProgram = "/proc/self/exe"
	// memoryMax is beyond the process's own bound (process.Run), which it keeps to unless
	// clients have more under way than it can.
	memoryMax = 1 << 30
	// drainTime is how long a proxy that is deleted has for the transactions under way.
	drainTime = 5 * time.Second
	// lastWordsMax bounds what is told of one that did not start.
	lastWordsMax = 2 << 10
)

// The files beside those of the process. The process cannot write their folder.
const (
	lockName   = "process.lock"
	recordName = "process.json"
	startName  = "start.log"
)

func (w *worker) daemon() daemon.Daemon {
	in := func(name string) string { return filepath.Join(w.dir, name) }
	return daemon.Daemon{Work: process.RunDir(w.dir), Lock: in(lockName), Record: in(recordName), Log: in(startName)}
}

// account is the name of the proxy's user in the book.
func (w *worker) account() string { return "proxies/" + string(w.ID) }

// user is who the process runs as, nil for ourselves.
func (w *worker) user() (*proc.Credential, error) {
	if w.set.Accounts == nil || w.set.Accounts.Off() {
		return nil, nil
	}
	e, err := w.set.Accounts.Take(w.account(), false)
	if err != nil {
		return nil, err
	}
	return &proc.Credential{UID: e.ID, GID: e.ID, Name: "kurabe-" + strconv.Itoa(e.ID)}, nil
}

// prepare makes the folder that the process writes in, and tells whose its files are.
func (w *worker) prepare() (*volume.Owner, error) {
	user, err := w.user()
	if err != nil {
		return nil, err
	}
	uid, gid, owner := -1, -1, (*volume.Owner)(nil)
	if user != nil {
		uid, gid, owner = user.UID, user.GID, &volume.Owner{UID: user.UID, GID: user.GID}
	}
	if err := w.makeFolder(); err != nil {
		return nil, err
	}
	return owner, volume.EnsureDir(process.RunDir(w.dir), 0o700, uid, gid)
}

// start starts the process unless it lives, and waits until it answers.
func (w *worker) start(ctx context.Context, a kurabe.ProxyAssignment) error {
	d := w.daemon()
	if _, alive, err := d.Find(); err != nil || alive {
		return err
	}
	user, err := w.user()
	if err != nil {
		return err
	}
	if _, err := w.prepare(); err != nil {
		return err
	}
	spec := proc.Spec{Name: "proxy " + a.Name, Argv: []string{ownProgram, "proxy", "run", "--folder", w.dir}, Env: []string{}, User: user}
	if spec.Cgroups, err = w.limit(); err != nil {
		return err
	}
	if err := volume.Truncate(d.Log, 0); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	faultpoint.Reach("before", "proxy-start")
	p, err := d.Start(ctx, spec)
	if err != nil {
		return err
	}
	faultpoint.Reach("after", "proxy-start")
	err = daemon.Await(ctx, p, func() (bool, error) {
		_, err := w.client.Status(ctx, 0)
		return err == nil, nil
	})
	if errors.Is(err, daemon.ErrEnded) {
		return fmt.Errorf("%w: %s", err, w.lastWords(d.Log))
	}
	if err == nil {
		w.Log.Info("proxy started", "pid", p.PID)
	}
	return err
}

// limit bounds the memory of the process where this host can.
func (w *worker) limit() ([]string, error) {
	var limits cgroup.Limits
	if w.set.Levers.Memory.Enforceable {
		limits.MemoryBytes = memoryMax
	}
	group, err := w.set.Levers.Ensure(string(w.ID), limits)
	if err != nil {
		return nil, err
	}
	return group.ProcsFiles(), nil
}

func (w *worker) lastWords(path string) string {
	text, err := volume.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text[max(0, len(text)-lastWordsMax):]))
}

// stop ends the process, which gives what is under way drainTime.
func (w *worker) stop(ctx context.Context) error {
	d := w.daemon()
	if _, alive, err := d.Find(); err != nil || !alive {
		return err
	}
	_ = w.client.Stop(ctx) // or the signal, below
	return d.Kill(ctx, syscall.SIGTERM, drainTime, nil)
}

// remove leaves nothing of the proxy here but its assignment, which goes with its record.
func (w *worker) remove(ctx context.Context, a kurabe.ProxyAssignment) error {
	faultpoint.Reach("before", "proxy-remove")
	if err := w.stop(ctx); err != nil {
		return err
	}
	if group, ok := w.set.Levers.Find(string(w.ID)); ok {
		if err := group.Remove(ctx); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if err := w.set.hold(a); err != nil {
		return err
	}
	if err := process.Remove(w.dir); err != nil {
		return err
	}
	if w.set.Accounts != nil {
		if e, ok := w.set.Accounts.Find(w.account()); ok {
			if err := proc.KillOwned(ctx, e.ID); err != nil {
				return err
			}
			if err := w.set.Accounts.Release(w.account()); err != nil {
				return err
			}
		}
	}
	w.config, w.route = nil, nil
	faultpoint.Reach("after", "proxy-remove")
	return nil
}
