package osmetrics

import (
	"fmt"
	"strings"
	"time"

	"kurabe"
	"kurabe/internal/cgroup"
)

// Reading is what is read of a server at a moment.
type Reading struct {
	At         time.Time
	Elapsed    time.Duration // by a clock that is never set
	Instance   string        // its name
	ID         kurabe.InstanceID
	Engine     kurabe.EngineName
	CPUs       float64 // the class's vCPUs, or the machine's
	Stats      cgroup.Stats
	Device     cgroup.Device // zero: nothing is known of I/O
	Processes  []Process
	Storage    int64  // bytes allocated; 0 is no limit
	Used       int64  // bytes of Storage; negative: not measured yet
	Rx, Tx     int64  // bytes that came and went since the socket counters began
	NetworkKey string // counters of another key are others; "": not known
}

type picture struct {
	Engine         string         `json:"engine"`
	InstanceID     string         `json:"instanceID"`
	ResourceID     string         `json:"instanceResourceID"`
	Timestamp      string         `json:"timestamp"`
	Version        float64        `json:"version"`
	Uptime         string         `json:"uptime,omitempty"`
	CPUs           float64        `json:"numVCPUs"`
	CPUUtilization *cpu           `json:"cpuUtilization,omitempty"`
	Memory         *memory        `json:"memory,omitempty"`
	Tasks          map[string]int `json:"tasks"`
	DiskIO         []disk         `json:"diskIO,omitempty"`
	FileSys        []fileSys      `json:"fileSys,omitempty"`
	Network        []network      `json:"network,omitempty"`
	ProcessList    []process      `json:"processList"`
}

type cpu struct {
	Total float64 `json:"total"`
	Idle  float64 `json:"idle"`
}

// memory is in kilobytes.
type memory struct {
	Total  int64 `json:"total"`
	Free   int64 `json:"free"`
	Cached int64 `json:"cached"`
}

type disk struct {
	Device     string  `json:"device"`
	ReadIOsPS  float64 `json:"readIOsPS"`
	WriteIOsPS float64 `json:"writeIOsPS"`
	TPS        float64 `json:"tps"`
	ReadKbPS   float64 `json:"readKbPS"`
	WriteKbPS  float64 `json:"writeKbPS"`
	ReadKb     int64   `json:"readKb"`
	WriteKb    int64   `json:"writeKb"`
}

// fileSys is in kilobytes.
type fileSys struct {
	Name        string  `json:"name"`
	Total       int64   `json:"total"`
	Used        int64   `json:"used"`
	UsedPercent float64 `json:"usedPercent"`
}

type network struct {
	Interface string  `json:"interface"`
	Rx        float64 `json:"rx"`
	Tx        float64 `json:"tx"`
}

type process struct {
	Name         string   `json:"name"`
	ID           int      `json:"id"`
	ParentID     int      `json:"parentID"`
	VSS          int64    `json:"vss"`                 // kilobytes
	RSS          int64    `json:"rss"`                 // kilobytes
	CPUUsedPc    *float64 `json:"cpuUsedPc,omitempty"` // of one vCPU
	MemoryUsedPc *float64 `json:"memoryUsedPc,omitempty"`
}

// Picture is what RDS's agents would tell of the time between two readings. Without an earlier
// one, or one of another control group, what has a rate is absent.
func Picture(before *Reading, now Reading) any {
	p := picture{
		Engine: strings.ToUpper(string(now.Engine)), InstanceID: now.Instance, ResourceID: string(now.ID), Timestamp: now.At.UTC().Format(time.RFC3339),
		Version: 1, CPUs: now.CPUs, Tasks: tasks(now.Processes),
	}
	if began, known := oldest(now.Processes); known {
		up := began.Truncate(time.Second)
		p.Uptime = fmt.Sprintf("%d days, %02d:%02d:%02d", up/(24*time.Hour), up/time.Hour%24, up/time.Minute%60, up/time.Second%60)
	}
	if limit := now.Stats.MemoryLimitBytes; limit > 0 {
		held := now.Stats.MemoryUnreclaimableBytes
		p.Memory = &memory{Total: limit >> 10, Free: max(0, limit-held) >> 10, Cached: max(0, now.Stats.MemoryBytes-held) >> 10}
	}
	if now.Storage > 0 && now.Used >= 0 {
		p.FileSys = []fileSys{{"rdsfilesys", now.Storage >> 10, now.Used >> 10, float64(now.Used) / float64(now.Storage) * 100}}
	}
	seconds := 0.0
	if before != nil {
		seconds = (now.Elapsed - before.Elapsed).Seconds()
	}
	if seconds > 0 && now.Stats.CPUUsage >= before.Stats.CPUUsage {
		total := min(100, (now.Stats.CPUUsage-before.Stats.CPUUsage).Seconds()/seconds/now.CPUs*100)
		p.CPUUtilization = &cpu{total, 100 - total}
		p.addDisk(before, now, seconds)
		if now.NetworkKey != "" && now.NetworkKey == before.NetworkKey && now.Rx >= before.Rx && now.Tx >= before.Tx {
			p.Network = []network{{"tcp", float64(now.Rx-before.Rx) / seconds, float64(now.Tx-before.Tx) / seconds}}
		}
	}
	p.ProcessList = processList(before, now, seconds)
	return p
}

func (p *picture) addDisk(before *Reading, now Reading, seconds float64) {
	if now.Device.IsZero() || now.Stats.IO == nil {
		return
	}
	was, is := before.Stats.IO[now.Device], now.Stats.IO[now.Device]
	if is.ReadOps < was.ReadOps || is.WriteOps < was.WriteOps {
		return
	}
	d := disk{Device: now.Device.String(), ReadIOsPS: float64(is.ReadOps-was.ReadOps) / seconds, WriteIOsPS: float64(is.WriteOps-was.WriteOps) / seconds,
		ReadKb: (is.ReadBytes - was.ReadBytes) >> 10, WriteKb: (is.WriteBytes - was.WriteBytes) >> 10}
	d.TPS, d.ReadKbPS, d.WriteKbPS = d.ReadIOsPS+d.WriteIOsPS, float64(d.ReadKb)/seconds, float64(d.WriteKb)/seconds
	p.DiskIO = []disk{d}
}
