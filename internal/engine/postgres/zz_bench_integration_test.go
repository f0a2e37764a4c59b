//go:build integration

package postgres

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"kurabe/internal/engine/enginetest"
)

func sh(t *testing.T, env []string, args ...string) time.Duration {
	t.Helper()
	begin := time.Now()
	c := exec.Command(args[0], args[1:]...)
	c.Env = append(os.Environ(), env...)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v: %s", args, err, out)
	}
	return time.Since(begin)
}

func pct(t *testing.T, log string, from, to time.Time) string {
	var ls []float64
	files, _ := filepath.Glob(log + "*")
	for _, f := range files {
		h, _ := os.Open(f)
		for s := bufio.NewScanner(h); s.Scan(); {
			w := strings.Fields(s.Text())
			if len(w) < 6 {
				continue
			}
			sec, _ := strconv.ParseFloat(w[4], 64)
			us, _ := strconv.ParseFloat(w[5], 64)
			at := sec + us/1e6
			if at >= float64(from.UnixMicro())/1e6 && at < float64(to.UnixMicro())/1e6 {
				l, err := strconv.ParseFloat(w[2], 64)
				if err == nil {
					ls = append(ls, l/1000)
				}
			}
		}
		h.Close()
	}
	sort.Float64s(ls)
	if len(ls) == 0 {
		return "none"
	}
	q := func(p float64) float64 { return ls[int(float64(len(ls)-1)*p)] }
	return fmt.Sprintf("n=%d tps=%.0f p50=%.1f p95=%.1f p99=%.1f max=%.1f ms", len(ls), float64(len(ls))/to.Sub(from).Seconds(), q(.5), q(.95), q(.99), q(1))
}

func TestZZBench(t *testing.T) {
	root := os.Getenv("BENCH_ROOT")
	if root == "" {
		t.Skip()
	}
	s := setup(t, root)
	s.Settings["shared_buffers"] = "32768"
	s.Settings["max_connections"] = "60"
	s.Settings["max_wal_size"] = "4096"
	b := enginetest.NewBed(t, s)
	b.Satisfy(t)
	env := []string{"PGPASSWORD=" + b.Password.Reveal(), "PGHOST=" + b.Want.Address, "PGPORT=" + strconv.Itoa(b.Want.Port), "PGUSER=master", "PGDATABASE=shop", "PGSSLMODE=prefer"}
	t.Logf("init %v", sh(t, env, "pgbench", "-i", "-q", "-s", os.Getenv("SCALE")))
	b.MustQuery(t, "CHECKPOINT")
	sh(t, nil, "sync")
	load := func() string { x, _ := os.ReadFile("/proc/loadavg"); return string(x[:5]) }
	all := b.Snapshots()
	for n := range 3 {
		begin := time.Now()
		id, f := b.Take(t)
		took := time.Since(begin)
		begin = time.Now()
		if err := all.Seal(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		seal := time.Since(begin)
		begin = time.Now()
		r := b.Restore(t, id)
		t.Logf("idle #%d take %v (%s, %d MB, own %d MB) seal %v restore %v load %s", n, took, f.Method, f.SizeBytes>>20, f.OccupiedBytes>>20, seal, time.Since(begin), load())
		r.Discard(t)
		all.Remove(t.Context(), id)
	}
	other := filepath.Join(root, "other")
	for n := range 2 {
		sh(t, nil, "sync")
		t.Logf("cp -r + sync #%d %v load %s", n, sh(t, nil, "sh", "-c", "cp -r --reflink=never "+b.Home().DataDir()+" "+other+" && sync -f "+other), load())
		os.RemoveAll(other)
		t.Logf("pg_basebackup #%d %v load %s", n, sh(t, nil, "pg_basebackup", "-h", b.Home().RunDir(), "-p", strconv.Itoa(b.Want.Port), "-U", "rdsadmin", "-D", other, "-c", "fast", "-X", "stream"), load())
		os.RemoveAll(other)
	}
	for _, pace := range []int64{0, 100 << 20} {
		log := filepath.Join(root, fmt.Sprintf("log%d", pace))
		c := exec.Command("pgbench", "-n", "-c", "8", "-j", "2", "-R", os.Getenv("RATE"), "-T", os.Getenv("SECS"), "--log", "--log-prefix="+log)
		c.Env = append(os.Environ(), env...)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(15 * time.Second)
		snaps := b.Snapshots()
		snaps.BytesPerSecondMax = pace
		for n := range 2 {
			begin := time.Now()
			id, f, err := enginetest.TakeWith(t, b, snaps)
			if err != nil {
				t.Fatal(err)
			}
			end := time.Now()
			time.Sleep(3 * time.Second)
			t.Logf("load pace %d #%d take %v %s: before %s | during %s | load %s", pace>>20, n, end.Sub(begin), f.Method, pct(t, log, begin.Add(-8*time.Second), begin), pct(t, log, begin, end), load())
			begin = time.Now()
			snaps.Remove(t.Context(), id)
			time.Sleep(3 * time.Second)
		}
		if pace == 0 {
			begin := time.Now()
			sh(t, nil, "pg_basebackup", "-h", b.Home().RunDir(), "-p", strconv.Itoa(b.Want.Port), "-U", "rdsadmin", "-D", other, "-c", "fast", "-X", "stream")
			end := time.Now()
			time.Sleep(time.Second)
			t.Logf("load pg_basebackup %v during %s", end.Sub(begin), pct(t, log, begin, end))
			os.RemoveAll(other)
		}
		c.Wait()
	}
}
