package proxy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"kurabe/lab/stat"
	"kurabe/test/bench/bed"
	"kurabe/test/relay"
)

const (
	scale    = 10
	cpuBar   = 1.1
	idleMany = 10_000
	idleBar  = 10 << 10
)

// load is one kind of work.
type load struct {
	what    string
	clients int
	args    []string
	direct  bool // PgBouncer cannot: compared with direct
}

func loads() (all []load) {
	for _, clients := range []int{1, 32, 200} {
		for _, script := range []struct {
			name string
			args []string
		}{{"select-only", []string{"-S"}}, {"TPC-B-like", nil}} {
			for _, mode := range []string{"simple", "prepared"} {
				all = append(all, load{fmt.Sprintf("%s, %s, %d clients", script.name, mode, clients), clients, append([]string{"-M", mode}, script.args...), mode == "prepared"})
			}
		}
	}
	return append(all, load{"a connection for each select, 8 clients", 8, []string{"-S", "-C"}, false})
}

// Measure compares the ways to one server.
func Measure(ctx context.Context, r *bed.Run) (failure error) {
	if err := measureMariaDB(ctx, r); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(r.Dir, "kurabe-proxy-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	server, err := relay.StartPostgres(ctx, dir, "shared_buffers = 512MB", "max_wal_size = 4GB")
	if errors.Is(err, relay.ErrNoPostgres) {
		r.NotInstalled("proxy", "PostgreSQL")
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { failure = errors.Join(failure, server.Stop(context.WithoutCancel(ctx), "immediate")) }()
	ours, end, err := startProxy(r.Self, server.Address.String())
	if err != nil {
		return err
	}
	defer end()
	ways := []way{{"direct", server.Address, 0}, ours}
	if _, err := os.Stat("/usr/sbin/pgbouncer"); err == nil {
		theirs, end, err := startPgBouncer(ctx, dir, server.Address)
		if err != nil {
			return err
		}
		defer end()
		ways = append(ways, theirs)
	} else {
		r.Out.Row(bed.Row{Bench: "proxy", What: "PgBouncer", Value: bed.NotMeasured, Note: "it is not installed: scripts/install.sh test"})
	}
	if _, _, err := pgbench(ctx, ways[0], []string{"-i", "-q", "-s", strconv.Itoa(scale)}); err != nil {
		return err
	}
	for _, l := range loads() {
		if err := compare(ctx, r, ways, l); err != nil {
			return err
		}
	}
	return idle(ctx, r, ours)
}

// measured is what one way has shown in each block.
type measured struct{ tps, cpu []float64 }

func compare(ctx context.Context, r *bed.Run, ways []way, l load) error {
	of := map[string]*measured{}
	for range r.Blocks {
		for _, i := range r.Rng.Perm(len(ways)) {
			w := ways[i]
			if w.name == "PgBouncer" && l.direct {
				continue
			}
			before, err := cpuOf(w)
			if err != nil {
				return err
			}
			tps, count, err := pgbench(ctx, w, append([]string{"-n", "-c", strconv.Itoa(l.clients), "-j", strconv.Itoa(min(l.clients, 2)), "-T", strconv.Itoa(r.Seconds)}, l.args...))
			if err != nil {
				return err
			}
			after, err := cpuOf(w)
			if err != nil {
				return err
			}
			m := of[w.name]
			if m == nil {
				m = &measured{}
				of[w.name] = m
			}
			m.tps, m.cpu = append(m.tps, tps), append(m.cpu, float64(max(after-before, time.Nanosecond).Nanoseconds())/1000/count)
			r.Out.Sample("proxy", map[string]any{"load": l.what, "way": w.name, "tps": tps, "cpu_us": m.cpu[len(m.cpu)-1]})
		}
	}
	ours, theirs := of["Kurabe's proxy"], of["PgBouncer"]
	note := ""
	for _, w := range ways {
		if m := of[w.name]; m != nil {
			note += fmt.Sprintf("%s %.0f/s %.1f µs; ", w.name, stat.Median(m.tps), stat.Median(m.cpu))
		}
	}
	if theirs == nil {
		ratio := stat.PairedRatio(ours.tps, of["direct"].tps, bed.SpeedLevel)
		r.Out.Row(bed.Row{Bench: "proxy", What: l.what + ": transactions, Kurabe / direct", Value: bed.FormatRatio(ratio), Note: note + "PgBouncer before 1.21 has no prepared statements in transaction pools"})
		return nil
	}
	ratio := stat.PairedRatio(ours.tps, theirs.tps, bed.SpeedLevel)
	r.Out.Row(bed.Row{Bench: "proxy", What: l.what + ": transactions, Kurabe / PgBouncer", Value: bed.FormatRatio(ratio), Bar: "≥ 1", Verdict: bed.Verdict(ratio.Estimate >= 1), Note: note})
	cpu := stat.PairedRatio(ours.cpu, theirs.cpu, bed.SpeedLevel)
	r.Out.Row(bed.Row{Bench: "proxy", What: l.what + ": processor time, Kurabe / PgBouncer", Value: bed.FormatRatio(cpu), Bar: fmt.Sprintf("≤ %.1f", cpuBar), Verdict: bed.Verdict(cpu.Estimate <= cpuBar)})
	return nil
}

func cpuOf(w way) (time.Duration, error) {
	if w.pid == 0 {
		return 0, nil
	}
	u, err := bed.ReadUsage(w.pid)
	return u.Cpu, err
}

var (
	tpsLine   = regexp.MustCompile(`(?m)^tps = ([0-9.]+) \(`)
	countLine = regexp.MustCompile(`(?m)^number of transactions actually processed: ([0-9]+)`)
)

// pgbench runs it on a way, and gives transactions a second, and all.
func pgbench(ctx context.Context, w way, args []string) (tps, count float64, err error) {
	cmd := exec.CommandContext(ctx, bed.Newest("pgbench"), args...)
	cmd.Env = append(os.Environ(), "PGHOST="+w.at.Addr().String(), "PGPORT="+strconv.Itoa(int(w.at.Port())), "PGUSER="+relay.User, "PGPASSWORD="+relay.Password, "PGDATABASE=postgres", "PGSSLMODE=disable")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, 0, fmt.Errorf("pgbench %v on %s: %w: %s", args, filepath.Base(w.name), err, out[max(0, len(out)-400):])
	}
	if m := tpsLine.FindSubmatch(out); m != nil {
		tps, _ = strconv.ParseFloat(string(m[1]), 64)
	}
	if m := countLine.FindSubmatch(out); m != nil {
		count, _ = strconv.ParseFloat(string(m[1]), 64)
	}
	return tps, max(count, 1), nil
}

// idle has clients log in and say nothing.
func idle(ctx context.Context, r *bed.Run, w way) error {
	before, err := bed.ReadUsage(w.pid)
	if err != nil {
		return err
	}
	many := bed.Pick(r, idleMany, idleMany/10)
	clients := make([]*pgconn.PgConn, 0, many)
	defer func() {
		for _, c := range clients {
			_ = c.Conn().Close()
		}
	}()
	config, err := pgconn.ParseConfig(relay.URL(w.at, "postgres"))
	if err != nil {
		return err
	}
	for range many {
		c, err := pgconn.ConnectConfig(ctx, config)
		if err != nil {
			return fmt.Errorf("client %d: %w", len(clients), err)
		}
		clients = append(clients, c)
	}
	after, err := bed.ReadUsage(w.pid)
	if err != nil {
		return err
	}
	each := (after.Resident - before.Resident) / int64(many)
	r.Out.Row(bed.Row{Bench: "proxy", What: fmt.Sprintf("memory of an idle client, %d of them", many), Value: fmt.Sprintf("%.1f KiB", float64(each)/1024),
		Bar: fmt.Sprintf("≤ %d KiB", idleBar>>10), Verdict: bed.Verdict(each <= idleBar), Note: fmt.Sprintf("the process has %d MiB", after.Resident>>20)})
	return nil
}
