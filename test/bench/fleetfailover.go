package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe"
	"kurabe/internal/engine/fake"
	"kurabe/internal/store"
	"kurabe/lab/stat"
)

const (
	// fleetPairs is how many instances in two zones lose their writer at once, and
	// fleetDecided within what time each of them must have another.
	fleetPairs   = 100
	fleetDecided = 2 * time.Second
	// fleetStrike has the fleet's service kill all writers, fleetStruck begins its answer:
	// a list of milliseconds, as JSON.
	fleetStrike = syscall.SIGUSR1
	fleetStruck = "fleet struck "
)

// fleetFailover has all writers of many pairs end in one moment, as the loss of a machine
// would have it, and sees when the record of each names another.
func (r *run) fleetFailover(ctx context.Context, f *fleetProcess, others int) error {
	count := pick(r, fleetPairs, fleetPairs/5)
	_, err := timed(ctx, fleetClients, count, func(ctx context.Context, n int) error {
		in := fleetInput(fmt.Sprintf("pair-%04d", n))
		in.MultiAZ = aws.Bool(true)
		_, err := f.api.CreateDBInstance(ctx, in)
		return err
	})
	if err != nil {
		return err
	}
	for round := range 3 {
		if err := errors.Join(f.settled(ctx, others+count), f.whole(ctx, count), f.cmd.Process.Signal(fleetStrike)); err != nil {
			return err
		}
		select {
		case answer := <-f.struck:
			if err := r.fleetDecided(answer, count, others, round); err != nil {
				return err
			}
		case <-f.exited:
			return errors.New("the fleet's service has ended")
		case <-time.After(fleetTime):
			return errors.New("the fleet's writers have no successors")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// whole waits until every pair has a standby that has every commit.
func (f *fleetProcess) whole(ctx context.Context, count int) error {
	deadline := time.Now().Add(fleetTime)
	for {
		whole := 0
		err := f.pages(ctx, func(out *rds.DescribeDBInstancesOutput) {
			for _, d := range out.DBInstances {
				if d.SecondaryAvailabilityZone != nil {
					whole++
				}
			}
		})
		if err != nil || whole == count {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d of %d pairs have a standby", whole, count)
		}
		if err := wait(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

func (r *run) fleetDecided(answer string, count, others, round int) error {
	var took []float64
	if err := json.Unmarshal([]byte(answer), &took); err != nil {
		return err
	}
	if len(took) != count {
		return fmt.Errorf("%d of %d writers were killed", len(took), count)
	}
	worst := slices.Max(took)
	r.out.sample("fleetFailover", map[string]any{"pairs": count, "others": others, "round": round, "decidedMs": took})
	r.out.row(row{Bench: "fleet", What: fmt.Sprintf("%d pairs of a fake engine lose their writer at once: the last has another after", count), Value: fmt.Sprintf("%.0f ms (p50 %.0f)", worst, stat.Median(took)),
		Bar: fmt.Sprintf("≤ %.0f s", fleetDecided.Seconds()), Verdict: verdict(worst <= float64(fleetDecided.Milliseconds())),
		Note: fmt.Sprintf("from the death to the record, seen in the service; round %d, beside %d other instances", round+1, others)})
	return nil
}

// strikeFleet is the other side: at each signal all writers of pairs end.
func strikeFleet(ctx context.Context, view *store.View, engine *fake.Engine, out io.Writer) {
	strikes := make(chan os.Signal, 1)
	signal.Notify(strikes, fleetStrike)
	defer signal.Stop(strikes)
	for {
		select {
		case <-ctx.Done():
			return
		case <-strikes:
			took, err := strikeOnce(ctx, view, engine)
			if err != nil {
				return
			}
			answer, err := json.Marshal(took)
			if err != nil {
				return
			}
			fmt.Fprintf(out, "%s%s\n", fleetStruck, answer)
		}
	}
}

func strikeOnce(ctx context.Context, view *store.View, engine *fake.Engine) (tookMs []float64, err error) {
	wake, stop := view.Subscribe()
	defer stop()
	writers := map[kurabe.InstanceID]kurabe.InstanceID{}
	for _, i := range view.Instances() {
		if i.Group != nil && len(i.Group.Sync) > 0 {
			writers[i.ID] = i.Group.Writer
		}
	}
	began := time.Now()
	for _, writer := range writers {
		engine.Crash(writer)
	}
	for len(writers) > 0 {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-wake:
		}
		for id, was := range writers {
			if i, ok := view.Instance(id); ok && i.Group != nil && i.Group.Writer != was {
				tookMs = append(tookMs, float64(time.Since(began).Microseconds())/1000)
				delete(writers, id)
			}
		}
	}
	return tookMs, nil
}

// listen takes what the fleet's service prints.
func (f *fleetProcess) listen(from io.Reader, ready chan<- string) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if url, ok := strings.CutPrefix(lines.Text(), fleetReady); ok {
			ready <- url
		}
		if answer, ok := strings.CutPrefix(lines.Text(), fleetStruck); ok {
			f.struck <- answer
		}
	}
}
