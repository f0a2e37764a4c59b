package failover

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"kurabe/test/bench/bed"
)

// patroniCache is where scripts/patroni.sh puts what it could fetch.
const patroniCache = ".cache/patroni"

// patroniBuild is one Patroni of this machine, and the settings that it is measured with.
// PYTHONPATH finds it and what it needs.
type patroniBuild struct {
	form, title, python, packages string
	paces                         []patroniPace
}

// patroniBuilds are those that a run compares with: Debian's and the current one, by themselves
// and at their fastest, as far as --peers names them.
func patroniBuilds(r *comparison) (list []patroniBuild) {
	debian := patroniBuild{form: "debian", title: "Debian's Patroni", python: "/usr/bin/python3", packages: filepath.Join(patroniCache, "debian/usr/lib/python3/dist-packages")}
	current := patroniBuild{form: "current", title: "the current Patroni", python: filepath.Join(patroniCache, "current/bin/python")}
	if found, _ := filepath.Glob(filepath.Join(patroniCache, "current/lib/python3*/site-packages")); len(found) == 1 {
		current.packages = found[0]
	}
	wanted := r.peerForms()
	for _, b := range []patroniBuild{debian, current} {
		for _, pace := range []patroniPace{patroniDefault, patroniFastest} {
			if slices.Contains(wanted, b.form+"-"+pace.form) {
				b.paces = append(b.paces, pace)
			}
		}
		if version := b.packaged(); version != "" {
			b.title = "Patroni " + version
		}
		if len(b.paces) > 0 {
			list = append(list, b)
		}
	}
	return list
}

// PeerForms are the names of what --peers chooses from.
var PeerForms = []string{"debian-default", "debian-fastest", "current-default", "current-fastest"}

// NoPeers is what --peers says for a run without any.
const NoPeers = "none"

// PeerForms are those of this run: --quick has one.
func (r *comparison) peerForms() []string {
	if r.Peers != "" {
		return strings.Split(r.Peers, ",")
	}
	return bed.Pick(r.Run, PeerForms, []string{"debian-fastest"})
}

// patroniVersionLine is in the file of the package that names its version.
var patroniVersionLine = regexp.MustCompile(`(?m)^__version__ = '([0-9][^']*)'`)

// packaged is the version that the package names.
func (b *patroniBuild) packaged() string {
	text, _ := os.ReadFile(filepath.Join(b.packages, "patroni", "version.py"))
	if m := patroniVersionLine.FindSubmatch(text); m != nil {
		return string(m[1])
	}
	return ""
}

// find copies a build to where the user of the servers can read it, which a checkout need
// not be, and sees whether it starts.
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
	version := patroniVersion(string(out))
	if version == "" {
		return errors.Join(err, fmt.Errorf("%s does not start: %s", b.title, bed.OneLine(errors.New(string(out)))))
	}
	b.title = "Patroni " + version
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
