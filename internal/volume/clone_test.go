package volume

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestDifference(t *testing.T) {
	const k = 4096
	for name, c := range map[string]struct {
		source, clone []mapped
		size          uint64
		want          []span
	}{
		"nothing":       {nil, nil, k, nil},
		"the same":      {[]mapped{{0, 8 * k, 80 * k}}, []mapped{{0, 8 * k, 80 * k}}, 8 * k, nil},
		"split alike":   {[]mapped{{0, 8 * k, 80 * k}}, []mapped{{0, 3 * k, 80 * k}, {3 * k, 8 * k, 83 * k}}, 8 * k, nil},
		"all new":       {[]mapped{{0, 8 * k, 80 * k}}, nil, 8 * k, []span{{0, 8 * k}}},
		"moved":         {[]mapped{{0, 8 * k, 80 * k}}, []mapped{{0, 8 * k, 81 * k}}, 8 * k, []span{{0, 8 * k}}},
		"one page":      {[]mapped{{0, 64 * k, 800 * k}, {64 * k, 65 * k, k}, {65 * k, 128 * k, 865 * k}}, []mapped{{0, 128 * k, 800 * k}}, 128 * k, []span{{64 * k, 80 * k}}},
		"a hole":        {[]mapped{{32 * k, 64 * k, 32 * k}}, []mapped{{0, 64 * k, 0}}, 64 * k, []span{{0, 32 * k}}},
		"a filled hole": {[]mapped{{0, 64 * k, 0}}, []mapped{{32 * k, 64 * k, 32 * k}}, 64 * k, []span{{0, 32 * k}}},
		"beyond":        {[]mapped{{0, 64 * k, 0}}, nil, 10, []span{{0, 10}}},
		"neighbours":    {[]mapped{{0, k, 1}, {20 * k, 21 * k, 2}, {60 * k, 61 * k, 3}}, nil, 64 * k, []span{{0, 32 * k}, {48 * k, 64 * k}}},
	} {
		if got := widen(difference(c.source, c.clone), c.size); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A tree that changes in every way between two rounds is in the clone as it is, and
// what did not change is not cloned again. Runs where TMPDIR is on XFS or btrfs.
func TestCloneRounds(t *testing.T) {
	dir := t.TempDir()
	if !Reflink(dir) {
		t.Skip("no reflink in " + dir)
	}
	src, dst := filepath.Join(dir, "src"), filepath.Join(dir, "dst")
	const seed = 7
	random := rand.New(rand.NewPCG(seed, 0))
	for n := range 6 {
		write(t, fmt.Sprintf("%s/d%d/f", src, n), strings.Repeat("x", 1+random.IntN(3<<20)), 0o640)
	}
	write(t, src+"/left", "out", 0o600)
	write(t, src+"/empty", "", 0o600)
	c, err := NewClone(src, dst, func(rel string) bool { return rel == "left" })
	if err != nil {
		t.Fatal(err)
	}
	first, err := c.Round(t.Context())
	if err != nil || first != c.Bytes() {
		t.Fatalf("%d of %d bytes, %v", first, c.Bytes(), err)
	}
	if again, err := c.Round(t.Context()); err != nil || again != 0 {
		t.Errorf("%d bytes of a tree that did not change, %v", again, err)
	}
	for round := range 60 {
		for range 1 + random.IntN(8) {
			change(t, random, src)
		}
		if round%2 == 0 {
			if err := c.Learn(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		cloned, err := c.Round(t.Context())
		if err != nil || cloned > c.Bytes() {
			t.Fatalf("round %d: %d bytes, %v", round, cloned, err)
		}
		sameContent(t, src, dst)
		if t.Failed() {
			t.Fatalf("after round %d with seed %d", round, seed)
		}
	}
	files, err := c.Finish()
	if err != nil || !slices.IsSortedFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) }) {
		t.Errorf("%v, %v", files, err)
	}
	for _, f := range files {
		was, err := os.Stat(filepath.Join(src, f.Path))
		if err != nil {
			t.Fatal(err)
		}
		if is, err := os.Stat(filepath.Join(dst, f.Path)); err != nil || is.Mode() != was.Mode() || is.Size() != f.Size {
			t.Errorf("%s: %v, want %v and %d bytes, %v", f.Path, is, was.Mode(), f.Size, err)
		}
	}
}

// change does one of the things that an engine does to a folder.
func change(t *testing.T, random *rand.Rand, src string) {
	t.Helper()
	name := fmt.Sprintf("%s/d%d/f", src, random.IntN(6))
	info, err := os.Stat(name)
	switch kind := random.IntN(10); {
	case err != nil || kind == 0:
		err = nil
		write(t, name, strings.Repeat("n", random.IntN(1<<20)), 0o600)
	case kind == 1:
		err = os.Remove(name)
	case kind == 2:
		err = os.RemoveAll(filepath.Dir(name))
	case kind == 3:
		write(t, name+".new", strings.Repeat("r", random.IntN(1<<20)), 0o600)
		err = os.Rename(name+".new", name)
	case kind == 4:
		err = os.Truncate(name, random.Int64N(info.Size()+1))
	case kind == 5:
		err = os.Truncate(name, info.Size()+random.Int64N(1<<20))
	default:
		var file *os.File
		if file, err = os.OpenFile(name, os.O_WRONLY, 0); err == nil {
			part := bytes.Repeat([]byte{byte(random.IntN(256))}, 1+random.IntN(40_000))
			_, err = file.WriteAt(part, random.Int64N(info.Size()+100_000))
			if e := file.Close(); err == nil {
				err = e
			}
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

func sameContent(t *testing.T, src, dst string) {
	t.Helper()
	list := func(dir string) map[string]string {
		all := map[string]string{}
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			rel, _ := filepath.Rel(dir, path)
			if err == nil && rel != "left" {
				all[rel] = ""
				if !entry.IsDir() {
					all[rel] = read(t, path)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	want, got := list(src), list(dst)
	for rel, content := range want {
		if have, ok := got[rel]; !ok || have != content {
			t.Errorf("%s: there %v, %d bytes, want %d", rel, ok, len(have), len(content))
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d names, want %d", len(got), len(want))
	}
}

// Where nothing can be cloned, or a link is in the tree, it fails; what is there is the
// caller's.
func TestCloneRefuses(t *testing.T) {
	dir := t.TempDir()
	src := filepath.Join(dir, "src")
	write(t, src+"/f", "content", 0o600)
	if Reflink(dir) {
		if err := os.Symlink("/etc/passwd", src+"/link"); err != nil {
			t.Fatal(err)
		}
	}
	c, err := NewClone(src, src+"2", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Round(context.Background()); err == nil {
		t.Error("it is cloned")
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := NewClone(src, src+"2", nil); err == nil {
		t.Error("a folder that is there is cloned into")
	}
}
