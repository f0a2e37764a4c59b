package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// patroniCache is where scripts/patroni.sh puts what it could fetch.
const patroniCache = ".cache/patroni"

// patroniBuild is one Patroni of this machine. PYTHONPATH finds it and what it needs.
type patroniBuild struct {
	title, python, packages string
	version                 string
}

// patroniBuilds are those that a run compares with: Debian's, and the current one.
func patroniBuilds(r *run) []patroniBuild {
	builds := []patroniBuild{{title: "Debian's Patroni", python: "/usr/bin/python3", packages: filepath.Join(patroniCache, "debian/usr/lib/python3/dist-packages")}}
	if r.Quick {
		return builds
	}
	current := patroniBuild{title: "current Patroni", python: filepath.Join(patroniCache, "current/bin/python")}
	if found, _ := filepath.Glob(filepath.Join(patroniCache, "current/lib/python3*/site-packages")); len(found) == 1 {
		current.packages = found[0]
	}
	return append(builds, current)
}

// patroniPaces are the settings that a run compares with.
func patroniPaces(r *run) []patroniPace {
	return pick(r, []patroniPace{patroniDefault, patroniFastest}, []patroniPace{patroniFastest})
}

// find copies a build to where the user of the servers can read it, which a checkout need
// not be, and asks it for its version.
func (b *patroniBuild) find(ctx context.Context, to string, as *syscall.Credential) error {
	if _, err := os.Stat(filepath.Join(b.packages, "patroni")); b.packages == "" || err != nil {
		return fmt.Errorf("not below %s: scripts/install.sh bench, with a network", patroniCache)
	}
	if err := copyReadable(ctx, b.packages, to); err != nil {
		return err
	}
	// The interpreter itself: a link in the checkout leads nowhere for another user.
	python, err := filepath.EvalSymlinks(b.python)
	if err != nil {
		return err
	}
	b.python, b.packages = python, to
	cmd := exec.CommandContext(ctx, python, "-m", "patroni", "--version")
	cmd.Env, cmd.Dir, cmd.SysProcAttr = b.env(), "/", &syscall.SysProcAttr{Credential: as}
	out, err := cmd.CombinedOutput()
	if b.version = patroniVersion(string(out)); b.version == "" {
		return errors.Join(err, fmt.Errorf("%s does not start: %s", b.title, oneLine(errors.New(string(out)))))
	}
	b.title = "Patroni " + b.version
	return nil
}

func (b *patroniBuild) env() []string {
	return []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C.UTF-8", "PYTHONPATH=" + b.packages, "PYTHONDONTWRITEBYTECODE=1"}
}

// findEtcd copies Debian's etcd to where the user of the servers can run it.
func findEtcd(ctx context.Context, to string) error {
	from := filepath.Join(patroniCache, "debian/usr/bin/etcd")
	if _, err := os.Stat(from); err != nil {
		return fmt.Errorf("etcd, its store, is not below %s: scripts/install.sh bench, with a network", patroniCache)
	}
	return copyReadable(ctx, from, to)
}

func copyReadable(ctx context.Context, from, to string) error {
	for _, argv := range [][]string{{"cp", "-a", from, to}, {"chmod", "-R", "a+rX", to}} {
		if out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("copy %s: %w: %s", from, err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}

// serverUser is who runs a peer's programs: PostgreSQL refuses root. nil: who we are.
func serverUser() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, err
}

// serverPrograms is where PostgreSQL's programs of a version are.
func serverPrograms(version string) (string, error) {
	major, _, _ := strings.Cut(version, ".")
	dir := filepath.Join("/usr/lib/postgresql", major, "bin")
	_, err := os.Stat(filepath.Join(dir, "postgres"))
	return dir, err
}
