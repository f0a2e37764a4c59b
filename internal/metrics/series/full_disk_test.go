package series

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// fullDiskDir is set in the process that has a small disk of its own.
const fullDiskDir = "KURABE_SERIES_FULL_DISK"

// A full disk costs what is measured meanwhile, and nothing else.
func TestFullDisk(t *testing.T) {
	if dir := os.Getenv(fullDiskDir); dir != "" {
		onFullDisk(t, dir)
		return
	}
	c := exec.Command(os.Args[0], "-test.run=^TestFullDisk$", "-test.v")
	c.Env = append(os.Environ(), fullDiskDir+"="+t.TempDir())
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		c.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
	}
	out, err := c.CombinedOutput()
	if exit, ran := err.(*exec.ExitError); err != nil && (!ran || exit.ExitCode() == 77) {
		t.Skipf("no mount of its own: %v %s", err, out)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func onFullDisk(t *testing.T, dir string) {
	if syscall.Mount("", "/", "", syscall.MS_PRIVATE|syscall.MS_REC, "") != nil || syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=16m") != nil {
		os.Exit(77)
	}
	b := newBed(t, filepath.Join(dir, "metrics"), midday)
	b.Free = func() int64 {
		var st syscall.Statfs_t
		if err := syscall.Statfs(dir, &st); err != nil {
			t.Fatal(err)
		}
		return int64(st.Bavail) * st.Bsize
	}
	b.reserve = 256 << 10
	b.run(20*time.Minute, second)
	list := make([]Sample, 500)
	for n := range list {
		list[n].Labels = NewLabels("metric", fmt.Sprint("m", n))
	}
	failed := 0
	for s := range 3600 {
		for n := range list {
			list[n].Value = math.Sqrt(float64(n * s))
		}
		if b.Append(b.now, list) != nil {
			failed++
		}
		b.reopen()
		b.tick()
		if s%60 == 0 {
			b.maintain(t.Context())
		}
		b.now = b.now.Add(time.Second)
	}
	if failed == 0 {
		t.Error("the disk was not full")
	}
	if got := b.buckets(minutesOf(b)); len(got) < 20 {
		t.Errorf("%d minutes while it is full", len(got))
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	b.reopen()
	b.run(5*time.Minute, second)
	b.maintain(t.Context())
	b.close()
	b = newBed(t, b.Dir, b.now.Add(time.Minute))
	b.tick()
	if got := b.buckets(minutesOf(b)); len(got) != 25 || got[0].Count != 60 || got[24].Count != 60 {
		t.Errorf("%d minutes after a start: %v", len(got), got)
	}
}

func minutesOf(b *bed) Query {
	return Query{Match: []Match{{"metric", []string{"cpu"}}}, From: midday, To: b.now, Period: time.Minute}
}
