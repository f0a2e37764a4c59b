//go:build integration

package mariadb

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/engine/enginetest"
)

func sh(t *testing.T, args ...string) time.Duration {
	t.Helper()
	begin := time.Now()
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		t.Errorf("%v: %v: %s", args, err, out)
	}
	return time.Since(begin)
}

func TestZZBench(t *testing.T) {
	root := os.Getenv("BENCH_ROOT")
	if root == "" {
		t.Skip()
	}
	s := setup(t, root)
	s.Settings["innodb_buffer_pool_size"] = "402653184"
	s.Settings["innodb_log_file_size"] = "1073741824"
	s.Settings["max_connections"] = "60"
	b := enginetest.NewBed(t, s)
	b.Satisfy(t)
	begin := time.Now()
	b.MustQuery(t, "CREATE TABLE big (id INT PRIMARY KEY, pad CHAR(200)) AS SELECT seq AS id, repeat(md5(seq),6) AS pad FROM seq_1_to_"+os.Getenv("ROWS"))
	t.Logf("init %v", time.Since(begin))
	base := []string{"oltp_update_index", "--mysql-host=" + b.Want.Address, "--mysql-port=" + strconv.Itoa(b.Want.Port), "--mysql-user=master", "--mysql-password=" + b.Password.Reveal(), "--mysql-db=shop", "--tables=1", "--table-size=200000"}
	sh(t, append([]string{"sysbench"}, append(base, "prepare")...)...)
	sh(t, "sync")
	load := func() string { x, _ := os.ReadFile("/proc/loadavg"); return string(x[:5]) }
	all := b.Snapshots()
	take := func(what string, restore bool) {
		begin := time.Now()
		id, f := b.Take(t)
		took := time.Since(begin)
		begin = time.Now()
		if err := all.Seal(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		seal := time.Since(begin)
		if restore {
			begin = time.Now()
			r := b.Restore(t, id)
			t.Logf("restore %v", time.Since(begin))
			r.Discard(t)
		}
		t.Logf("%s take %v (%s, %d MB, own %d MB) seal %v load %s", what, took, f.Method, f.SizeBytes>>20, f.OccupiedBytes>>20, seal, load())
		all.Remove(t.Context(), id)
	}
	take("idle", true)
	take("idle", true)
	other := filepath.Join(root, "other")
	alone := func(what string) {
		d := sh(t, "mariadb-backup", "--no-defaults", "--backup", "--host="+b.Want.Address, "--port="+strconv.Itoa(b.Want.Port), "--user=master", "--password="+b.Password.Reveal(), "--datadir="+b.Home().DataDir(), "--target-dir="+other, "--parallel=2")
		p := sh(t, "mariadb-backup", "--no-defaults", "--prepare", "--use-memory=256M", "--target-dir="+other)
		t.Logf("%s mariadb-backup alone %v prepare %v load %s", what, d, p, load())
		os.RemoveAll(other)
	}
	alone("idle")
	sh(t, "sync")
	t.Logf("cp -r + sync %v", sh(t, "sh", "-c", "cp -r --reflink=never "+b.Home().DataDir()+" "+other+" && sync -f "+other))
	os.RemoveAll(other)
	c := exec.Command("sysbench", append(base, "--threads=8", "--rate=500", "--time=60", "--report-interval=1", "--percentile=99", "run")...)
	c.Stdout, c.Stderr = os.Stdout, os.Stdout
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(10 * time.Second)
	println("TAKE")
	take("load", true)
	println("TAKEN")
	alone("load")
	println("ALONE DONE")
	c.Wait()
	b.Want.Goal = kurabe.GoalStopped
	b.Satisfy(t)
	take("stopped", true)
}
