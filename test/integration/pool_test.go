//go:build integration

package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"golang.org/x/sys/unix"

	"kurabe"
	"kurabe/internal/harness"
	"kurabe/internal/volume"
)

const poolGiB = 1 << 30

// outerDisk is a small disk of its own, whose file system cannot clone, for a pool
// that may fill it. Its loop device goes with its last mount.
func outerDisk(t *testing.T, bytes int64) string {
	t.Helper()
	needRoot(t)
	for _, tool := range []string{"mkfs.xfs", "mkfs.ext4", "mount"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("pools are not tested: %v", err)
		}
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		t.Skipf("pools are not tested: %v", err)
	}
	folder := harness.Folder(t, false)
	image, dir := filepath.Join(folder, "disk"), filepath.Join(folder, "outer")
	for _, err := range []error{os.WriteFile(image, nil, 0o600), os.Truncate(image, bytes), os.Mkdir(dir, 0o755)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	command(t, "mkfs.ext4", "-q", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0", image)
	command(t, "mount", "-o", "loop", image, dir)
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Errorf("unmount the outer disk: %v", err)
		}
	})
	return dir
}

func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// poolService is a service with a pool on a disk. Whatever happens, nothing stays
// mounted: its databases are ended first.
func poolService(t *testing.T, disk string) (*harness.Service, volume.Pool) {
	t.Helper()
	s := harness.New(t, harness.Options{Data: filepath.Join(disk, "data"), Args: []string{"--log-level", "info"}})
	return s, unmounted(t, s)
}

// unmounted has the pool of a service unmounted when the test ends.
func unmounted(t *testing.T, s *harness.Service) volume.Pool {
	p := volume.Pool{Image: filepath.Join(s.Data, "pool.img"), Dir: filepath.Join(s.Data, "pool")}
	t.Cleanup(func() {
		if s.Running() {
			s.Kill(t)
		}
		if err := s.EndDatabases(context.Background()); err != nil {
			t.Errorf("end the databases: %v", err)
		}
		if p.Exists() {
			harness.Wait(t, settlePool, "the pool is unmounted", func() string {
				if err := p.Unmount(); err != nil {
					return err.Error()
				}
				return ""
			})
		}
	})
	return p
}

// settlePool is how long a change of the pool may take on a busy machine.
const settlePool = 20 * time.Second

// refused starts a service that must not come up, and returns what it said.
func refused(t *testing.T, s *harness.Service, words string, args ...string) {
	t.Helper()
	s.Launch(t, args...)
	if err := s.WaitEnd(t, settlePool); err == nil || !strings.Contains(s.Log.String(), words) {
		t.Errorf("the start with %v ended with %v and without %q:\n%s", args, err, words, s.Log.String())
	}
}

// pooled is an instance in a pool, with a client that knows what was acknowledged.
type pooled struct {
	*harness.Instance
	ledger *harness.Ledger
}

// TestPool takes one service with a pool, and a database of each engine in it, through
// what may befall it.
func TestPool(t *testing.T) {
	s, p := poolService(t, outerDisk(t, 3*poolGiB))
	killedInTheMaking(t, s, p)
	var all []pooled
	for _, i := range one(t, s) {
		ledger := harness.NewLedger(t, i)
		ledger.Write(t, 20)
		snapshotIsClone(t, i)
		all = append(all, pooled{i, ledger})
	}
	adopted(t, s, p, all)
	grows(t, s, p)
	fullDisk(t, s, p, all)
	shutDown(t, s, p, all)
	s.Terminate(t) // databases run on, so does the pool
	if mounted, err := p.Mounted(); err != nil || !mounted {
		t.Errorf("after the end of the service the pool is mounted: %v, %v", mounted, err)
	}
	if err := p.Unmount(); !errors.Is(err, volume.ErrPoolBusy) {
		t.Errorf("unmount under a running database: %v", err)
	}
	refused(t, s, "--pool loop")
	s.Start(t, "--pool", "loop", "--stop-databases-on-exit")
	for _, i := range all {
		i.WaitStatus(t, "available")
		i.ledger.Verify(t)
	}
	s.Terminate(t)
	if mounted, err := p.Mounted(); err != nil || mounted {
		t.Errorf("after a stop with the databases the pool is mounted: %v, %v", mounted, err)
	}
	out, err := exec.CommandContext(t.Context(), harness.Binary(t), "pool", "remove", "--data", s.Data).CombinedOutput()
	if err == nil || !strings.Contains(string(out), fmt.Sprintf("still has %d instances", len(all))) {
		t.Errorf("a pool with instances was removed: %v %s", err, out)
	}
}

// killedInTheMaking kills first starts at each state that can be seen from outside,
// and then demands a whole one without remains.
func killedInTheMaking(t *testing.T, s *harness.Service, p volume.Pool) {
	t.Helper()
	exists := func(pattern string) bool {
		found, _ := filepath.Glob(pattern)
		return len(found) > 0
	}
	for _, state := range []func() bool{
		func() bool { return exists(p.Image+".*.tmp") || p.Exists() },
		p.Exists,
		func() bool { mounted, err := p.Mounted(); return err == nil && mounted },
		func() bool { return exists(filepath.Join(s.Data, "instances")) },
	} {
		s.Launch(t, "--pool", "loop", "--pool-size", "1GiB")
		for s.Running() && !state() {
		}
		s.Kill(t)
	}
	s.Start(t, "--pool", "loop", "--pool-size", "1GiB")
	if exists(p.Image + ".*.tmp") {
		t.Error("an unfinished image is left")
	}
	if space, err := p.Space(); err != nil || space.SizeBytes != poolGiB {
		t.Errorf("the pool is %+v, %v", space, err)
	}
}

func snapshotIsClone(t *testing.T, i *harness.Instance) {
	t.Helper()
	_, err := i.Service.CreateDBSnapshot(t.Context(), &rds.CreateDBSnapshotInput{DBInstanceIdentifier: aws.String(i.Name), DBSnapshotIdentifier: aws.String("kept-" + i.Engine)})
	if err != nil {
		t.Fatal(err)
	}
	harness.Wait(t, settlePool, "the snapshot is a clone", func() string {
		if x := explained(t, i.Service, i.Name); x.State != kurabe.SnapshotAvailable || x.Facts.Method != kurabe.SnapshotCloned {
			return fmt.Sprintf("%+v", x)
		}
		return ""
	})
}

// adopted: a killed service finds pool and servers as they are.
func adopted(t *testing.T, s *harness.Service, p volume.Pool, all []pooled) {
	t.Helper()
	var servers []int
	for _, i := range all {
		servers = append(servers, i.Server(t))
	}
	s.Kill(t)
	if err := p.Unmount(); !errors.Is(err, volume.ErrPoolBusy) {
		t.Errorf("unmount under a running database: %v", err)
	}
	s.Start(t, "--pool", "loop")
	for n, i := range all {
		i.WaitStatus(t, "available")
		if now := i.Server(t); now != servers[n] {
			t.Errorf("the server of %s was replaced: %d, %d", i.Name, servers[n], now)
		}
	}
}

func grows(t *testing.T, s *harness.Service, p volume.Pool) {
	t.Helper()
	before, err := p.Space()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), harness.Binary(t), "pool", "grow", "512MiB", "--data", s.Data).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "cannot shrink") {
		t.Errorf("the pool shrank: %v %s", err, out)
	}
	command(t, harness.Binary(t), "pool", "grow", "2GiB", "--data", s.Data)
	after, err := p.Space()
	// Databases write meanwhile, so what they have taken is counted too.
	capacity := func(s volume.PoolSpace) int64 { return s.FreeBytes + s.UsedBytes + s.HeldBytes }
	if gained := capacity(after) - capacity(before); err != nil || after.SizeBytes != 2*poolGiB || gained < poolGiB*9/10 {
		t.Errorf("grown: %v, %d bytes more, of %+v", err, gained, after)
	}
}

// fullDisk fills the disk below the pool from outside. The pool then promises no more
// than the disk has, so databases find a full file system, never a device that fails;
// with room they come back by themselves, with everything that was acknowledged.
func fullDisk(t *testing.T, s *harness.Service, p volume.Pool, all []pooled) {
	t.Helper()
	space, err := p.Space()
	if err != nil {
		t.Fatal(err)
	}
	var writes []func() (ended <-chan struct{})
	for _, i := range all {
		i.ledger.Start(t)
		writes = append(writes, bulkWriter(t, i.Instance))
	}
	const left = 192 << 20
	other := filepath.Join(filepath.Dir(s.Data), "other")
	command(t, "fallocate", "-l", strconv.FormatInt(space.HostFreeBytes-left, 10), other)
	harness.Wait(t, settlePool, "the pool promises no more than the disk has", func() string {
		if space, err = p.Space(); err != nil || space.FreeBytes > space.HostFreeBytes {
			return fmt.Sprintf("%+v, %v", space, err)
		}
		return ""
	})
	for n, i := range all {
		ended := writes[n]()
		harness.Wait(t, settlePool, i.Name+" refuses what is written, or is stopped", func() string {
			select {
			case <-ended:
				return ""
			default:
				return "it takes everything"
			}
		})
	}
	harness.Wait(t, settlePool, "users are told", func() string {
		for _, i := range all {
			if aws.ToString(i.Describe(t).DBInstanceStatus) != "available" {
				return ""
			}
		}
		return "all are available"
	})
	if space, err = p.Space(); err != nil || space.HostFreeBytes <= 0 {
		t.Errorf("the disk was written full: %v, %v", space, err)
	}
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	harness.Wait(t, settlePool, "the pool has its room back", func() string {
		if space, err = p.Space(); err != nil || space.HeldBytes != 0 {
			return fmt.Sprintf("%+v, %v", space, err)
		}
		return ""
	})
	for _, i := range all {
		i.WaitStatus(t, "available")
		i.ledger.WaitMore(t, 20)
		i.ledger.Stop()
		i.ledger.Verify(t)
	}
}

// bulkWriter is a client that is ready to write, once it is told to, until it cannot.
func bulkWriter(t *testing.T, i *harness.Instance) (write func() (ended <-chan struct{})) {
	t.Helper()
	i.Query(t, bulk[i.Engine][0])
	session := i.Open(t)
	return func() <-chan struct{} {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for session.Exec(ctx, bulk[i.Engine][1]) == nil {
			}
		}()
		t.Cleanup(func() { cancel(); <-ended })
		return ended
	}
}

// shutDown has XFS end as at a write error of its log, or a cut of power, with its
// log not written. The next service mounts it anew, and nothing acknowledged is lost.
func shutDown(t *testing.T, s *harness.Service, p volume.Pool, all []pooled) {
	t.Helper()
	dir, err := os.Open(p.Dir)
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, i := range all {
		pids = append(pids, s.Processes(i.ID)...)
	}
	s.Kill(t)
	// XFS_IOC_GOINGDOWN, _IOR('X', 125, 4 bytes), without a flush.
	const goingDown, noFlush = 2<<30 | 4<<16 | 'X'<<8 | 125, 2
	if err := errors.Join(unix.IoctlSetPointerInt(int(dir.Fd()), goingDown, noFlush), dir.Close()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.Dir, "refused"), nil, 0o600); err == nil {
		t.Error("the file system was not shut down")
	}
	for _, pid := range pids {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	harness.Wait(t, settlePool, "the servers are gone", func() string {
		for _, pid := range pids {
			if _, err := os.Stat("/proc/" + strconv.Itoa(pid)); err == nil {
				return "process " + strconv.Itoa(pid)
			}
		}
		return ""
	})
	s.Start(t, "--pool", "loop")
	for _, i := range all {
		i.WaitStatus(t, "available")
		i.ledger.Verify(t)
	}
}
