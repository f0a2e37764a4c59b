package proxy

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"time"

	_ "github.com/go-sql-driver/mysql" // the driver of one client

	"kurabe/lab/stat"
	"kurabe/test/bench/bed"
	"kurabe/test/relay"
)

const (
	addedBar   = 0.03 // ms, of the median of one client
	sharedBar  = 0.8  // of the direct transactions, with 32 clients
	tableRows  = 10_000
	oneClients = 5_000 // queries of one client in a block
)

// measureMariaDB compares the proxy with a direct connection to one server.
func measureMariaDB(ctx context.Context, r *bed.Run) error {
	dir, err := os.MkdirTemp(r.Dir, "kurabe-proxy-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	server, stop, err := relay.StartMariaDB(ctx, dir)
	if errors.Is(err, relay.ErrNoMariaDB) {
		r.NotInstalled("proxy", "MariaDB")
		return nil
	}
	if err != nil {
		return err
	}
	defer stop()
	ours, end, err := startProxy(r.Self, ofMariaDB+server.String())
	if err != nil {
		return err
	}
	defer end()
	ways := []way{{"direct", server, 0}, ours}
	if _, err := sysbench(ctx, server, 1, 1, "disable", "prepare"); err != nil {
		return err
	}
	for _, prepared := range []bool{false, true} {
		if err := added(ctx, r, ways, prepared); err != nil {
			return err
		}
	}
	for _, mode := range []string{"disable", "auto"} {
		if err := shared(ctx, r, ways, mode); err != nil {
			return err
		}
	}
	return nil
}

// added is what the proxy adds to the median of one client.
func added(ctx context.Context, r *bed.Run, ways []way, prepared bool) error {
	of := map[string][]float64{}
	for range r.Blocks {
		for _, i := range r.Rng.Perm(len(ways)) {
			median, err := oneClient(ctx, ways[i].at, prepared)
			if err != nil {
				return err
			}
			of[ways[i].name] = append(of[ways[i].name], median)
			r.Out.Sample("proxy", map[string]any{"load": "MariaDB, one client", "way": ways[i].name, "prepared": prepared, "p50_ms": median})
		}
	}
	direct, proxied := stat.Median(of["direct"]), stat.Median(of["Kurabe's proxy"])
	what := "MariaDB, SELECT NOW(), 1 client: added to the median"
	if prepared {
		what = "MariaDB, prepared SELECT NOW(), 1 client: added to the median"
	}
	r.Out.Row(bed.Row{Bench: "proxy", What: what, Value: fmt.Sprintf("%.3f ms", proxied-direct), Bar: fmt.Sprintf("≤ %.2f ms", addedBar),
		Verdict: bed.Verdict(proxied-direct <= addedBar), Note: fmt.Sprintf("direct %.3f ms, through the proxy %.3f ms", direct, proxied)})
	return nil
}

// oneClient gives the median of a query, in milliseconds.
func oneClient(ctx context.Context, at netip.AddrPort, prepared bool) (float64, error) {
	db, err := sql.Open("mysql", fmt.Sprintf("%s:%s@tcp(%s)/shop", relay.User, relay.Password, at))
	if err != nil {
		return 0, err
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	query := func() *sql.Row { return conn.QueryRowContext(ctx, "SELECT NOW()") }
	if prepared {
		statement, err := conn.PrepareContext(ctx, "SELECT NOW()")
		if err != nil {
			return 0, err
		}
		defer statement.Close()
		query = func() *sql.Row { return statement.QueryRowContext(ctx) }
	}
	times := make([]float64, 0, oneClients)
	for range oneClients {
		var now string
		began := time.Now()
		if err := query().Scan(&now); err != nil {
			return 0, err
		}
		times = append(times, time.Since(began).Seconds()*1000)
	}
	slices.Sort(times)
	return times[len(times)/2], nil
}

// shared compares the transactions of 32 clients.
func shared(ctx context.Context, r *bed.Run, ways []way, mode string) error {
	of := map[string][]float64{}
	for range r.Blocks {
		for _, i := range r.Rng.Perm(len(ways)) {
			tps, err := sysbench(ctx, ways[i].at, 32, r.Seconds, mode, "run")
			if err != nil {
				return err
			}
			of[ways[i].name] = append(of[ways[i].name], tps)
			r.Out.Sample("proxy", map[string]any{"load": "MariaDB, 32 clients", "way": ways[i].name, "mode": mode, "tps": tps})
		}
	}
	ratio := stat.PairedRatio(of["Kurabe's proxy"], of["direct"], bed.SpeedLevel)
	what := "MariaDB, point selects, text, 32 clients: transactions, Kurabe / direct"
	if mode == "auto" {
		what = "MariaDB, point selects, prepared, 32 clients: transactions, Kurabe / direct"
	}
	r.Out.Row(bed.Row{Bench: "proxy", What: what, Value: bed.FormatRatio(ratio), Bar: fmt.Sprintf("≥ %.1f", sharedBar), Verdict: bed.Verdict(ratio.Estimate >= sharedBar),
		Note: fmt.Sprintf("direct %.0f/s, through the proxy %.0f/s", stat.Median(of["direct"]), stat.Median(of["Kurabe's proxy"]))})
	return nil
}

var sysbenchLine = regexp.MustCompile(`transactions:\s+\d+\s+\(([0-9.]+) per sec`)

// sysbench runs it, and gives transactions a second.
func sysbench(ctx context.Context, at netip.AddrPort, clients, seconds int, mode, what string) (float64, error) {
	out, err := exec.CommandContext(ctx, "sysbench", "oltp_point_select", "--mysql-host="+at.Addr().String(), "--mysql-port="+strconv.Itoa(int(at.Port())),
		"--mysql-user="+relay.User, "--mysql-password="+relay.Password, "--mysql-db=shop", "--tables=1", "--table-size="+strconv.Itoa(tableRows),
		"--threads="+strconv.Itoa(clients), "--time="+strconv.Itoa(seconds), "--db-ps-mode="+mode, what).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("sysbench %s on %s: %w: %s", what, at, err, out[max(0, len(out)-400):])
	}
	m := sysbenchLine.FindSubmatch(out)
	if m == nil {
		return 0, nil // it has prepared
	}
	return strconv.ParseFloat(string(m[1]), 64)
}
