package failover

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe"
	"kurabe/lab/stat"
	"kurabe/test/bench/bed"
)

// pairMemory is the least memory of a server of the comparison: there are three of them,
// and the buffers of a quarter of it hold the data.
const pairMemory = 4 * kurabe.GiB

// pairClass is the smallest class that has all processors of this machine.
func pairClass(l *site) string {
	levers := l.Levers()
	name, least := "db.local.medium", int64(0)
	for _, c := range kurabe.Classes() {
		if strings.HasPrefix(c.Name, "db.t3.") && c.CPUs == runtime.NumCPU() && c.MemoryBytes >= pairMemory &&
			(least == 0 || c.MemoryBytes < least) && levers.CPU.Enforceable && levers.Memory.Enforceable {
			name, least = c.Name, c.MemoryBytes
		}
	}
	return name
}

// priceClients are few enough for the wait to show in each, and enough to share it.
var priceClients = []int{1, 16}

// priceBed is an instance with something and one without, alike in all else.
type priceBed struct {
	*site
	r         *comparison
	class     string
	two, one  *bed.Instance
	with, not string // what they are called
	// whole waits until the first one has what it is to have, throughout looks whether it had
	// that since a moment, and after is what else there is to measure of it, nil for nothing.
	whole      func(context.Context) error
	throughout func(ctx context.Context, from time.Time) ([]string, error)
	after      func(context.Context) error
	// discarded are the measurements in which it did not have that throughout.
	discarded int
}

// standbyPrice is what the second server costs those who write: each commit waits for it.
func (r *comparison) standbyPrice(ctx context.Context, l *site) (failure error) {
	b := &priceBed{site: l, r: r, class: r.Class, with: "two zones", not: "one zone"}
	b.whole = func(ctx context.Context) error {
		return b.waitPair(ctx, b.two, func(types.DBInstance) string { return "" })
	}
	b.throughout = func(ctx context.Context, from time.Time) ([]string, error) { return b.events(ctx, b.two.Name, from) }
	if b.class == "" {
		b.class = pairClass(l)
	}
	var err error
	one := bed.Order{Name: "price-one", Engine: bed.Postgres, Class: b.class}
	if l.hosts != nil {
		one.Zone = zonesApart[0]
	}
	if b.one, err = l.Create(ctx, one); err != nil {
		return err
	}
	defer func() { failure = errors.Join(failure, b.drop(ctx, "price-one")) }()
	if b.two, err = l.createPair(ctx, bed.Order{Name: "price-two", Engine: bed.Postgres, Class: b.class}); err != nil {
		return err
	}
	defer func() { failure = errors.Join(failure, b.drop(ctx, "price-two")) }()
	return b.prices(ctx, "failover", "price of the second server"+l.overHosts())
}

// prices fills both, and compares them with each number of clients.
func (b *priceBed) prices(ctx context.Context, bench, what string) error {
	r := b.r
	for _, i := range []*bed.Instance{b.one, b.two} {
		r.Out.Say("  filling %s (%s)", i.Name, b.class)
		if err := i.Target.PgbenchInit(ctx, true, bed.Pick(r.Run, bed.PgbenchScale, 10)); err != nil {
			return err
		}
	}
	for _, clients := range priceClients {
		w := bed.Workload{Bench: bench, Engine: bed.Postgres, What: fmt.Sprintf("%s, pgbench TPC-B-like, %d clients, TLS", what, clients),
			Trial: bed.Trial{Clients: clients, Seconds: r.Seconds, Tls: true}, Load: bed.Target.Pgbench}
		if clients == 1 {
			w.What = strings.Replace(w.What, "1 clients", "1 client", 1)
		}
		if err := b.compare(ctx, w); err != nil {
			return fmt.Errorf("%s: %w", w.What, err)
		}
	}
	return nil
}

func (b *priceBed) drop(ctx context.Context, name string) error {
	if ctx.Err() != nil {
		return nil // the whole lab goes
	}
	return b.Remove(ctx, name)
}

// compare measures both once in each block, in random order.
func (b *priceBed) compare(ctx context.Context, w bed.Workload) error {
	r := b.r
	arms := []bed.Arm{{Name: b.with, Target: b.two.Target}, {Name: b.not, Target: b.one.Target}}
	if r.AA {
		arms = append(arms, bed.Arm{Name: b.not + " again", Target: b.one.Target})
	}
	for _, a := range arms[:2] {
		if err := w.Warm(ctx, a.Target, bed.Pick(r.Run, bed.WarmSeconds, 1)); err != nil {
			return err
		}
	}
	b.discarded = 0
	rates := make([][]float64, len(arms))
	for block := range r.Blocks {
		x := w.Trial
		x.Seed = r.Rng.Uint64() // the same in a block: both do the same work
		for position, n := range r.Rng.Perm(len(arms)) {
			got, err := b.trial(ctx, w, arms[n], x)
			if err != nil {
				return err
			}
			rates[n] = append(rates[n], got.PerSecond)
			r.Out.Sample("trial", map[string]any{"what": w.What, "block": block, "position": position, "arm": arms[n].Name, "seed": x.Seed, "seconds": x.Seconds, "result": got})
		}
	}
	b.row(w, rates)
	return nil
}

// trialTries bounds how often one measurement is repeated.
const trialTries = 5

// trial measures one arm while the first is whole from before until after: without its
// standby, it would be measured as what it is compared with.
func (b *priceBed) trial(ctx context.Context, w bed.Workload, a bed.Arm, x bed.Trial) (bed.Result, error) {
	for range trialTries {
		if err := b.whole(ctx); err != nil {
			return bed.Result{}, err
		}
		for _, i := range []*bed.Instance{b.one, b.two} {
			if err := bed.Settle(ctx, i.Target, b.Home(i)); err != nil {
				return bed.Result{}, fmt.Errorf("checkpoint: %w", err)
			}
		}
		from := time.Now()
		got, err := w.Load(a.Target, ctx, x)
		if err != nil {
			return got, err
		}
		if b.after != nil && a.Name == b.with {
			if err := b.after(ctx); err != nil {
				return got, err
			}
		}
		happened, err := b.throughout(ctx, from)
		if err != nil || len(happened) == 0 {
			return got, err
		}
		b.discarded++
		b.r.Out.Sample("discarded", map[string]any{"what": w.What, "arm": a.Name, "events": happened, "result": got})
	}
	return bed.Result{}, fmt.Errorf("in none of %d measurements did %s have throughout what it is measured with", trialTries, b.two.Name)
}

// events are those of an instance from a moment on.
func (l *site) events(ctx context.Context, name string, from time.Time) (messages []string, err error) {
	out, err := l.Api.DescribeEvents(ctx, &rds.DescribeEventsInput{
		SourceType: types.SourceTypeDbInstance, SourceIdentifier: aws.String(name), StartTime: aws.Time(from),
	})
	if err != nil {
		return nil, err
	}
	for _, e := range out.Events {
		messages = append(messages, aws.ToString(e.Message))
	}
	return messages, nil
}

func (b *priceBed) row(w bed.Workload, rates [][]float64) {
	ratio := stat.PairedRatio(rates[0], rates[1], bed.SpeedLevel)
	line := bed.Row{Bench: w.Bench, What: w.What + ": " + b.with + " / " + b.not, Value: bed.FormatRatio(ratio)}
	line.Note = fmt.Sprintf("median %.0f against %.0f transactions/s; %s, %d blocks of %d s; all servers and the client share this machine's %d processors and its disk",
		stat.Median(rates[0]), stat.Median(rates[1]), b.class, b.r.Blocks, b.r.Seconds, runtime.NumCPU())
	if b.discarded > 0 {
		line.Note += fmt.Sprintf("; %d measurements were repeated, since something had happened to %s", b.discarded, b.two.Name)
	}
	b.r.Out.Row(line)
	if b.r.AA {
		b.r.Out.Row(bed.Row{Bench: w.Bench, What: w.What + ": " + b.not + " / " + b.not, Value: bed.FormatRatio(stat.PairedRatio(rates[2], rates[1], bed.SpeedLevel)),
			Note: "the same instance twice: what the machine alone differs by"})
	}
}
