package osmetrics

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/cgroup"
)

func TestPicture(t *testing.T) {
	disk := cgroup.Device{Major: 254}
	before := Reading{Elapsed: time.Second, CPUs: 2, Instance: "shop", Engine: kurabe.Postgres, Used: -1, Stats: cgroup.Stats{CPUUsage: time.Second}, Device: disk,
		Processes: []Process{{ID: 7, Name: "postgres", CPU: time.Second, Up: time.Hour}}}
	before.Stats.IO = map[cgroup.Device]cgroup.IOStats{}
	now := before
	now.Elapsed, now.Stats = 3*time.Second, cgroup.Stats{CPUUsage: 2 * time.Second, MemoryLimitBytes: 4 << 20, MemoryUnreclaimableBytes: 1 << 20, MemoryBytes: 2 << 20,
		IO: map[cgroup.Device]cgroup.IOStats{disk: {ReadOps: 10, WriteOps: 4, ReadBytes: 8 << 10}}}
	now.Processes = []Process{{ID: 9, Name: "new", RSS: 1 << 20}, {ID: 7, Name: "postgres", CPU: 2 * time.Second, Up: time.Hour + 2*time.Second}}
	text := func(p any) string {
		raw, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	got := text(Picture(&before, now))
	for _, want := range []string{
		`"engine":"POSTGRES"`, `"uptime":"0 days, 01:00:02"`, `"cpuUtilization":{"total":25,"idle":75}`, `"memory":{"total":4096,"free":3072,"cached":1024}`,
		`"readIOsPS":5,"writeIOsPS":2,"tps":7,"readKbPS":4`, `"name":"postgres","id":7,"parentID":0,"vss":0,"rss":0,"cpuUsedPc":50`, `"name":"new","id":9,"parentID":0,"vss":0,"rss":1024,"memoryUsedPc":25`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s lacks %s", got, want)
		}
	}
	first := text(Picture(nil, before))
	for _, unknown := range []string{"cpuUtilization", "diskIO", "network", "fileSys", "memory", "cpuUsedPc"} {
		if strings.Contains(first, unknown) {
			t.Errorf("%s is told in %s", unknown, first)
		}
	}
}

func TestParse(t *testing.T) {
	p, ok := parse(7, "7 (a) b) S 1 7 7 0 -1 4194560 1 2 3 4 150 50 0 0 20 0 1 0 300 8192 2 0 0")
	if !ok || p.Name != "a) b" || p.CPU != 2*time.Second || p.Began != 3*time.Second || p.VSS != 8192 || p.RSS != 2*int64(os.Getpagesize()) {
		t.Errorf("%+v %v", p, ok)
	}
	if mine := Processes([]int{os.Getpid()}); len(mine) != 1 || mine[0].RSS == 0 || mine[0].Up > time.Hour {
		t.Errorf("%+v", mine)
	}
}
