package main

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
)

// pairMemory is the least memory of a server of the comparison: there are three of them,
// and the buffers of a quarter of it hold the data.
const pairMemory = 4 * kurabe.GiB

// pairClass is the smallest class that has all processors of this machine.
func pairClass(l *lab) string {
	levers := l.levers()
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
	*lab
	r         *run
	class     string
	two, one  *instance
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
func (r *run) standbyPrice(ctx context.Context, l *lab) (failure error) {
	b := &priceBed{lab: l, r: r, class: r.Class, with: "two zones", not: "one zone"}
	b.whole = func(ctx context.Context) error {
		return b.waitPair(ctx, b.two, func(types.DBInstance) string { return "" })
	}
	b.throughout = func(ctx context.Context, from time.Time) ([]string, error) { return b.events(ctx, b.two.name, from) }
	if b.class == "" {
		b.class = pairClass(l)
	}
	var err error
	one := order{name: "price-one", engine: postgres, class: b.class}
	if l.hosts != nil {
		one.zone = zonesApart[0]
	}
	if b.one, err = l.create(ctx, one); err != nil {
		return err
	}
	defer func() { failure = errors.Join(failure, b.drop(ctx, "price-one")) }()
	if b.two, err = l.createPair(ctx, order{name: "price-two", engine: postgres, class: b.class}); err != nil {
		return err
	}
	defer func() { failure = errors.Join(failure, b.drop(ctx, "price-two")) }()
	return b.prices(ctx, "failover", "price of the second server"+l.overHosts())
}

// prices fills both, and compares them with each number of clients.
func (b *priceBed) prices(ctx context.Context, bench, what string) error {
	r := b.r
	for _, i := range []*instance{b.one, b.two} {
		r.out.say("  filling %s (%s)", i.name, b.class)
		if err := i.target.pgbenchInit(ctx, true, pick(r, pgbenchScale, 10)); err != nil {
			return err
		}
	}
	for _, clients := range priceClients {
		w := workload{bench: bench, engine: postgres, what: fmt.Sprintf("%s, pgbench TPC-B-like, %d clients, TLS", what, clients),
			trial: trial{clients: clients, seconds: r.Seconds, tls: true}, load: target.pgbench}
		if clients == 1 {
			w.what = strings.Replace(w.what, "1 clients", "1 client", 1)
		}
		if err := b.compare(ctx, w); err != nil {
			return fmt.Errorf("%s: %w", w.what, err)
		}
	}
	return nil
}

func (b *priceBed) drop(ctx context.Context, name string) error {
	if ctx.Err() != nil {
		return nil // the whole lab goes
	}
	return b.remove(ctx, name)
}

// compare measures both once in each block, in random order.
func (b *priceBed) compare(ctx context.Context, w workload) error {
	r := b.r
	arms := []arm{{b.with, b.two.target}, {b.not, b.one.target}}
	if r.AA {
		arms = append(arms, arm{b.not + " again", b.one.target})
	}
	for _, a := range arms[:2] {
		if err := (pair{}).warm(ctx, w, a.target, pick(r, warmSeconds, 1)); err != nil {
			return err
		}
	}
	b.discarded = 0
	rates := make([][]float64, len(arms))
	for block := range r.Blocks {
		x := w.trial
		x.seed = r.rng.Uint64() // the same in a block: both do the same work
		for position, n := range r.rng.Perm(len(arms)) {
			got, err := b.trial(ctx, w, arms[n], x)
			if err != nil {
				return err
			}
			rates[n] = append(rates[n], got.PerSecond)
			r.out.sample("trial", map[string]any{"what": w.what, "block": block, "position": position, "arm": arms[n].name, "seed": x.seed, "seconds": x.seconds, "result": got})
		}
	}
	b.row(w, rates)
	return nil
}

// trialTries bounds how often one measurement is repeated.
const trialTries = 5

// trial measures one arm while the first is whole from before until after: without its
// standby, it would be measured as what it is compared with.
func (b *priceBed) trial(ctx context.Context, w workload, a arm, x trial) (result, error) {
	for range trialTries {
		if err := b.whole(ctx); err != nil {
			return result{}, err
		}
		for _, i := range []*instance{b.one, b.two} {
			if err := settle(ctx, i.target, b.home(i)); err != nil {
				return result{}, fmt.Errorf("checkpoint: %w", err)
			}
		}
		from := time.Now()
		got, err := w.load(a.target, ctx, x)
		if err != nil {
			return got, err
		}
		if b.after != nil && a.name == b.with {
			if err := b.after(ctx); err != nil {
				return got, err
			}
		}
		happened, err := b.throughout(ctx, from)
		if err != nil || len(happened) == 0 {
			return got, err
		}
		b.discarded++
		b.r.out.sample("discarded", map[string]any{"what": w.what, "arm": a.name, "events": happened, "result": got})
	}
	return result{}, fmt.Errorf("in none of %d measurements did %s have throughout what it is measured with", trialTries, b.two.name)
}

// events are those of an instance from a moment on.
func (l *lab) events(ctx context.Context, name string, from time.Time) (messages []string, err error) {
	out, err := l.api.DescribeEvents(ctx, &rds.DescribeEventsInput{
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

func (b *priceBed) row(w workload, rates [][]float64) {
	ratio := stat.PairedRatio(rates[0], rates[1], speedLevel)
	line := row{Bench: w.bench, What: w.what + ": " + b.with + " / " + b.not, Value: formatRatio(ratio)}
	line.Note = fmt.Sprintf("median %.0f against %.0f transactions/s; %s, %d blocks of %d s; all servers and the client share this machine's %d processors and its disk",
		stat.Median(rates[0]), stat.Median(rates[1]), b.class, b.r.Blocks, b.r.Seconds, runtime.NumCPU())
	if b.discarded > 0 {
		line.Note += fmt.Sprintf("; %d measurements were repeated, since something had happened to %s", b.discarded, b.two.name)
	}
	b.r.out.row(line)
	if b.r.AA {
		b.r.out.row(row{Bench: w.bench, What: w.what + ": " + b.not + " / " + b.not, Value: formatRatio(stat.PairedRatio(rates[2], rates[1], speedLevel)),
			Note: "the same instance twice: what the machine alone differs by"})
	}
}
