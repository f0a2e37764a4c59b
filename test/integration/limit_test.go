//go:build integration

package integration

import (
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe/internal/harness"
)

// limits are what the kernel says of an instance's control group, on either
// version of control groups.
type limits struct{ cpu, memory, writeIOPS string }

func limitsOf(i *harness.Instance) limits {
	read := func(name string) string { return i.Service.GroupFile(i.ID, name) }
	l := limits{cpu: read("cpu.max"), memory: read("memory.max"), writeIOPS: read("io.max")}
	if quota := read("cpu.cfs_quota_us"); quota != "" {
		l.cpu = quota + " " + read("cpu.cfs_period_us")
	}
	if bytes := read("memory.limit_in_bytes"); bytes != "" {
		l.memory = bytes
	}
	if iops := read("blkio.throttle.write_iops_device"); iops != "" {
		_, l.writeIOPS, _ = strings.Cut(iops, " ")
	} else if _, after, ok := strings.Cut(l.writeIOPS, "wiops="); ok {
		l.writeIOPS, _, _ = strings.Cut(after, " ")
	}
	return l
}

func waitLimits(t *testing.T, i *harness.Instance, want limits) {
	t.Helper()
	harness.Wait(t, backTime, "limits of "+i.Name, func() string {
		if have := limitsOf(i); have != want {
			return "have " + strings.Join([]string{have.cpu, have.memory, have.writeIOPS}, ", ")
		}
		return ""
	})
}

func gib(n int64) string { return strconv.FormatInt(n<<30, 10) }

func TestLimitsAreInTheKernel(t *testing.T) {
	needRoot(t)
	s := shared(t)
	s.EachEngine(t, func(t *testing.T, engine string) {
		in := harness.Request("limited-"+engine, engine)
		in.StorageType, in.Iops, in.AllocatedStorage = aws.String("io1"), aws.Int32(1000), aws.Int32(100)
		i := s.MustCreate(t, in)
		waitLimits(t, i, limits{"200000 100000", gib(1), "1000"})
		server := i.Server(t)
		inside := false
		for pid := range strings.FieldsSeq(s.GroupFile(i.ID, "cgroup.procs")) {
			inside = inside || pid == strconv.Itoa(server)
		}
		if !inside {
			t.Errorf("server %d is not in its group: %s", server, s.GroupFile(i.ID, "cgroup.procs"))
		}
		// More operations: the server goes on.
		i.Modify(t, func(in *rds.ModifyDBInstanceInput) { in.Iops = aws.Int32(2000) })
		waitLimits(t, i, limits{"200000 100000", gib(1), "2000"})
		i.WaitStatus(t, "available")
		if now := i.Server(t); now != server {
			t.Errorf("other storage restarted the server: %d, now %d", server, now)
		}
		// A larger class, and back.
		for _, step := range []struct {
			class  string
			memory int64
		}{{"small", 2}, {"micro", 1}} {
			i.Modify(t, func(in *rds.ModifyDBInstanceInput) { in.DBInstanceClass = aws.String(harness.Class(step.class)) })
			waitLimits(t, i, limits{"200000 100000", gib(step.memory), "2000"})
			i.WaitStatus(t, "available")
		}
		i.Delete(t)
		nothingLeft(t, i)
	})
}

// hungry makes a session use more memory than a micro class has.
var hungry = map[string][]string{
	"postgres": {`SELECT cardinality(array_agg(repeat('x', 10000000) || n)) FROM generate_series(1, 200) n`},
	"mariadb": {
		`SET SESSION max_heap_table_size = 4294967296`,
		`CREATE TEMPORARY TABLE big (a char(255), b char(255), c char(255), d char(255), e char(255), f char(255), g char(255), h char(255)) ENGINE=MEMORY`,
		`INSERT INTO big SELECT seq, seq, seq, seq, seq, seq, seq, seq FROM seq_1_to_250000`,
	},
}

func TestMemoryOfOneInstanceIsItsOwn(t *testing.T) {
	needRoot(t)
	s := shared(t)
	s.EachEngine(t, func(t *testing.T, engine string) {
		i := s.Create(t, harness.Request("hungry-"+engine, engine))
		neighbour := s.Create(t, harness.Request("neighbour-"+engine, engine))
		i.WaitStatus(t, "available")
		neighbour.WaitStatus(t, "available")
		beside := connected(t, neighbour)
		ledger := harness.NewLedger(t, i)
		ledger.Write(t, 10)
		session := i.Open(t)
		var err error
		for _, statement := range hungry[engine] {
			if err = session.Exec(t.Context(), statement); err != nil {
				t.Logf("%s: %v", statement, err)
				break
			}
		}
		if err == nil {
			t.Error("more memory than the class has was given")
		}
		t.Log(i.WaitEvent(t, "exceeded the 1 GiB"))
		t.Logf("it serves again %v later", ledger.WaitBack(t))
		ledger.Verify(t)
		beside.untouched(t, "beside a neighbour without memory")
		i.WaitStatus(t, "available")
		i.Delete(t)
		neighbour.Delete(t)
	})
}
