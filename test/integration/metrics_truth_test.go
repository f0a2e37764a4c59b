//go:build integration

package integration

import (
	"context"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"kurabe/internal/cgroup"
	"kurabe/internal/harness"
)

const (
	truthSessions = 8
	truthTime     = 80 * time.Second
	truthIOPS     = 1000
	countedShare  = .02 // of what the kernel has counted
	loadShare     = .05 // of the known load
)

// throttled is how an engine reads one page after another that is in no cache, until a time of its
// own clock.
var throttled = map[string]struct {
	parameters map[string]string
	fill, read string
}{
	"postgres": {map[string]string{"shared_buffers": "2048", "track_io_timing": "1"},
		"CREATE TABLE big WITH (autovacuum_enabled = off) AS SELECT repeat('x', 1900) AS pad FROM generate_series(1, 120000)",
		`DO $$ DECLARE found text; place tid; BEGIN WHILE clock_timestamp() < to_timestamp(%d) LOOP
			place := format('(%%s,1)', floor(random() * 29000)); SELECT pad INTO found FROM big WHERE ctid = place; END LOOP; END $$`},
	"mariadb": {map[string]string{"innodb_buffer_pool_size": "16777216"},
		"CREATE TABLE big (id INT PRIMARY KEY, pad CHAR(190) CHARACTER SET latin1, more VARCHAR(1800) CHARACTER SET latin1) SELECT seq AS id, REPEAT('x', 190) AS pad, REPEAT('y', 1700) AS more FROM seq_1_to_120000",
		`BEGIN NOT ATOMIC DECLARE n INT; WHILE UNIX_TIMESTAMP(SYSDATE(6)) < %d DO
			SET n = 1 + FLOOR(RAND() * 120000); SELECT LENGTH(more) INTO n FROM big WHERE id = n; END WHILE; END`},
}

// A known number of sessions reads against the limit of IOPS: the metrics say how many there are,
// and what the kernel has counted. PostgreSQL's own clock tells how many wait for the disk.
func TestLoadAgainstTheLimitIsTrue(t *testing.T) {
	needRoot(t)
	s := shared(t)
	device, err := cgroup.DeviceOf(s.Data)
	if lever := cgroup.Detect("/sys/fs/cgroup", "kurabe-"+s.HostID()).IO; err != nil || !lever.Enforceable {
		t.Skip("no limit of IOPS can be enforced: ", lever.Reason, err)
	}
	s.EachEngine(t, func(t *testing.T, engine string) { loadIsTrue(t, s, engine, device) })
}

func loadIsTrue(t *testing.T, s *harness.Service, engine string, device cgroup.Device) {
	how := throttled[engine]
	i := throttledInstance(t, s, engine, how.parameters)
	defer i.AskDelete(t)
	must(t, i.Open(t).Exec(t.Context(), how.fill))
	own := func() float64 {
		if engine != "postgres" {
			return 0
		}
		ms, err := strconv.ParseFloat(i.Query(t, "SELECT blk_read_time FROM pg_stat_database WHERE datname = current_database()"), 64)
		if err != nil {
			t.Fatal(err)
		}
		return ms / 1000
	}
	waited := own()
	began := time.Now()
	until := began.Add(truthTime).Truncate(time.Second)
	run, stop := context.WithDeadline(t.Context(), until.Add(time.Minute))
	defer stop()
	var sessions errgroup.Group
	for range truthSessions {
		one := i.Open(t)
		sessions.Go(func() error { return one.Exec(run, fmt.Sprintf(how.read, until.Unix())) })
	}
	from, to := time.Now().Add(5*time.Second).Truncate(time.Second), until.Add(-2*time.Second)
	dropCaches(t, i, from)
	before := readsOf(t, s, i, device)
	dropCaches(t, i, to)
	after := readsOf(t, s, i, device)
	dropCaches(t, i, until)
	must(t, sessions.Wait())
	lived := truthSessions * time.Since(began).Seconds()
	waited = own() - waited
	counted := float64(after.ops-before.ops) / after.at.Sub(before.at).Seconds()
	got, n := meanOf(t, i, "ReadIOPS", before.at, after.at)
	t.Logf("ReadIOPS %.1f in %d samples, the kernel's %.1f", got, n, counted)
	if math.Abs(got-counted) > countedShare*counted {
		t.Errorf("ReadIOPS is %v, the kernel has counted %v", got, counted)
	}
	got, n = meanOf(t, i, "DBLoad", from, to)
	t.Logf("DBLoad %.2f in %d samples", got, n)
	if math.Abs(got-truthSessions) > loadShare*truthSessions {
		t.Errorf("DBLoad is %v of %d sessions", got, truthSessions)
	}
	got, n = meanOf(t, i, "DBLoadNonCPU", from, to)
	if engine != "postgres" {
		t.Logf("DBLoadNonCPU %.2f in %d samples", got, n)
		return
	}
	// Sessions wait together, so a sample is one of a coin that falls with this share.
	share := waited / lived
	most := truthSessions * (loadShare*share + 3*math.Sqrt(share*(1-share)/float64(n)))
	t.Logf("DBLoadNonCPU %.2f in %d samples, by the server's clock %.2f ± %.2f", got, n, truthSessions*share, most)
	if math.Abs(got-truthSessions*share) > most {
		t.Errorf("DBLoadNonCPU is %v, the server's clock says %v", got, truthSessions*share)
	}
}

// throttledInstance has little memory for pages, and keeps its load.
func throttledInstance(t *testing.T, s *harness.Service, engine string, parameters map[string]string) *harness.Instance {
	in := harness.Request("true-"+engine, engine)
	makeParameterGroup(t, s, *in.DBInstanceIdentifier, engine)
	for name, value := range parameters {
		setStatic(t, s, *in.DBInstanceIdentifier, name, value)
	}
	in.StorageType, in.Iops, in.AllocatedStorage = aws.String("io1"), aws.Int32(truthIOPS), aws.Int32(100)
	in.DBParameterGroupName, in.EnablePerformanceInsights = in.DBInstanceIdentifier, aws.Bool(true)
	return s.MustCreate(t, in)
}

// dropCaches has the kernel forget the pages of an instance's large files until a time.
func dropCaches(t *testing.T, i *harness.Instance, until time.Time) {
	t.Helper()
	var large []*os.File
	err := filepath.WalkDir(i.Home(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // files come and go
		}
		if info, err := d.Info(); err != nil || info.Size() < 64<<20 || !info.Mode().IsRegular() {
			return nil
		}
		f, err := os.Open(path)
		if err == nil {
			large = append(large, f)
		}
		return err
	})
	if err != nil || len(large) == 0 {
		t.Fatal("no large files: ", err)
	}
	for time.Now().Before(until) {
		for _, f := range large {
			if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	for _, f := range large {
		f.Close()
	}
}

type readCount struct {
	ops int64
	at  time.Time
}

// readsOf are the read requests that the kernel has counted of an instance.
func readsOf(t *testing.T, s *harness.Service, i *harness.Instance, device cgroup.Device) readCount {
	t.Helper()
	group, found := cgroup.Detect("/sys/fs/cgroup", "kurabe-"+s.HostID()).Find(i.ID)
	if !found {
		t.Fatal("it has no control group")
	}
	stats, err := group.Stats()
	if err != nil {
		t.Fatal(err)
	}
	return readCount{stats.IO[device].ReadOps, time.Now()}
}

// meanOf is the mean of a metric's samples between two times, and how many there are.
func meanOf(t *testing.T, i *harness.Instance, metric string, from, to time.Time) (mean float64, n int) {
	t.Helper()
	for at, value := range seconds(t, cloudWatch(i.Service), metric, i.Name, "Average") {
		if at > from.Unix()+1 && at < to.Unix() {
			mean, n = mean+value, n+1
		}
	}
	if n < int(to.Sub(from).Seconds()/2) {
		t.Fatalf("%d samples of %s from %s to %s", n, metric, from, to)
	}
	return mean / float64(n), n
}
