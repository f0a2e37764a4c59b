//go:build fault

package fault

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kurabe/internal/harness"
)

// TestRepositoryComesAndGoes: the disk of the repository is full, gone and read-only
// under a service that pushes log and snapshots there. Clients never notice, the log
// goes on in the spool, and what waits is pushed by itself. When the spool is full
// too, the log has a gap that is told, refused and ended by a snapshot.
func TestRepositoryComesAndGoes(t *testing.T) {
	needRoot(t)
	for _, engine := range []string{"postgres", "mariadb"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel() // each engine on a service of its own
			disk := newLoopDisk(t)
			repository := filepath.Join(disk.dir, "repository")
			s := harness.New(t, harness.Options{Args: []string{"--copy-rate", "0", "--backup-repository", repository}})
			mount(t, s.Data, fmt.Sprintf("%dm", dataMiB), 0) // its size bounds the spool
			s.Start(t)
			s.NeedEngine(t, engine, s.Engines(t))
			b := &repositoryBed{logBed: newLogBed(t, s, engine), disk: disk}
			b.breaks(t, "full", "no space left on device", func() (mend func()) { return fill(t, disk.dir) })
			b.breaks(t, "gone", "is its disk mounted?", func() (mend func()) {
				disk.unmount(t)
				return func() { disk.mount(t) }
			})
			b.breaks(t, "read-only", "read-only file system", func() (mend func()) {
				disk.remount(t, unix.MS_RDONLY)
				return func() { disk.remount(t, 0) }
			})
			before, gap := b.overflow(t)
			b.grows(t)
			after := b.grows(t) // the moment before may be one before the snapshot
			b.unnoticed(t)
			b.refused(t, gap, "its log has a gap there")
			b.exact(t, append(b.moments, before, after)...)
			b.i.Delete(t)
			noOrphans(t, s)
		})
	}
}

// dataMiB is the disk of the databases: the spool may take a twentieth of it.
const (
	dataMiB       = 2048
	spoolBytesMax = dataMiB << 20 / 20
	// spoolSlack is a piece that grows while the bound is met, and its marks.
	spoolSlack = 1 << 20
)

// repositoryBed is an instance whose repository is on a disk of its own.
type repositoryBed struct {
	*logBed
	disk    *loopDisk
	moments []time.Time // one within each fault
}

// breaks takes the repository away while log and a snapshot are under way, and gives
// it back. The service is killed meanwhile: one that starts without it serves.
func (b *repositoryBed) breaks(t *testing.T, how, words string, does func() (mend func())) {
	t.Helper()
	mark := b.s.Log.Mark()
	mend := does()
	b.pour(t, pieceBytes)
	b.said(t, mark, "log not uploaded", words)
	b.snapshot(t, "while-"+how)
	b.s.Kill(t)
	b.s.Start(t)
	b.moments = append(b.moments, b.grows(t))
	if how == "gone" {
		b.disk.untouched(t)
	}
	mend()
	t.Logf("%s: everything is pushed %v after it is back", how, b.pushed(t).Round(time.Millisecond))
}

// overflow fills the spool while the repository is gone, and returns the last moment
// before the gap and one in it.
func (b *repositoryBed) overflow(t *testing.T) (before, gap time.Time) {
	t.Helper()
	b.disk.unmount(t)
	mark := b.s.Log.Mark()
	for range spoolBytesMax/pieceBytes + 1 {
		b.pour(t, pieceBytes)
		b.bounded(t)
	}
	b.said(t, mark, "the spool is full")
	b.i.WaitEvent(t, "has a gap, and its latest restorable time stands still until the next automated snapshot: the spool is full")
	before = b.stands(t)
	gap = time.Now()
	if !gap.After(before.Add(time.Second)) {
		t.Errorf("%s can be restored, after the log's end", before)
	}
	b.pour(t, 2*pieceBytes)
	b.bounded(t)
	b.letsGo(t)
	if at, err := b.restorable(t); err == nil && !at.Equal(before) {
		t.Errorf("the latest restorable time went on to %s, from %s", at, before)
	}
	backups := b.s.Log.Mark()
	b.disk.untouched(t)
	b.disk.mount(t)
	b.said(t, backups, "log uploads work again", "the log grows again", "step=take-snapshot") // by itself
	b.i.WaitEvent(t, "is followed again")
	// What had no mark by the end of the run stays in its file, beside the one that grows.
	harness.Wait(t, pushTime, "the spool is pushed", func() string {
		if _, bytes := b.spooled(); bytes > 2*pieceBytes {
			return fmt.Sprintf("%d bytes are not", bytes)
		}
		return ""
	})
	return before, gap
}

func (b *repositoryBed) bounded(t *testing.T) {
	t.Helper()
	if _, bytes := b.spooled(); bytes > spoolBytesMax+spoolSlack {
		t.Errorf("the spool has %d bytes, its bound is %d", bytes, spoolBytesMax)
	}
}

// letsGo demands that the server drops the log that nobody can take.
func (b *repositoryBed) letsGo(t *testing.T) {
	t.Helper()
	harness.Wait(t, settleTime, "the server drops its log", func() string {
		held := int64(0)
		if b.i.Engine == "postgres" {
			text := b.i.Query(t, "SELECT coalesce(max(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)), 0)::bigint FROM pg_replication_slots")
			fmt.Sscan(text, &held)
		} else {
			files, _ := filepath.Glob(filepath.Join(b.i.Home(), "data", "mysql-bin-changelog.[0-9]*")) // the pattern is well formed
			for _, file := range files {
				if info, err := os.Stat(file); err == nil {
					held += info.Size()
				}
			}
		}
		if held > heldBytesMax {
			return fmt.Sprintf("it holds %d bytes back", held)
		}
		return ""
	})
}

// heldBytesMax is a file that is written and the one before it, with what the client
// wrote since.
const heldBytesMax = 40 << 20

// loopDisk is a small file system in a file, which can be taken away.
type loopDisk struct{ dir, image string }

const loopMiB = 512

func newLoopDisk(t *testing.T) *loopDisk {
	t.Helper()
	tool, err := exec.LookPath("mkfs.ext4")
	if err != nil {
		t.Skip("mkfs.ext4 is not installed")
	}
	memory, err := os.MkdirTemp("/dev/shm", "kb-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(memory) })
	d := &loopDisk{dir: filepath.Join(harness.Folder(t, false), "disk"), image: filepath.Join(memory, "image")}
	if err := os.Mkdir(d.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(d.image)
	if err == nil {
		err = f.Truncate(loopMiB << 20)
		f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(tool, "-q", "-m", "0", d.image).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := exec.Command("mount", "-o", "loop", d.image, d.dir).CombinedOutput(); err != nil {
		t.Skipf("cannot mount a file here: %s", out)
	}
	t.Cleanup(func() { unix.Unmount(d.dir, unix.MNT_DETACH) }) // the loop device goes with it
	return d
}

func (d *loopDisk) mount(t *testing.T) {
	t.Helper()
	if out, err := exec.Command("mount", "-o", "loop", d.image, d.dir).CombinedOutput(); err != nil {
		t.Fatalf("mount: %s", out)
	}
}

// unmount takes the disk away as soon as nobody reads or writes.
func (d *loopDisk) unmount(t *testing.T) {
	t.Helper()
	harness.Wait(t, settleTime, "the disk can be unmounted", func() string { return errorText(unix.Unmount(d.dir, 0)) })
}

// remount changes the flags of the mount as soon as nobody writes.
func (d *loopDisk) remount(t *testing.T, flags uintptr) {
	t.Helper()
	harness.Wait(t, settleTime, "the disk can be mounted otherwise", func() string {
		return errorText(unix.Mount("", d.dir, "", unix.MS_REMOUNT|flags, ""))
	})
}

func errorText(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}

// untouched demands that nothing was written to the place where the disk belongs.
func (d *loopDisk) untouched(t *testing.T) {
	t.Helper()
	entries, err := os.ReadDir(d.dir)
	if err != nil || len(entries) > 0 {
		t.Errorf("below the mount point are %v, %v", entries, err)
	}
}
