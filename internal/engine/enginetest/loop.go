package enginetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// loopBytes is the size of the sparse image; XFS takes no less than 300 MB.
const loopBytes = 4 << 30

// LoopXFS mounts a file system that clones, on an image in dir, until the test ends.
func LoopXFS(t *testing.T, dir string) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("mounting an image needs root")
	}
	for _, tool := range []string{"mkfs.xfs", "mount", "umount", "losetup"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no file system that clones: %v", err)
		}
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
	if out, err := exec.Command("mkfs.xfs", "-q", "-m", "reflink=1", image).CombinedOutput(); err != nil {
		t.Skipf("mkfs.xfs: %v: %s", err, out)
	}
	if out, err := exec.Command("mount", "-o", "loop", image, at).CombinedOutput(); err != nil {
		t.Skipf("mount: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", at).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	return at
}
