package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe/lab/stat"
	"kurabe/test/bench/bed"
)

const (
	fleetCount    = 1000
	fleetPage     = 100
	fleetRequests = 1000
	fleetClients  = 4
	describeBar   = 20.0 // milliseconds, p99
	createBarMS   = 25.0
	// fleetTime bounds the making of the fleet, and each wait for it to settle.
	fleetTime = 4 * time.Minute
)

// fleetProcess is the service with instances that exist only in the store and in
// the memory of a fake engine; a process of its own, so that the client's work is
// not counted to it.
type fleetProcess struct {
	api     *rds.Client
	cmd     *exec.Cmd
	exited  chan struct{}
	answers chan string // to orders
}

// Measure measures the API over a large store.
func Measure(ctx context.Context, r *bed.Run) (failure error) {
	dir, err := os.MkdirTemp(r.Dir, "kurabe-bench-")
	if err != nil {
		return err
	}
	defer func() {
		if !r.Keep {
			failure = errors.Join(failure, os.RemoveAll(dir))
		}
	}()
	// The engine's tools, which list the parameters, run as their own user.
	if err := os.Chmod(dir, 0o711); err != nil {
		return err
	}
	f, err := startFleet(ctx, r.Self, dir)
	if err != nil {
		return err
	}
	defer func() { failure = errors.Join(failure, f.stop()) }()
	count := bed.Pick(r, fleetCount, fleetCount/5)
	if err := makeFleet(ctx, r, f, count); err != nil {
		return err
	}
	for _, clients := range []int{1, fleetClients} {
		if err := describePages(ctx, r, f, clients, count); err != nil {
			return err
		}
	}
	for _, clients := range []int{1, fleetClients} {
		if err := acceptCreates(ctx, r, f, clients, count); err != nil {
			return err
		}
	}
	if err := fleetIdle(ctx, r, f, count); err != nil {
		return err
	}
	return fleetFailover(ctx, r, f, count)
}

func startFleet(ctx context.Context, self, dir string) (*fleetProcess, error) {
	log, err := os.Create(filepath.Join(dir, "fleet.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), ServerEnv+"="+dir)
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	f := &fleetProcess{cmd: cmd, exited: make(chan struct{}), answers: make(chan string, 1)}
	ready := make(chan string, 1)
	go func() {
		f.listen(out, ready)
		_ = cmd.Wait() // the log says why
		close(f.exited)
	}()
	select {
	case url := <-ready:
		f.api = bed.NewClient(url, fleetSecret)
		return f, nil
	case <-f.exited:
		text, _ := os.ReadFile(log.Name())
		return nil, fmt.Errorf("the fleet's service ended: %s", text)
	case <-time.After(bed.ReadyTime):
		err = errors.New("the fleet's service is not ready")
	case <-ctx.Done():
		err = ctx.Err()
	}
	return nil, errors.Join(err, f.stop())
}

func (f *fleetProcess) stop() error {
	if err := f.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-f.exited:
		return nil
	case <-time.After(bed.StopTime):
		return errors.Join(errors.New("the fleet's service did not end"), f.cmd.Process.Kill())
	}
}

// timed runs calls on several clients and returns how long each took, in
// milliseconds. After the first error no more are made.
func timed(ctx context.Context, clients, calls int, call func(ctx context.Context, n int) error) ([]float64, error) {
	took := make([]float64, calls)
	var next atomic.Int64
	var wait sync.WaitGroup
	errs := make([]error, clients)
	for c := range clients {
		wait.Go(func() {
			for n := int(next.Add(1)) - 1; n < calls; n = int(next.Add(1)) - 1 {
				began := time.Now()
				if errs[c] = call(ctx, n); errs[c] != nil {
					next.Store(int64(calls))
					return
				}
				took[n] = float64(time.Since(began).Microseconds()) / 1000
			}
		})
	}
	wait.Wait()
	return took, errors.Join(errs...)
}

func fleetInput(name string) *rds.CreateDBInstanceInput {
	return bed.Order{Name: name, Engine: bed.Postgres, Class: bed.SmallClass}.Input()
}

// makeFleet fills the store through the API and waits until all are available.
func makeFleet(ctx context.Context, r *bed.Run, f *fleetProcess, count int) error {
	began := time.Now()
	_, err := timed(ctx, fleetClients, count, func(ctx context.Context, n int) error {
		_, err := f.api.CreateDBInstance(ctx, fleetInput(fmt.Sprintf("fleet-%04d", n)))
		return err
	})
	if err != nil {
		return err
	}
	accepted := time.Since(began)
	if err := f.settled(ctx, count); err != nil {
		return err
	}
	r.Out.Sample("fleet", map[string]any{"instances": count, "acceptedSeconds": accepted.Seconds(), "availableSeconds": time.Since(began).Seconds()})
	r.Out.Row(bed.Row{Bench: "fleet", What: fmt.Sprintf("%d instances of a fake engine: created and available", count), Value: fmt.Sprintf("%.1f s", time.Since(began).Seconds()),
		Note: fmt.Sprintf("all accepted after %.1f s, %d clients", accepted.Seconds(), fleetClients)})
	return nil
}

// pages walks over all instances.
func (f *fleetProcess) pages(ctx context.Context, see func(*rds.DescribeDBInstancesOutput)) error {
	in := &rds.DescribeDBInstancesInput{MaxRecords: aws.Int32(fleetPage)}
	for {
		out, err := f.api.DescribeDBInstances(ctx, in)
		if err != nil {
			return err
		}
		see(out)
		if in.Marker = out.Marker; in.Marker == nil {
			return nil
		}
	}
}

// markers are where the pages of the whole fleet start.
func (f *fleetProcess) markers(ctx context.Context) ([]*string, error) {
	markers := []*string{nil}
	err := f.pages(ctx, func(out *rds.DescribeDBInstancesOutput) {
		if out.Marker != nil {
			markers = append(markers, out.Marker)
		}
	})
	return markers, err
}

// settled waits until exactly count instances exist and all are available.
func (f *fleetProcess) settled(ctx context.Context, count int) error {
	deadline := time.Now().Add(fleetTime)
	for {
		states := map[string]int{}
		err := f.pages(ctx, func(out *rds.DescribeDBInstancesOutput) {
			for _, d := range out.DBInstances {
				states[aws.ToString(d.DBInstanceStatus)]++
			}
		})
		if err != nil {
			return err
		}
		if len(states) <= 1 && states["available"] == count {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("waiting for %d instances, there are %v", count, states)
		}
		if err := bed.Wait(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

// emptyPage is an answer without instances.
var emptyPage = []byte("<DescribeDBInstancesResponse><DescribeDBInstancesResult><DBInstances/></DescribeDBInstancesResult></DescribeDBInstancesResponse>")

// countPage checks an answer and puts an empty one in its place.
func countPage(answer []byte) ([]byte, error) {
	if n := bytes.Count(answer, []byte("<DBInstance>")); n != fleetPage {
		return nil, fmt.Errorf("a page has %d instances", n)
	}
	return emptyPage, nil
}

// client is a client whose requests are timed.
func (f *fleetProcess) client(transport *bed.LastByte) *rds.Client {
	return rds.New(f.api.Options(), func(o *rds.Options) { o.HTTPClient = &http.Client{Transport: transport} })
}

// describePages asks for pages of 100, and for a few more that the SDK parses.
func describePages(ctx context.Context, r *bed.Run, f *fleetProcess, clients, count int) error {
	markers, err := f.markers(ctx)
	if err != nil {
		return err
	}
	markers = markers[:count/fleetPage]
	transport := bed.NewLastByte()
	transport.Instead = countPage
	timedAPI, plainAPI := f.client(transport), f.client(bed.NewLastByte())
	ask := func(api *rds.Client) func(context.Context, int) error {
		return func(ctx context.Context, n int) error {
			_, err := api.DescribeDBInstances(ctx, &rds.DescribeDBInstancesInput{MaxRecords: aws.Int32(fleetPage), Marker: markers[n%len(markers)]})
			return err
		}
	}
	if _, err := timed(ctx, clients, 50, ask(timedAPI)); err != nil { // connections, caches
		return err
	}
	transport.Take()
	if _, err := timed(ctx, clients, bed.Pick(r, fleetRequests, fleetRequests/5), ask(timedAPI)); err != nil {
		return err
	}
	parsed, err := timed(ctx, 1, bed.Pick(r, fleetRequests/5, 50), ask(plainAPI))
	if err != nil {
		return err
	}
	latencies(r, latency{what: "DescribeDBInstances, a page of 100", clients: clients, count: count, bar: describeBar, sdk: parsed, how: ", one after the other"}, transport)
	return nil
}

// latency is the outcome for one operation.
type latency struct {
	what           string
	clients, count int
	bar            float64
	sdk            []float64 // milliseconds, with signing and parsing
	how            string    // how those were taken, if otherwise
}

func latencies(r *bed.Run, l latency, transport *bed.LastByte) {
	took, size := transport.Take()
	r.Out.Sample("latency", map[string]any{"what": l.what, "clients": l.clients, "instances": l.count, "answerBytes": size, "lastByteMs": took, "sdkMs": l.sdk})
	who := fmt.Sprintf("%d at a time", l.clients)
	if l.clients == 1 {
		who = "one after the other"
	}
	p99 := stat.Quantile(took, .99)
	r.Out.Row(bed.Row{Bench: "fleet", What: fmt.Sprintf("%s, %d in the store, %s: p99", l.what, l.count, who), Value: fmt.Sprintf("%.1f ms (p50 %.1f)", p99, stat.Median(took)),
		Bar: fmt.Sprintf("≤ %.0f ms", l.bar), Verdict: bed.Verdict(p99 <= l.bar),
		Note: fmt.Sprintf("to the last byte of an answer of %d KiB, %d requests, slowest %.1f ms; with signing and parsing in the SDK%s: p50 %.1f, p99 %.1f ms",
			size>>10, len(took), slices.Max(took), l.how, stat.Median(l.sdk), stat.Quantile(l.sdk, .99))})
}

// acceptCreates creates batches on top of the fleet and removes each batch again,
// so that every create meets a store of about the same size.
func acceptCreates(ctx context.Context, r *bed.Run, f *fleetProcess, clients, count int) error {
	const batch = 100
	transport := bed.NewLastByte()
	api := f.client(transport)
	var all []float64
	for b := range bed.Pick(r, fleetRequests, fleetRequests/5) / batch {
		name := func(n int) string { return fmt.Sprintf("more-%d-%03d", b, n) }
		took, err := timed(ctx, clients, batch, func(ctx context.Context, n int) error {
			_, err := api.CreateDBInstance(ctx, fleetInput(name(n)))
			return err
		})
		if err != nil {
			return err
		}
		all = append(all, took...)
		if err := f.settled(ctx, count+batch); err != nil {
			return err
		}
		_, err = timed(ctx, fleetClients, batch, func(ctx context.Context, n int) error {
			_, err := f.api.DeleteDBInstance(ctx, &rds.DeleteDBInstanceInput{DBInstanceIdentifier: aws.String(name(n)), SkipFinalSnapshot: aws.Bool(true)})
			return err
		})
		if err != nil {
			return err
		}
		if err := f.settled(ctx, count); err != nil {
			return err
		}
	}
	latencies(r, latency{what: "CreateDBInstance accepted", clients: clients, count: count, bar: createBarMS, sdk: all}, transport)
	return nil
}

// fleetIdle is what the service costs with a large store and nobody asking. It
// has no bar.
func fleetIdle(ctx context.Context, r *bed.Run, f *fleetProcess, count int) error {
	if err := bed.Wait(ctx, 2*time.Second); err != nil {
		return err
	}
	over := bed.Pick(r, 35*time.Second, 5*time.Second) // every worker looks once in 30 s
	before, err := bed.ReadUsage(f.cmd.Process.Pid)
	if err != nil {
		return err
	}
	if err := bed.Wait(ctx, over); err != nil {
		return err
	}
	after, err := bed.ReadUsage(f.cmd.Process.Pid)
	if err != nil {
		return err
	}
	share := (after.Cpu - before.Cpu).Seconds() / over.Seconds()
	r.Out.Row(bed.Row{Bench: "fleet", What: fmt.Sprintf("%d in the store, idle", count), Value: fmt.Sprintf("%.2f %% of a core, %d MiB resident", 100*share, after.Resident>>20),
		Note: fmt.Sprintf("over %.0f s, fake engine", over.Seconds())})
	r.Out.Sample("fleetIdle", map[string]any{"cpuShare": share, "residentBytes": after.Resident, "peakBytes": after.Peak})
	return nil
}
