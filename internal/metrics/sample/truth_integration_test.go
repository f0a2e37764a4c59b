//go:build integration

package sample_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kurabe/internal/cgroup"
	"kurabe/internal/metrics/sample"
)

// truthShare is how far the samples of a run may be from what the load knows of itself.
const truthShare = .02

// realGroup is a group of this kernel.
func realGroup(t *testing.T) cgroup.Group {
	levers := cgroup.Detect("/sys/fs/cgroup", fmt.Sprintf("kurabe-test-%d", os.Getpid()))
	group, err := levers.Ensure("truth", cgroup.Limits{})
	if err != nil || !levers.CPU.Enforceable || !levers.IO.Enforceable {
		t.Skip("no control groups here: ", err)
	}
	t.Cleanup(func() {
		if err := group.Remove(context.Background()); err != nil {
			t.Error(err)
		}
		for _, file := range group.ProcsFiles() {
			_ = syscall.Rmdir(filepath.Dir(filepath.Dir(file)))
		}
	})
	return group
}

// The load knows what it uses: the kernel tells its parent its CPU time, and each of its requests
// is of one size and goes past the page cache. The samples add up to that.
func TestTruth(t *testing.T) {
	group := realGroup(t)
	dir := t.TempDir()
	device, err := cgroup.DeviceOf(dir)
	if err != nil {
		t.Skip(err)
	}
	const block, requests = 64 << 10, 2000
	load := exec.Command("sh", "-c", fmt.Sprintf(`for f in %s; do echo $$ > "$f"; done
		dd if=/dev/zero of=file bs=%d count=%d oflag=direct 2>log && dd if=file of=/dev/null bs=%d iflag=direct 2>log || { cat log >&2; exit 1; }
		n=0; while [ $n -lt 2000000 ]; do n=$((n+1)); done; rm file`, strings.Join(group.ProcsFiles(), " "), block, requests, block))
	load.Dir, load.Stderr = dir, os.Stderr
	read := func(at time.Duration) sample.Reading {
		disks, err := cgroup.Disks()
		if err != nil {
			t.Fatal(err)
		}
		stats, err := group.Stats()
		if err != nil {
			t.Fatal(err)
		}
		return sample.Reading{Of: "truth", At: at, Values: sample.Group{Stats: stats, Device: device, Disk: disks[device], CPUs: 1}.Values()}
	}
	began := time.Now()
	before := read(0)
	if err := load.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- load.Wait() }()
	sums, over := map[string]float64{}, false
	for !over {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatal(err)
			}
			over = true
			time.Sleep(sample.ElapsedMin)
		case <-time.After(time.Second):
		}
		now := read(time.Since(began))
		for _, s := range sample.Between(before, now) {
			if s.Value < 0 || math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
				t.Errorf("%+v", s)
			}
			sums[s.Metric] += s.Value * (now.At - before.At).Seconds()
		}
		before = now
	}
	const bytes = block * requests
	cpu := (load.ProcessState.UserTime() + load.ProcessState.SystemTime()).Seconds() * 100
	for metric, want := range map[string]float64{
		"CPUUtilization": cpu, "ReadThroughput": bytes, "WriteThroughput": bytes, "ReadIOPS": requests, "WriteIOPS": requests,
	} {
		t.Logf("%s: %.0f, the load's own %.0f", metric, sums[metric], want)
		if got := sums[metric]; math.Abs(got-want) > truthShare*want {
			t.Errorf("%s adds up to %v, the load used %v", metric, got, want)
		}
	}
}
