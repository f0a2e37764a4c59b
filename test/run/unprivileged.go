package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"kurabe/internal/harness"
)

// nobody is the user of Debian's base system that owns nothing. initdb wants a
// user that has a name.
const nobody = 65534

// unprivileged runs the integration tests once more as a user without rights,
// because "works without root" is a promise. The tests are compiled by us and
// only run as that user: its home holds no Go and it cannot read ours.
func (r *runner) unprivileged(ctx context.Context) (t total, err error) {
	if os.Geteuid() != 0 {
		return t, errAbsent // the integration suite was already that
	}
	found, err := findTagged(r.root, "integration")
	if err != nil {
		return t, err
	}
	if found = r.leave("unprivileged", found); len(found) == 0 {
		return t, errAbsent
	}
	r.again = func(r *runner, ctx context.Context, pkg, test string) (total, error) {
		return r.asNobody(ctx, taggedTests{"./" + strings.TrimPrefix(pkg, "kurabe/"): {test}})
	}
	defer func() { r.again = nil }()
	return r.asNobody(ctx, found)
}

// asNobody compiles the tests and runs them as the user without rights.
func (r *runner) asNobody(ctx context.Context, found taggedTests) (t total, err error) {
	bed, err := newBed(r)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(bed.dir)) }()
	for i, pkg := range found.packages() {
		bin := filepath.Join(bed.dir, "bin", fmt.Sprintf("t%d.test", i))
		build := r.command(ctx, r.goArgv(append(append([]string{"test", "-c"}, testBuild...), "-tags=integration", "-o", bin, pkg)...)...)
		out, err := build.CombinedOutput()
		r.used(build)
		if err != nil {
			fmt.Fprintf(r.out, "FAIL %s does not build\n%s", pkg, out)
			t.failed++
			continue
		}
		got, err := r.runAsNobody(ctx, bed, pkg, bin, taggedTests{pkg: found[pkg]}.pattern())
		t.add(got)
		if err != nil {
			return t, err
		}
	}
	return t, nil
}

// bed is the temporary folder of the unprivileged user. Its path is short: the
// path of a unix socket holds 107 bytes.
type bed struct {
	dir string
	env []string
}

func newBed(r *runner) (*bed, error) {
	dir, err := os.MkdirTemp("/tmp", "knp-")
	if err != nil {
		return nil, err
	}
	b := &bed{dir: dir}
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, err
	}
	for _, sub := range []string{"bin", "home", "work"} {
		path := filepath.Join(dir, sub)
		if err := os.Mkdir(path, 0o755); err != nil {
			return nil, err
		}
		if sub != "bin" {
			if err := os.Chown(path, nobody, nobody); err != nil {
				return nil, err
			}
		}
	}
	b.env = []string{
		"KURABE_TEST_UNPRIVILEGED=1",
		"PATH=" + os.Getenv("PATH"),
		"LANG=C.UTF-8",
		"CI=" + os.Getenv("CI"),
		"HOME=" + filepath.Join(dir, "home"),
		"GOCACHE=" + filepath.Join(dir, "home", "gocache"),
		harness.Isolation,
	}
	// The repository may be in a home folder that is closed to others.
	if built, err := os.ReadFile(filepath.Join(r.root, "bin", "kurabe")); err == nil {
		bin := filepath.Join(dir, "bin", "kurabe")
		if err := os.WriteFile(bin, built, 0o755); err != nil {
			return nil, err
		}
		b.env = append(b.env, "KURABE_BIN="+bin)
		// The service looks for MariaDB's plugin beside itself.
		const guard = "kurabe_guard.so"
		if plugin, err := os.ReadFile(filepath.Join(r.root, "bin", guard)); err == nil {
			if err := os.WriteFile(filepath.Join(dir, "bin", guard), plugin, 0o755); err != nil {
				return nil, err
			}
		}
	}
	return b, nil
}

func (r *runner) runAsNobody(ctx context.Context, b *bed, pkg, bin, pattern string) (total, error) {
	dir, err := b.workDir(r.root, pkg)
	if err != nil {
		return total{}, err
	}
	name := "kurabe/" + strings.TrimPrefix(pkg, "./")
	argv := r.goArgv("tool", "test2json", "-t", "-p", name)
	argv = append(argv, r.isolated("setpriv", fmt.Sprintf("--reuid=%d", nobody), fmt.Sprintf("--regid=%d", nobody), "--clear-groups",
		// The temporary folder is only known inside.
		"--inh-caps=-all", "--no-new-privs", "sh", "-c", `exec env -i -C "$0" TMPDIR="$TMPDIR" "$@"`, dir)...)
	argv = append(argv, b.env...)
	argv = append(argv, bin, "-test.v=test2json", "-test.timeout=30m", "-test.run="+pattern)
	cmd := r.command(ctx, argv...)
	cmd.Stderr = r.out
	out, err := cmd.StdoutPipe()
	if err != nil {
		return total{}, err
	}
	if err := cmd.Start(); err != nil {
		return total{}, err
	}
	t, readErr := r.consume(out)
	err = cmd.Wait()
	r.used(cmd)
	if err != nil && t.failed == 0 {
		return t, fmt.Errorf("%s as user %d: %w", pkg, nobody, err)
	}
	return t, readErr
}

// workDir is where the tests of a package expect to run: beside their testdata.
// Where others may not enter the repository, that is a copy.
func (b *bed) workDir(root, pkg string) (string, error) {
	dir := filepath.Join(root, pkg)
	if openToOthers(dir) {
		return dir, nil
	}
	work := filepath.Join(b.dir, "work", strings.ReplaceAll(strings.TrimPrefix(pkg, "./"), "/", "-"))
	if err := os.MkdirAll(work, 0o755); err != nil {
		return "", err
	}
	data := filepath.Join(dir, "testdata")
	if _, err := os.Stat(data); errors.Is(err, os.ErrNotExist) {
		return work, nil
	}
	return work, os.CopyFS(filepath.Join(work, "testdata"), os.DirFS(data))
}

// openToOthers reports whether a stranger can reach the folder and read it.
func openToOthers(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm()&0o005 != 0o005 {
		return false
	}
	for parent := filepath.Dir(dir); ; parent = filepath.Dir(parent) {
		info, err := os.Stat(parent)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
		if parent == "/" {
			return true
		}
	}
}
