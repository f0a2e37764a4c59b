package labproof

import (
	"context"
	"fmt"
	"slices"

	"kurabe/lab/stat"
	"kurabe/test/bench/bed"
)

const capacityBar = 100_000 // requests a second

// proveCapacity measures what the generator can send when the server costs nothing, and
// how late it wakes.
func proveCapacity(ctx context.Context, r *bed.Run) error {
	count := fmt.Sprintf("-test.count=%d", bed.Pick(r, 5, 1))
	found, err := goBenchmarks(ctx, r, "lab/load", "^BenchmarkCapacity$/^closed$|^BenchmarkCapacity$/^open$/^200k$|^BenchmarkNullPostgres$", "-test.benchtime=1x", count)
	if err != nil {
		return noGo(r, "capacity of the generator", err)
	}
	for _, c := range []struct{ name, what, note string }{
		{"Capacity/closed", "generator, 2 clients in a closed loop, null server", "every part of a run but the server"},
		{"Capacity/open/200k", "generator, 200,000 arrivals a second, null server", "latency from the schedule, 16 clients"},
		{"NullPostgres", "generator and a null PostgreSQL over loopback", "both in one process, so half of its processor time is the server's"},
	} {
		rates := found[c.name]["requests/s"]
		if len(rates) == 0 {
			return fmt.Errorf("benchmark %s of lab/load reported no rate", c.name)
		}
		line := bed.Row{Bench: "lab", What: c.what, Value: fmt.Sprintf("%.0f a second (%.0f to %.0f)", stat.Median(rates), slices.Min(rates), slices.Max(rates)), Note: c.note}
		if c.name != "NullPostgres" {
			line.Bar, line.Verdict = fmt.Sprintf("≥ %d", capacityBar), bed.Verdict(slices.Min(rates) >= capacityBar)
		}
		if lag := found[c.name]["lag-p99-ms"]; len(lag) > 0 {
			line.Note += fmt.Sprintf("; %.0f skipped, 99 %% of the others were sent at most %.2f ms late", slices.Max(found[c.name]["skipped"]), stat.Median(lag))
		}
		r.Out.Row(line)
	}
	return proveAlarm(ctx, r, count)
}

func proveAlarm(ctx context.Context, r *bed.Run, count string) error {
	found, err := goBenchmarks(ctx, r, "lab/load", "^BenchmarkAlarm$", bed.Pick(r, "-test.benchtime=2s", "-test.benchtime=100x"), count)
	if err != nil {
		return noGo(r, "how late the generator wakes", err)
	}
	for _, c := range []struct{ name, what, note string }{
		{"Alarm/loop", "the generator's sleep of 1 ms ends late by, where latency is asked for", "a timer of the kernel, waited for in the loop of all clients"},
		{"Alarm/poller", "the same beyond 5,000 a second", "a timer of the kernel, waited for as a socket is"},
		{"Alarm/time.Sleep", "the Go runtime's sleep of 1 ms ends late by", "which the generator does not use"},
	} {
		middle, tail := found[c.name]["late-p50-µs"], found[c.name]["late-p99-µs"]
		if len(middle) == 0 || len(tail) == 0 {
			return fmt.Errorf("benchmark %s of lab/load reported nothing", c.name)
		}
		r.Out.Row(bed.Row{Bench: "lab", What: c.what, Value: fmt.Sprintf("p50 %.0f µs, p99 %.0f µs", stat.Median(middle), stat.Median(tail)), Note: c.note})
	}
	return nil
}
