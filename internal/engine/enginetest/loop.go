package enginetest

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"kurabe/internal/proc"
)

// loopBytes is the size of the sparse image; XFS takes no less than 300 MB.
const loopBytes = 4 << 30

// LoopXFS mounts a file system that clones, on an image in dir, until the test ends.
func LoopXFS(t *testing.T, dir string) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("mounting an image needs root")
	}
	image, at := filepath.Join(dir, "xfs.img"), filepath.Join(dir, "xfs")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, loopBytes); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(at, 0o755); err != nil {
		t.Fatal(err)
	}
	run := func(argv ...string) error {
		ctx, cancel := context.WithTimeout(context.Background(), passTime)
		defer cancel()
		_, err := proc.Run(ctx, proc.Tool{Name: argv[0], Argv: argv, Dir: "/", Env: []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}})
		return err
	}
	if err := run("/usr/sbin/mkfs.xfs", "-q", "-m", "reflink=1", image); err != nil {
		t.Skipf("no file system that clones: %v", err)
	}
	if err := run("/usr/bin/mount", "-o", "loop", image, at); err != nil {
		t.Skipf("no file system that clones: %v", err)
	}
	t.Cleanup(func() {
		if err := run("/usr/bin/umount", at); err != nil {
			t.Error(err)
		}
	})
	return at
}
