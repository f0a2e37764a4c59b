package tree

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A private tree is a relocated installation. The server finds its share and
// lib folders relative to its own binary, links resolved, so a copy of that one
// binary with links to everything else has an extension folder of its own:
//
//	ROOT/postgres-15.18-1a2b3c4d5e6f/usr/lib/postgresql/15/bin/{postgres,initdb}  copies
//	                                /usr/lib/postgresql/15/bin/*, lib             links
//	                                /usr/share/postgresql/15/*                    links
//	                                /usr/share/postgresql/15/extension            ours
//
// In it the control files of allowed extensions say "trusted", their scripts run
// in rooms (openRooms), and the control files of all others are absent. The machine's own files stay as they are. A tree never
// changes once made: its name holds a hash of what it was made from, and the
// tree of a running server stays when the packages are upgraded.

// treeRevision changes when this file makes something else of the same input.
const treeRevision = "3"

// copied are the programs that look for files relative to themselves.
var copied = []string{"postgres", "initdb"}

// Source is an installed version.
type Source struct {
	Bin, Lib, Share string
	Major           int
}

// Programs are the folders in which a server finds its programs and what belongs to them,
// beside the system's: its tree, and what that leads to.
func Programs(binDir string, major int) []string {
	top := strings.TrimSuffix(binDir, "/"+filepath.Join(treeLib(major), "bin"))
	shown := []string{top}
	for _, link := range []string{filepath.Join(filepath.Dir(binDir), "lib"), filepath.Join(binDir, "pg_controldata"), filepath.Join(top, treeShare(major), "timezonesets")} {
		to, err := filepath.EvalSymlinks(link)
		if err == nil && !strings.HasPrefix(to, "/usr/") && !strings.HasPrefix(to, top+"/") {
			shown = append(shown, filepath.Dir(to))
		}
	}
	return slices.DeleteFunc(shown, func(dir string) bool { return strings.HasPrefix(dir+"/", "/usr/") })
}

// Ensure returns the folder of the programs in the tree of this version below root.
func Ensure(root, version string, s Source) (string, error) {
	sum, err := s.fingerprint()
	if err != nil {
		return "", err
	}
	home := filepath.Join(root, "postgres-"+version+"-"+sum)
	bin := filepath.Join(home, treeLib(s.Major), "bin")
	if _, err := os.Stat(bin); err == nil {
		return bin, nil
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return "", err
	}
	// What a crash left half-made is nobody's: only the agent makes trees.
	left, _ := filepath.Glob(filepath.Join(root, ".making-*"))
	for _, dir := range left {
		if err := os.RemoveAll(dir); err != nil {
			return "", err
		}
	}
	building, err := os.MkdirTemp(root, ".making-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(building) // Nothing is left of it after the rename.
	// A file torn by a power cut would stay under its final name for ever.
	if err := errors.Join(s.build(building), syncFileSystem(building)); err != nil {
		return "", err
	}
	if err := os.Rename(building, home); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	return bin, nil
}

func treeLib(major int) string   { return "usr/lib/postgresql/" + strconv.Itoa(major) }
func treeShare(major int) string { return "usr/share/postgresql/" + strconv.Itoa(major) }

// fingerprint hashes all that a tree depends on: the copied programs, the names
// that are linked and what the extension folder will hold.
func (s Source) fingerprint() (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, treeRevision, s.Bin, s.Lib, s.Share)
	for _, name := range copied {
		if err := hashFile(h, filepath.Join(s.Bin, name)); err != nil {
			return "", err
		}
	}
	for _, dir := range []string{s.Bin, s.Share} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return "", err
		}
		for _, entry := range entries {
			fmt.Fprintln(h, entry.Name())
		}
	}
	dir := filepath.Join(s.Share, "extension")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	for _, entry := range entries {
		text, linked, err := extensionFile(dir, entry.Name())
		if err != nil {
			return "", err
		}
		// Of what is only linked the content does not matter.
		fmt.Fprintln(h, entry.Name(), linked, len(text), text)
	}
	err = eachOwnFile(func(name, text string) error {
		_, err := fmt.Fprintln(h, name, len(text), text)
		return err
	})
	return hex.EncodeToString(h.Sum(nil))[:12], err
}

func hashFile(h hash.Hash, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(h, file)
	return err
}

// build fills dir. Modes are set by hand: the service may have a strict umask,
// and the engine's user must be able to read all of it.
func (s Source) build(dir string) error {
	bin := filepath.Join(dir, treeLib(s.Major), "bin")
	share := filepath.Join(dir, treeShare(s.Major))
	extension := filepath.Join(share, "extension")
	for _, folder := range []string{bin, extension} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	for _, name := range copied {
		if err := copyProgram(filepath.Join(s.Bin, name), filepath.Join(bin, name)); err != nil {
			return err
		}
	}
	if err := os.Symlink(s.Lib, filepath.Join(dir, treeLib(s.Major), "lib")); err != nil {
		return err
	}
	if err := linkAll(s.Bin, bin, copied); err != nil {
		return err
	}
	if err := linkAll(s.Share, share, []string{"extension"}); err != nil {
		return err
	}
	if err := fillExtensions(filepath.Join(s.Share, "extension"), extension); err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			err = os.Chmod(path, 0o755)
		}
		return err
	})
}

func linkAll(from, to string, except []string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if slices.Contains(except, entry.Name()) {
			continue
		}
		if err := os.Symlink(filepath.Join(from, entry.Name()), filepath.Join(to, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return errors.Join(err, out.Close())
	}
	return errors.Join(out.Chmod(0o555), out.Close())
}

// syncFileSystem makes everything below dir durable in one call.
func syncFileSystem(dir string) error {
	file, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer file.Close()
	return unix.Syncfs(int(file.Fd()))
}

// fillExtensions makes the extension folder of a tree.
func fillExtensions(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		text, linked, err := extensionFile(from, entry.Name())
		if err != nil {
			return err
		}
		target := filepath.Join(to, entry.Name())
		switch {
		case linked:
			err = os.Symlink(filepath.Join(from, entry.Name()), target)
		case text != "":
			err = writeReadable(target, text)
		}
		if err != nil {
			return err
		}
	}
	return eachOwnFile(func(name, text string) error { return writeReadable(filepath.Join(to, name), text) })
}

// eachOwnFile calls do with each file of the service's own extensions.
func eachOwnFile(do func(name, text string) error) error {
	return fs.WalkDir(ownFiles, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := ownFiles.ReadFile(path)
		if err != nil {
			return err
		}
		return do(entry.Name(), string(text))
	})
}

// extensionFile decides what becomes of one file: linked, rewritten, or (no
// text) left out.
func extensionFile(dir, name string) (text string, linked bool, err error) {
	extension := extensionOf(name)
	isControl, isScript := strings.HasSuffix(name, ".control"), strings.HasSuffix(name, ".sql")
	if !isControl && !isScript {
		return "", true, nil
	}
	// Scripts of what is not allowed are never reached: there is no control file.
	if !slices.Contains(allowed, extension) {
		return "", isScript, nil
	}
	if isScript && strings.Count(name, "--") > 1 && slices.Contains(frozen, extension) {
		return "", false, nil
	}
	standing, err := standingOf(dir, extension)
	if err != nil || (isControl && standing == closed) {
		return "", false, err
	}
	if isScript && standing != sheltered {
		return "", true, nil
	}
	raw, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return "", false, err
	}
	if isControl {
		return trustedControl(string(raw), standing), false, nil
	}
	text, err = shelteredScript(dir, name, string(raw))
	return text, false, err
}

// shelteredScript is a script that runs in rooms, and what comes after it.
func shelteredScript(dir, name, script string) (string, error) {
	extension := extensionOf(name)
	version, err := defaultVersion(filepath.Join(dir, extension+".control"))
	if err != nil {
		return "", err
	}
	text := inRooms(rewrite(extension, script))
	if !strings.HasSuffix(name, "--"+version+".sql") {
		return text, nil
	}
	text += appended[extension]
	if names := granted[extension]; names != nil {
		text += grantScript(extension, names)
	}
	return text, nil
}

var defaultVersionLine = regexp.MustCompile(`(?m)^\s*default_version\s*=\s*'([^']+)'`)

func defaultVersion(control string) (string, error) {
	raw, err := os.ReadFile(control)
	if err != nil {
		return "", err
	}
	m := defaultVersionLine.FindSubmatch(raw)
	if m == nil {
		return "", fmt.Errorf("%s has no default version", control)
	}
	return string(m[1]), nil
}

func writeReadable(path, text string) error {
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return err
	}
	return os.Chmod(path, 0o444)
}

// ownFiles are extensions of the service's own, which are put into each tree.
//
//go:embed extension/*.control extension/*.sql
var ownFiles embed.FS

// TopologyExtension is what AWS's driver wrappers ask for the servers of a DB cluster.
const TopologyExtension = "rds_tools"
