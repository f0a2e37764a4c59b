//go:build fault

package fault

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"
	"golang.org/x/sys/unix"

	"kurabe/internal/harness"
)

// cloningFolder is a folder on a file system that clones, "" where none can be made.
// It goes with the test.
func cloningFolder(t *testing.T) string {
	t.Helper()
	tool, err := exec.LookPath("mkfs.xfs")
	if err != nil || !harness.Root() {
		t.Log("no file system that clones: that needs root and mkfs.xfs")
		return ""
	}
	dir := filepath.Join(harness.Folder(t, false), "xfs")
	// In memory: a file system in a file on a disk syncs twice for each sync.
	memory, err := os.MkdirTemp("/dev/shm", "kb-")
	if err != nil {
		t.Logf("no file system that clones: %v", err)
		return ""
	}
	t.Cleanup(func() { os.RemoveAll(memory) })
	image := filepath.Join(memory, "image")
	const size = 2 << 30 // sparse; the state store alone wants 300 MB
	f, err := os.Create(image)
	if err == nil {
		err = f.Truncate(size)
		f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(tool, "-q", "-m", "reflink=1", image).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-o", "loop", image, dir).CombinedOutput(); err != nil {
		t.Logf("no file system that clones: %s", out)
		return ""
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) }) // the loop device goes with it
	return dir
}

// TestSnapshotOntoAFullDisk: what does not fit fails with the reason, whether that is
// seen before or only while it is copied, and the source serves all the time.
func TestSnapshotOntoAFullDisk(t *testing.T) {
	needRoot(t)
	t.Parallel()
	s := harness.New(t, harness.Options{Args: []string{"--copy-rate", "16"}})
	dir := filepath.Join(s.Data, "snapshots")
	mount(t, dir, "640m", 0) // 512 MiB must stay free beside the 80 MiB of a new instance
	s.Start(t)
	b := newSnapshotBed(t, s, "postgres")
	if err := b.take(t, "first"); err != nil {
		t.Fatal(err)
	}
	harness.Wait(t, settleTime, "some of it is copied", func() string {
		files, _ := filepath.Glob(filepath.Join(dir, "snap-*", "data", "base", "*", "*"))
		if len(files) < 10 {
			return "nothing is"
		}
		return ""
	})
	free := fill(t, dir)
	b.reaches(t, "first", "failed")
	// The first try breaks off, those after it are not begun.
	if !strings.Contains(s.Log.String(), "no space left on device") {
		t.Error("the copy did not meet the end of the disk")
	}
	if why := b.why(t, "first"); !strings.Contains(why, "free on the disk") && !strings.Contains(why, "no space left on device") {
		t.Errorf("the reason is %q", why)
	}
	if list := b.halves(); len(list) > 0 {
		t.Errorf("%v are left", list)
	}
	b.i.WaitStatus(t, "available")
	b.ledger.WaitMore(t, 3)
	free()
	if err := b.remove(t, "first"); err != nil {
		t.Fatal(err)
	}
	b.gone(t, "first")
	b.clean(t)
	b.end(t)
}

// halves are files of data among the snapshots.
func (b *snapshotBed) halves() []string {
	list, _ := filepath.Glob(filepath.Join(b.s.Data, "snapshots", "snap-*", "data")) // the pattern is well formed
	return list
}

// why is what users are told of a snapshot that failed.
func (b *snapshotBed) why(t *testing.T, name string) string {
	t.Helper()
	out, err := b.s.DescribeEvents(t.Context(), &rds.DescribeEventsInput{
		SourceType: types.SourceTypeDbSnapshot, SourceIdentifier: aws.String(name), Duration: aws.Int32(60),
	})
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range out.Events {
		list = append(list, aws.ToString(e.Message))
	}
	return strings.Join(list, "; ")
}
