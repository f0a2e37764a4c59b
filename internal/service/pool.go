package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"kurabe/internal/logkey"
	"kurabe/internal/proc"
	"kurabe/internal/volume"
)

// poolFlags choose where instances, templates and snapshots live.
type PoolConfig struct {
	Kind, Size  string
	Preallocate bool
}

// poolLoop is the only kind of pool; without one the folders are in DATA itself.
const PoolLoop = "loop"

// options are the flags as the pool wants them.
func (f *PoolConfig) options() (volume.PoolOptions, error) {
	o := volume.PoolOptions{Preallocate: f.Preallocate}
	switch {
	case f.Kind != "" && f.Kind != PoolLoop:
		return o, fmt.Errorf("--pool %q: the only kind of pool is %q", f.Kind, PoolLoop)
	case f.Kind == "" && (f.Size != "" || f.Preallocate):
		return o, errors.New("--pool-size and --pool-preallocate are of use with --pool loop only")
	case f.Size == "":
		return o, nil
	}
	var err error
	o.SizeBytes, err = ParseSize(f.Size)
	if err != nil {
		return o, fmt.Errorf("--pool-size: %w", err)
	}
	return o, nil
}

// parseSize reads "100GiB".
func ParseSize(text string) (int64, error) {
	for _, u := range []struct {
		name  string
		bytes int64
	}{{"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}} {
		number, found := strings.CutSuffix(text, u.name)
		if !found {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		if err == nil && n > 0 && n <= (1<<62)/u.bytes {
			return n * u.bytes, nil
		}
	}
	return 0, fmt.Errorf("invalid size %q; example: 100GiB (whole numbers of MiB, GiB or TiB)", text)
}

// poolFolders are in the pool when there is one. Each has a link in DATA, so that
// people find them where they are without a pool; the service does not use the links.
var PoolFolders = []string{"instances", "snapshots", "assignments", "snapshot-assignments"}

// pool is the pool of a running service.
type pool struct {
	volume.Pool
	log     *slog.Logger
	unmount bool // when the service ends
	holding bool // space was held back at the last look
	failure string
}

// poolAt is the pool of a data folder, seen at another path or the same.
func PoolAt(data, seen string) volume.Pool {
	return volume.Pool{Image: filepath.Join(data, "pool.img"), Dir: filepath.Join(seen, "pool"), Make: makeXFS}
}

// makeTime bounds mkfs.xfs, which writes little whatever the size.
const makeTime = time.Minute

func makeXFS(ctx context.Context, image string, options []string) error {
	program, err := exec.LookPath("mkfs.xfs")
	for _, dir := range []string{"/usr/sbin", "/sbin"} { // no part of many a PATH
		if err != nil {
			program, err = exec.LookPath(filepath.Join(dir, "mkfs.xfs"))
		}
	}
	if err != nil {
		return errors.New("mkfs.xfs is missing: install the package xfsprogs")
	}
	ctx, cancel := context.WithTimeout(ctx, makeTime)
	defer cancel()
	_, err = proc.Run(ctx, proc.Tool{Name: "mkfs.xfs", Argv: append(append([]string{program}, options...), image), Dir: filepath.Dir(image)})
	return err
}

// enterBase says in which folder this service keeps its databases, as their servers
// see it: the data folder, or the pool, which is made and mounted. The caller holds
// the lock of data.
func enterBase(ctx context.Context, f *HostConfig, data string, log *slog.Logger) (string, *pool, error) {
	options, err := f.Pool.options()
	if err != nil {
		return "", nil, err
	}
	seen := data
	if bound := proc.Bound(); bound != "" {
		seen = bound // the same folder, where the engines' users can enter
	}
	p := &pool{Pool: PoolAt(data, seen), log: log, unmount: f.StopDatabases}
	if f.Pool.Kind == "" {
		if p.Exists() {
			return "", nil, fmt.Errorf("the databases of this data folder are in the pool %s: start with --pool %s; to go without it, delete every instance and snapshot, stop the service and run: kurabe pool remove --data %s", p.Image, PoolLoop, data)
		}
		return seen, nil, nil
	}
	if err := refuseOutside(data); err != nil {
		return "", nil, err
	}
	if err := p.Ensure(ctx, options); err != nil {
		return "", nil, err
	}
	if err := linkFolders(data); err != nil {
		return "", nil, fmt.Errorf("link the folders of the pool: %w", err)
	}
	p.look()
	return p.Dir, p, nil
}

// refuseOutside finds databases that a pool would lose sight of.
func refuseOutside(data string) error {
	for _, name := range PoolFolders {
		path := filepath.Join(data, name)
		info, err := os.Lstat(path)
		if err != nil || info.Mode()&os.ModeSymlink != 0 {
			continue // not there, or our link
		}
		if entries, err := os.ReadDir(path); err != nil || len(entries) != 0 {
			return fmt.Errorf("%s is in use outside of a pool, which is chosen at the first start of a data folder: start without --pool, or choose another folder with --data and bring the databases there by dump and restore", path)
		}
	}
	return nil
}

// linkFolders puts the links in place. The folders themselves are made, with modes of
// their own, by those who fill them.
func linkFolders(data string) error {
	for _, name := range PoolFolders {
		path, to := filepath.Join(data, name), filepath.Join("pool", name)
		if now, err := os.Readlink(path); err == nil && now == to {
			continue
		}
		// An empty folder of a service without a pool, or nothing; never a tree.
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := os.Symlink(to, path); err != nil {
			return err
		}
	}
	return volume.SyncDir(data)
}

// How often the free space of the disk is compared with the promises of the pool:
// often enough that no disk is written full between two looks.
const (
	poolLook     = 2 * time.Second
	poolLookNear = 200 * time.Millisecond
	poolNear     = 8 << 30
)

// watch keeps the pool's promises to what the disk can hold, until ctx ends.
func (p *pool) watch(ctx context.Context) error {
	for {
		wait := poolLook
		if headroom := p.look(); headroom < poolNear {
			wait = poolLookNear
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// look balances once, tells of changes, and returns what the disk still has. An
// error is no reason to end: the databases are there, and the next look may work.
func (p *pool) look() (headroom int64) {
	s, err := p.Balance()
	if err != nil {
		if p.failure != err.Error() {
			p.failure = err.Error()
			p.log.Error("cannot watch the pool: its disk may fill up unnoticed", logkey.Error, err)
		}
		return 0
	}
	p.failure = ""
	if holding := s.HeldBytes > 0; holding != p.holding {
		p.holding = holding
		if holding {
			p.log.Warn("the disk below the pool is nearly full: databases find the pool full before it is", "disk_free_bytes", s.HostFreeBytes, "pool_free_bytes", s.FreeBytes)
		} else {
			p.log.Info("the disk below the pool has room again", "disk_free_bytes", s.HostFreeBytes)
		}
	}
	return s.Headroom()
}

// leave unmounts the pool if the databases were stopped too.
func (p *pool) leave() {
	if !p.unmount {
		return
	}
	if err := p.Unmount(); err != nil {
		p.log.Warn("the pool stays mounted", logkey.Error, err)
	}
}
