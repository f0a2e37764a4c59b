//go:build integration

package integration

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe/internal/harness"
	"kurabe/lab/dial"
	"kurabe/lab/probe"
	"kurabe/lab/study"
	"kurabe/lab/target"
)

// labRows is what fillLab writes.
const labRows = 1000

func fillLab(ctx context.Context, s dial.Server) error {
	session, err := dial.Open(ctx, s)
	if err != nil {
		return err
	}
	defer session.Close()
	values := make([]string, labRows)
	for n := range values {
		values[n] = fmt.Sprintf("(%d)", n)
	}
	return session.Exec(ctx, "CREATE TABLE lab_rows (n int PRIMARY KEY)", "INSERT INTO lab_rows VALUES "+strings.Join(values, ","))
}

// labStudy has a variant that is true by a parameter, and one that nobody can have.
func labStudy(engine string) *study.Study {
	parameters := map[string]string{"work_mem": "8192", "log_statement": "all"}
	if engine == study.MariaDB {
		parameters = map[string]string{"general_log": "1", "sort_buffer_size": "1048576"}
	}
	return &study.Study{
		Baseline: "plain",
		Variants: []study.Variant{
			{Name: "plain"},
			{Name: "set", Parameters: parameters},
			{Name: "nonsense", Parameters: map[string]string{"no_such_parameter": "1"}},
			{Name: "stream", Needs: "activity-stream"},
		},
	}
}

// labTrial leases a variant, finds the rows and changes them, so that the next lease
// shows whether it is fresh.
func labTrial(t *testing.T, on target.Target, name string, s *study.Study) *target.Lease {
	t.Helper()
	for _, v := range s.Variants {
		if v.Name != name {
			continue
		}
		begin := time.Now()
		lease, err := on.Lease(t.Context(), v)
		if err != nil {
			t.Fatalf("lease %s: %v", name, err)
		}
		t.Logf("%s: reset in %v", name, time.Since(begin).Round(time.Millisecond))
		session, err := dial.Open(t.Context(), lease.Server)
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		rows, err := session.Rows(t.Context(), "SELECT count(*) FROM lab_rows")
		if err != nil || rows[0][0] != strconv.Itoa(labRows) {
			t.Fatalf("%s begins with %v rows, %v", name, rows, err)
		}
		if err := session.Exec(t.Context(), "DELETE FROM lab_rows WHERE n < 10"); err != nil {
			t.Fatal(err)
		}
		return lease
	}
	t.Fatalf("no variant %s", name)
	return nil
}

// watch cuts one phase in which a few rows are written.
func watch(t *testing.T, lease *target.Lease) map[string]float64 {
	t.Helper()
	p, err := probe.Start(t.Context(), probe.Options{Server: lease.Direct, PIDs: lease.PIDs})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	session, err := dial.Open(t.Context(), lease.Server)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	for n := range 200 {
		if err := session.Exec(t.Context(), fmt.Sprintf("INSERT INTO lab_rows VALUES (%d)", labRows+n)); err != nil {
			t.Fatal(err)
		}
	}
	var totals map[string]float64
	harness.Wait(t, time.Minute, "the sampler has looked", func() string {
		cut, _, err := p.Cut()
		if err != nil {
			t.Fatal(err)
		}
		if totals == nil {
			totals = cut
		}
		if cut["wait_samples"] == 0 {
			return "no sample yet"
		}
		return ""
	})
	t.Logf("probes %v, notes %q", totals, p.Notes())
	for _, name := range []string{"wal_bytes", "context_switches", "processes_end", "probe_s"} {
		if totals[name] <= 0 {
			t.Errorf("no %s in %v (%q)", name, totals, p.Notes())
		}
	}
	return totals
}

func TestLabOnTheService(t *testing.T) {
	onceIsEnough(t)
	s := shared(t)
	s.EachEngine(t, func(t *testing.T, engine string) {
		options := target.Options{Engine: engine, Endpoint: s.URL(), CredentialsFile: filepath.Join(s.Data, "credentials"), Class: harness.Class("micro"), StorageGiB: 20}
		on, err := target.RDS(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			if err := on.Close(ended); err != nil {
				t.Error(err)
			}
			nothingOfTheLab(t, s)
		}()
		definition := labStudy(engine)
		unsupported, err := on.Check(t.Context(), definition)
		if err != nil || len(unsupported) != 2 || unsupported["nonsense"] == "" || unsupported["stream"] == "" {
			t.Fatalf("unsupported %v, %v", unsupported, err)
		}
		nothingOfTheLab(t, s)
		if err := on.Prepare(t.Context(), definition, fillLab); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"plain", "set", "plain"} {
			lease := labTrial(t, on, name, definition)
			watch(t, lease)
			if err := lease.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		said, err := target.CleanRDS(t.Context(), options)
		if err != nil || len(said) == 0 || strings.Contains(strings.Join(said, " "), "removed") {
			t.Errorf("cleaning beside a living study: %q, %v", said, err)
		}
	})
}

func nothingOfTheLab(t *testing.T, s *harness.Service) {
	t.Helper()
	groups, err := s.DescribeDBParameterGroups(t.Context(), &rds.DescribeDBParameterGroupsInput{})
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range groups.DBParameterGroups {
		if strings.HasPrefix(*g.DBParameterGroupName, "kurabe-lab-") {
			t.Errorf("left parameter group %s", *g.DBParameterGroupName)
		}
	}
	snapshots, err := s.DescribeDBSnapshots(t.Context(), &rds.DescribeDBSnapshotsInput{})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range snapshots.DBSnapshots {
		if strings.HasPrefix(*x.DBSnapshotIdentifier, "kurabe-lab-") {
			t.Errorf("left snapshot %s", *x.DBSnapshotIdentifier)
		}
	}
	instances, err := s.DescribeDBInstances(t.Context(), &rds.DescribeDBInstancesInput{})
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range instances.DBInstances {
		if strings.HasPrefix(*i.DBInstanceIdentifier, "kurabe-lab-") {
			t.Errorf("left instance %s", *i.DBInstanceIdentifier)
		}
	}
}

func TestLabOnAPrivateService(t *testing.T) {
	folder := harness.Folder(t, false)
	on, err := target.Private(t.Context(), target.Options{Engine: study.Postgres, Program: harness.Binary(t), Folder: folder, Class: harness.Class("micro")})
	if err != nil {
		t.Fatal(err)
	}
	definition := labStudy(study.Postgres)
	if err := on.Prepare(t.Context(), definition, fillLab); err != nil {
		t.Error(err)
	} else if err := labTrial(t, on, "set", definition).Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := on.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// plain is a server that no service manages, with a superuser.
func plain(t *testing.T, engine string) string {
	t.Helper()
	dir := harness.Folder(t, false)
	account := map[string]string{study.Postgres: "postgres", study.MariaDB: "mysql"}[engine]
	var as *syscall.SysProcAttr
	if harness.Root() {
		u, err := user.Lookup(account)
		if err != nil {
			t.Skipf("no user %s: %v", account, err)
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		if err := os.Chown(dir, uid, gid); err != nil {
			t.Fatal(err)
		}
		as = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}
	port := unusedPort(t)
	data := filepath.Join(dir, "data")
	build, serve, address := plainCommands(t, engine, dir, data, port)
	build.SysProcAttr, serve.SysProcAttr = as, as
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build.Args, err, out)
	}
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		serve.Process.Signal(syscall.SIGTERM)
		serve.Wait()
	})
	harness.Wait(t, time.Minute, "a plain server answers", func() string {
		on, err := target.URL(t.Context(), address, target.Options{})
		if err != nil {
			return err.Error()
		}
		on.Close(t.Context())
		return ""
	})
	return address
}

func unusedPort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func plainCommands(t *testing.T, engine, dir, data string, port int) (build, serve *exec.Cmd, address string) {
	t.Helper()
	if engine == study.MariaDB {
		build = exec.Command("mariadb-install-db", "--no-defaults", "--datadir="+data, "--auth-root-authentication-method=normal", "--skip-test-db")
		serve = exec.Command("/usr/sbin/mariadbd", "--no-defaults", "--datadir="+data, "--socket="+filepath.Join(dir, "s"), "--bind-address=127.0.0.1", "--port="+strconv.Itoa(port))
		// A server that starts removes what it takes for old temporary tables from its
		// folder for them, which by default it shares with every other one.
		build.Env = append(os.Environ(), "TMPDIR="+dir)
		serve.Env = build.Env
		return build, serve, fmt.Sprintf("mariadb://root@127.0.0.1:%d/", port)
	}
	programs, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(programs) == 0 {
		t.Skip("no PostgreSQL of Debian's")
	}
	password := filepath.Join(dir, "password")
	if err := os.WriteFile(password, []byte(harness.Password), 0o644); err != nil {
		t.Fatal(err)
	}
	build = exec.Command(programs[0], "-D", data, "-U", "boss", "-A", "scram-sha-256", "--pwfile="+password, "-N")
	serve = exec.Command(filepath.Join(filepath.Dir(programs[0]), "postgres"), "-D", data, "-p", strconv.Itoa(port), "-k", dir)
	return build, serve, fmt.Sprintf("postgres://boss:%s@127.0.0.1:%d/", url.QueryEscape(harness.Password), port)
}

func TestLabOnAURL(t *testing.T) {
	for _, engine := range []string{study.Postgres, study.MariaDB} {
		t.Run(engine, func(t *testing.T) {
			if _, err := os.Stat("/usr/sbin/mariadbd"); engine == study.MariaDB && err != nil {
				t.Skip(err)
			}
			address := plain(t, engine)
			on, err := target.URL(t.Context(), address, target.Options{})
			if err != nil {
				t.Fatal(err)
			}
			about, err := on.About(t.Context())
			if err != nil || about.Engine != engine {
				t.Fatalf("%+v, %v", about, err)
			}
			definition := labStudy(engine)
			definition.Variants = append(definition.Variants,
				study.Variant{Name: "static", Parameters: map[string]string{map[string]string{study.Postgres: "shared_buffers", study.MariaDB: "back_log"}[engine]: "64"}},
				study.Variant{Name: "class", Class: "db.t3.micro"})
			if engine == study.Postgres {
				definition.Variants[1].Parameters["checkpoint_timeout"] = "1h" // the whole server's
			}
			unsupported, err := on.Check(t.Context(), definition)
			if err != nil || len(unsupported) != 4 || unsupported["plain"]+unsupported["set"] != "" {
				t.Fatalf("unsupported %v, %v", unsupported, err)
			}
			t.Logf("unsupported: %q", unsupported)
			if err := on.Prepare(t.Context(), definition, fillLab); err != nil {
				t.Fatal(err)
			}
			tried(t, on, definition, engine)
			said, err := target.CleanURL(t.Context(), address, target.Options{})
			if err != nil || !strings.Contains(strings.Join(said, " "), "its lab runs") {
				t.Errorf("cleaning beside a living study: %q, %v", said, err)
			}
			if err := on.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if said, err := target.CleanURL(t.Context(), address, target.Options{Others: true}); err != nil || len(said) > 0 {
				t.Errorf("left %q, %v", said, err)
			}
		})
	}
}

// tried runs trials and demands that a variant's parameters hold for its own only.
func tried(t *testing.T, on target.Target, definition *study.Study, engine string) {
	t.Helper()
	parameter := map[string]string{study.Postgres: "checkpoint_timeout", study.MariaDB: "general_log"}[engine]
	values := map[string]string{}
	for _, name := range []string{"plain", "set", "plain"} {
		lease := labTrial(t, on, name, definition)
		watch(t, lease)
		if had, again := values[name]; again && had != lease.Settings[parameter] {
			t.Errorf("%s: %s is %q, and was %q", name, parameter, lease.Settings[parameter], had)
		}
		values[name] = lease.Settings[parameter]
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if values["plain"] == values["set"] {
		t.Errorf("%s is %q in both variants", parameter, values["set"])
	}
}
