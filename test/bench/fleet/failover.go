package fleet

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe/lab/stat"
	"kurabe/test/bench/bed"
)

const (
	// fleetPairs is how many instances in two zones lose their writer with a host, and
	// fleetDecided within what time each of them must have another. There are twice as many:
	// of the others the host has the standby.
	fleetPairs   = 100
	fleetDecided = 2 * time.Second
	// fleetJoin has further hosts join the fleet's service, fleetStrike has it lose the one
	// with most writers. Its answers are lines: fleetJoined, or fleetStruck and a fleetLoss as
	// JSON, or fleetFailed and the reason.
	fleetJoin   = syscall.SIGUSR2
	fleetStrike = syscall.SIGUSR1
	fleetJoined = "fleet joined"
	fleetStruck = "fleet struck "
	fleetFailed = "fleet failed "
)

// fleetFailover loses a host that has the writers of many pairs and the standbys of as many
// others, and sees when the record of each of the former names another writer.
func fleetFailover(ctx context.Context, r *bed.Run, f *fleetProcess, others int) error {
	if answer, err := f.order(ctx, fleetJoin); err != nil {
		return err
	} else if answer != fleetJoined {
		return errors.New(answer)
	}
	count := bed.Pick(r, fleetPairs, fleetPairs/5)
	_, err := timed(ctx, fleetClients, 2*count, func(ctx context.Context, n int) error {
		in := fleetInput(fmt.Sprintf("pair-%04d", n))
		in.MultiAZ = aws.Bool(true)
		_, err := f.api.CreateDBInstance(ctx, in)
		return err
	})
	if err != nil {
		return err
	}
	var losses []fleetLoss
	for round := range r.Blocks {
		if err := errors.Join(f.settled(ctx, others+2*count), f.whole(ctx, 2*count)); err != nil {
			return err
		}
		if err := f.balance(ctx, others+2*count, count); err != nil {
			return err
		}
		answer, err := f.order(ctx, fleetStrike)
		if err != nil {
			return err
		}
		loss, err := readLoss(answer, count)
		if err != nil {
			return err
		}
		r.Out.Sample("fleetFailover", map[string]any{"others": others, "round": round, "loss": loss})
		r.Out.Say("  round %d, %s lost: the last of %d groups decided after %.0f ms, %.2f s after the loss", round+1, loss.Host, count, slices.Max(loss.DecidedMs), loss.TotalMs/1000)
		losses = append(losses, loss)
	}
	r.Out.Row(fleetRow(losses, others))
	return nil
}

// order sends a signal to the fleet's service, and waits for its answer.
func (f *fleetProcess) order(ctx context.Context, order os.Signal) (string, error) {
	if err := f.cmd.Process.Signal(order); err != nil {
		return "", err
	}
	select {
	case answer := <-f.answers:
		return answer, nil
	case <-f.exited:
		return "", errors.New("the fleet's service has ended")
	case <-time.After(fleetTime):
		return "", errors.New("the fleet's service does not answer")
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// balance has half of the pairs write in each zone: a loss has brought all of them into one.
func (f *fleetProcess) balance(ctx context.Context, all, half int) error {
	byZone := map[string][]string{}
	err := f.pages(ctx, func(out *rds.DescribeDBInstancesOutput) {
		for _, d := range out.DBInstances {
			if d.SecondaryAvailabilityZone != nil {
				zone := aws.ToString(d.AvailabilityZone)
				byZone[zone] = append(byZone[zone], aws.ToString(d.DBInstanceIdentifier))
			}
		}
	})
	if err != nil {
		return err
	}
	moving := surplus(byZone, half)
	_, err = timed(ctx, fleetClients, len(moving), func(ctx context.Context, n int) error {
		_, err := f.api.RebootDBInstance(ctx, &rds.RebootDBInstanceInput{DBInstanceIdentifier: aws.String(moving[n]), ForceFailover: aws.Bool(true)})
		return err
	})
	if err != nil || len(moving) == 0 {
		return err
	}
	return errors.Join(f.settled(ctx, all), f.whole(ctx, 2*half))
}

// surplus are those in each zone that are more than so many.
func surplus(byZone map[string][]string, most int) (names []string) {
	for _, list := range byZone {
		names = append(names, list[min(most, len(list)):]...)
	}
	slices.Sort(names)
	return names
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
		if err := bed.Wait(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

// readLoss reads the answer to a strike, of a host that had so many writers.
func readLoss(answer string, count int) (loss fleetLoss, err error) {
	text, ok := strings.CutPrefix(answer, fleetStruck)
	if !ok {
		return loss, fmt.Errorf("no host was lost: %s", strings.TrimPrefix(answer, fleetFailed))
	}
	if err := json.Unmarshal([]byte(text), &loss); err != nil {
		return loss, err
	}
	if len(loss.DecidedMs) != count {
		return loss, fmt.Errorf("%d of %d writers were lost with %s", len(loss.DecidedMs), count, loss.Host)
	}
	return loss, nil
}

// fleetRow is the figure of several rounds: in each the group counts that was decided last.
func fleetRow(losses []fleetLoss, others int) bed.Row {
	var last, middle, total, standbys []float64
	for _, l := range losses {
		last, middle = append(last, slices.Max(l.DecidedMs)), append(middle, stat.Median(l.DecidedMs))
		total, standbys = append(total, l.TotalMs/1000), append(standbys, float64(l.Standbys))
	}
	interval := stat.SignedRankInterval(last, bed.SpeedLevel)
	return bed.Row{Bench: "fleet", What: fmt.Sprintf("a host with the writers of %d pairs of a fake engine is lost: the last is decided after", len(losses[0].DecidedMs)),
		Value: fmt.Sprintf("%.0f ms [%.0f, %.0f]", stat.HodgesLehmann(last), interval.Low, interval.High),
		Bar:   fmt.Sprintf("≤ %.0f s", fleetDecided.Seconds()), Verdict: bed.AtMost(interval, float64(fleetDecided.Milliseconds())),
		Note: fmt.Sprintf("from when the planner may know it, 4.5 s after the host's last word, to the record that names another writer; worst %.0f ms, half of the pairs after %.0f; from the loss itself median %.2f s, worst %.2f s; %d rounds, in each the host also had the standbys of %.0f other pairs; beside %d other instances",
			slices.Max(last), stat.Median(middle), stat.Median(total), slices.Max(total), len(losses), slices.Min(standbys), others)}
}

// listen takes what the fleet's service prints.
func (f *fleetProcess) listen(from io.Reader, ready chan<- string) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if url, ok := strings.CutPrefix(line, fleetReady); ok {
			ready <- url
			continue
		}
		f.answers <- line
	}
}
