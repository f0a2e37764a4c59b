package cgroup_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kurabe/internal/cgroup"
	"kurabe/internal/proc"
)

func TestMain(m *testing.M) {
	if proc.IsShim() {
		proc.ShimMain()
	}
	os.Exit(m.Run())
}

// realGroup is a group of this kernel, with the limits given.
func realGroup(t *testing.T, limits cgroup.Limits) cgroup.Group {
	t.Helper()
	parent := fmt.Sprintf("kurabe-test-%d", os.Getpid())
	levers := cgroup.Detect("/sys/fs/cgroup", parent)
	g, err := levers.Ensure(t.Name(), limits)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := g.Remove(context.Background()); err != nil {
			t.Error(err)
		}
		for _, file := range g.ProcsFiles() {
			_ = syscall.Rmdir(filepath.Dir(filepath.Dir(file)))
		}
	})
	return g
}

func start(t *testing.T, g cgroup.Group, script string) proc.Process {
	t.Helper()
	dir := t.TempDir()
	p, err := proc.Start(context.Background(), proc.Spec{
		Name: "test", Argv: []string{"/bin/sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: dir,
		LockFile: dir + "/lock", RecordFile: dir + "/record", StdoutStderr: dir + "/log", Cgroups: g.ProcsFiles(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := proc.KillSurvivors(context.Background(), dir); err != nil {
			t.Error(err)
		}
		p.Alive() // reaps
	})
	return p
}

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

func stats(t *testing.T, g cgroup.Group) cgroup.Stats {
	t.Helper()
	s, err := g.Stats()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCPUIsThrottled(t *testing.T) {
	g := realGroup(t, cgroup.Limits{CPUQuota: 0.05})
	p := start(t, g, "while :; do :; done")
	eventually(t, "throttled periods", func() bool {
		s := stats(t, g)
		return s.PeriodsThrottled >= 3 && s.CPUThrottled > 0 && s.CPUUsage > 0
	})
	if pids, err := g.Pids(); err != nil || len(pids) != 1 || pids[0] != p.PID {
		t.Errorf("pids = %v, %v", pids, err)
	}
	if err := g.Update(cgroup.Limits{}); err != nil {
		t.Fatal(err)
	}
	used := stats(t, g).CPUUsage
	eventually(t, "full speed", func() bool { return stats(t, g).CPUUsage > used+200*time.Millisecond })
}

// Only what is in the group pays for the group's limit.
func TestMemoryLimitKillsInGroup(t *testing.T) {
	g := realGroup(t, cgroup.Limits{MemoryBytes: 32 << 20})
	if got := stats(t, g).MemoryLimitBytes; got != 32<<20 {
		t.Errorf("limit = %d", got)
	}
	bystander := start(t, cgroup.Group{}, "exec sleep 60")
	greedy := start(t, g, "exec tail /dev/zero")
	if err := greedy.Wait(context.Background()); err != nil {
		t.Fatal(err)
	}
	if exit, ok := greedy.Exit(); !ok || exit.Signal != syscall.SIGKILL {
		t.Errorf("exit = %v", exit)
	}
	if s := stats(t, g); s.OOMKills != 1 {
		t.Errorf("OOM kills = %d", s.OOMKills)
	}
	if !bystander.Alive() {
		t.Error("killed outside of the group")
	}
}

func TestMemoryLimitIsNotLoweredBelowUse(t *testing.T) {
	g := realGroup(t, cgroup.Limits{MemoryBytes: 256 << 20})
	start(t, g, `x=$(head -c 40000000 /dev/zero | tr '\0' x); echo full; while :; do sleep 60; done`)
	eventually(t, "memory in use", func() bool { return stats(t, g).MemoryUnreclaimableBytes > 40_000_000 })
	err := g.Update(cgroup.Limits{MemoryBytes: 16 << 20})
	if err == nil || !strings.Contains(err.Error(), "cannot limit memory to 16 MiB") {
		t.Errorf("error = %v", err)
	}
	for _, limit := range []int64{512 << 20, 200 << 20, 0} {
		if err := g.Update(cgroup.Limits{MemoryBytes: limit}); err != nil || stats(t, g).MemoryLimitBytes != limit {
			t.Errorf("limit %d: %v, is %d", limit, err, stats(t, g).MemoryLimitBytes)
		}
	}
	if s := stats(t, g); s.OOMKills != 0 {
		t.Errorf("OOM kills = %d", s.OOMKills)
	}
}

func TestIOIsThrottled(t *testing.T) {
	device, err := cgroup.DeviceOf(t.TempDir())
	if err != nil {
		t.Skip(err)
	}
	g := realGroup(t, cgroup.Limits{Device: device, WriteIOPS: 50, ReadIOPS: 3000, WriteBytesPerSecond: 4 << 20})
	for _, file := range g.ProcsFiles() {
		dir := filepath.Dir(file)
		for name, want := range map[string]string{
			"blkio.throttle.write_iops_device": device.String() + " 50",
			"blkio.throttle.read_iops_device":  device.String() + " 3000",
			"blkio.throttle.write_bps_device":  device.String() + " 4194304",
			"blkio.throttle.read_bps_device":   "",
		} {
			raw, err := os.ReadFile(filepath.Join(dir, name))
			if err == nil && strings.TrimSpace(string(raw)) != want {
				t.Errorf("%s = %q, want %q", name, raw, want)
			}
		}
	}
	begin := time.Now()
	p := start(t, g, "exec dd if=/dev/zero of=f bs=64k count=64 oflag=direct 2>/dev/null")
	if err := p.Wait(context.Background()); err != nil {
		t.Fatal(err)
	}
	if exit, _ := p.Exit(); exit.Code != 0 {
		t.Skip("no direct I/O here")
	}
	io := stats(t, g).IO[device]
	if io.WriteBytes < 4<<20 || io.WriteOps < 64 {
		t.Errorf("counted %+v", io)
	}
	t.Logf("64 writes of 64 KiB at 50/s took %v: %+v", time.Since(begin), io)
	if err := g.Update(cgroup.Limits{Device: device}); err != nil {
		t.Fatal(err)
	}
}

// What a process left in the page cache is written by the kernel for its group, also
// when the process is gone: v2 alone does so, and the guide promises it there.
func TestWritebackIsCharged(t *testing.T) {
	const bytes = 8 << 20
	dir := t.TempDir()
	device, err := cgroup.DeviceOf(dir)
	if err != nil {
		t.Skip(err)
	}
	if levers := cgroup.Detect("/sys/fs/cgroup", "kurabe-test"); levers.IO.Version != 2 || levers.Memory.Version != 2 {
		t.Skip("not cgroup v2:", levers)
	}
	g := realGroup(t, cgroup.Limits{Device: device, WriteBytesPerSecond: 4 << 20})
	p := start(t, g, fmt.Sprintf("exec head -c %d /dev/zero >%s/f", bytes, dir))
	if err := p.Wait(context.Background()); err != nil {
		t.Fatal(err)
	}
	if early := stats(t, g).IO[device].WriteBytes; early >= bytes {
		t.Skip("written before it was asked for")
	}
	begin := time.Now()
	syscall.Sync()
	eventually(t, "write-back in the group's counters", func() bool { return stats(t, g).IO[device].WriteBytes >= bytes })
	// 8 MiB at 4 MiB/s are two seconds; the kernel grants a slice of it at once.
	if took := time.Since(begin); took < time.Second {
		t.Errorf("8 MiB at 4 MiB/s took %v", took)
	}
}

func TestRemoveNamesWhoIsLeft(t *testing.T) {
	g := realGroup(t, cgroup.Limits{})
	if len(g.ProcsFiles()) == 0 {
		t.Skip("no levers here")
	}
	p := start(t, g, "exec sleep 60")
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	if err := g.Remove(ctx); err == nil || !strings.Contains(err.Error(), fmt.Sprint(p.PID)) {
		t.Errorf("error = %v", err)
	}
	if !p.Alive() {
		t.Error("Remove kills")
	}
}
