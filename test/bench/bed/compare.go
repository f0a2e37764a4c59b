package bed

import (
	"context"
	"fmt"
	"kurabe"
	"kurabe/lab/stat"
	"path/filepath"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"
)

const (
	SpeedClients = 8
	SpeedLevel   = 0.95
	// PgbenchScale is 750 MB, which the shared buffers of a class of 8 GiB hold.
	PgbenchScale = 50
	// speedMemory is the least memory of a compared instance, so that the data
	// fits and the disk does not decide.
	speedMemory = 8 * kurabe.GiB
	WarmSeconds = 5

	SmallClass = "db.t3.micro"
	localClass = "db.local.micro" // where the machine cannot enforce limits
)

// Workload is one comparison.
type Workload struct {
	Bench, Engine, What string
	Trial               Trial
	Load                func(Target, context.Context, Trial) (Result, error)
	Note                string
}

// MicroClass is the smallest class on offer.
func (l *Lab) MicroClass() string {
	if levers := l.Levers(); levers.CPU.Enforceable && levers.Memory.Enforceable {
		return SmallClass
	}
	return localClass
}

// WholeClass is a class that holds all processors of the machine back from
// nobody: the quota of one with fewer would be measured instead of the service.
func (l *Lab) WholeClass(cpus int) string {
	levers := l.Levers()
	for _, family := range []string{"t3", "m5"} {
		for _, c := range kurabe.Classes() {
			if strings.HasPrefix(c.Name, "db."+family+".") && c.CPUs == cpus && c.MemoryBytes >= speedMemory &&
				levers.CPU.Enforceable && levers.Memory.Enforceable {
				return c.Name
			}
		}
	}
	return "db.local.large"
}

// GroupWithoutTLS makes a parameter group that admits clients with TLS and
// without; all else is the default.
func (l *Lab) GroupWithoutTLS(ctx context.Context, engine string) (string, error) {
	const name = "bench-plain"
	major, _, _ := strings.Cut(l.Engines[engine], ".")
	_, err := l.Api.CreateDBParameterGroup(ctx, &rds.CreateDBParameterGroupInput{
		DBParameterGroupName: aws.String(name), DBParameterGroupFamily: aws.String(engine + major), Description: aws.String("TLS on or off"),
	})
	if err != nil {
		if ErrorCode(err) == "DBParameterGroupAlreadyExists" {
			err = nil
		}
		return name, err
	}
	_, err = l.Api.ModifyDBParameterGroup(ctx, &rds.ModifyDBParameterGroupInput{DBParameterGroupName: aws.String(name), Parameters: []types.Parameter{
		{ParameterName: aws.String("rds.force_ssl"), ParameterValue: aws.String("0"), ApplyMethod: types.ApplyMethodImmediate},
	}})
	return name, err
}

// Warm brings the data into memory and does a first run that does not count.
func (w Workload) Warm(ctx context.Context, t Target, seconds int) error {
	if t.Engine == Postgres {
		err := t.Exec(ctx, "CREATE EXTENSION IF NOT EXISTS pg_prewarm",
			"SELECT pg_prewarm(oid::regclass) FROM pg_class WHERE relkind IN ('r', 'i') AND relnamespace = 'public'::regnamespace")
		if err != nil {
			return fmt.Errorf("warm up: %w", err)
		}
	}
	x := w.Trial
	x.Seconds = seconds
	_, err := w.Load(t, ctx, x)
	return err
}

// Settle writes out what a server still has to write, so that it does not do so
// under the other's measurement. As the service it comes in by the socket.
func Settle(ctx context.Context, t Target, home string) error {
	if t.Engine != Postgres {
		return nil
	}
	dsn := fmt.Sprintf("host=%s port=%d user=rdsadmin dbname=postgres", filepath.Join(home, "run"), t.Port)
	return postgresExec(ctx, dsn, "CHECKPOINT")
}

// Way is a way to run one server; Do runs a load in it.
type Way struct {
	Name string
	Do   func(run func() error) error
}

// Alternate runs a workload at one server in two ways, in random order in each block, and reports the rates of the
// first way to those of the second.
func (l *Lab) Alternate(ctx context.Context, r *Run, i *Instance, w Workload, ways [2]Way, bar float64, note string) error {
	if err := w.Warm(ctx, i.Target, Pick(r, WarmSeconds, 1)); err != nil {
		return err
	}
	var rates [len(ways)][]float64
	for block := range r.Blocks {
		x := w.Trial
		x.Seed = r.Rng.Uint64()
		for position, n := range r.Rng.Perm(len(ways)) {
			if err := Settle(ctx, i.Target, l.Home(i)); err != nil {
				return fmt.Errorf("checkpoint: %w", err)
			}
			var got Result
			if err := ways[n].Do(func() (err error) { got, err = w.Load(i.Target, ctx, x); return err }); err != nil {
				return err
			}
			rates[n] = append(rates[n], got.PerSecond)
			r.Out.Sample("trial", map[string]any{"what": w.What, "block": block, "position": position, "arm": ways[n].Name, "seed": x.Seed, "seconds": x.Seconds, "result": got})
		}
	}
	ratio := stat.PairedRatio(rates[0], rates[1], SpeedLevel)
	r.Out.Row(Row{
		Bench: w.Bench, What: fmt.Sprintf("%s on %s: %s / %s", w.What, w.Engine, ways[0].Name, ways[1].Name), Value: FormatRatio(ratio), Bar: fmt.Sprintf("≥ %.2f", bar),
		Verdict: AtLeast(ratio.Interval, bar),
		Note:    fmt.Sprintf("median %.0f against %.0f transactions/s; %d blocks of %d s; %s", stat.Median(rates[0]), stat.Median(rates[1]), r.Blocks, r.Seconds, note),
	})
	return nil
}

// Arm is one of the servers of a comparison.
type Arm struct {
	Name   string
	Target Target
}

// FormatRatio is the estimate with its interval.
func FormatRatio(x stat.Ratio) string {
	if x.Interval.Level == 0 {
		return fmt.Sprintf("%.3f (no interval from %d blocks)", x.Estimate, x.Pairs)
	}
	return fmt.Sprintf("%.3f [%.3f, %.3f]", x.Estimate, x.Interval.Low, x.Interval.High)
}
