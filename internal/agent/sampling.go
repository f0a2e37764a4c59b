package agent

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"kurabe"
	"kurabe/internal/agent/unit"
	"kurabe/internal/agent/watch"
	"kurabe/internal/cgroup"
	"kurabe/internal/engine"
	"kurabe/internal/logkey"
	"kurabe/internal/metrics/osmetrics"
	"kurabe/internal/metrics/sample"
	"kurabe/internal/metrics/series"
	"kurabe/internal/tcpbytes"
)

// Appender keeps the samples of a moment. Several goroutines call it.
type Appender interface {
	Append(at time.Time, samples []series.Sample) error
}

const (
	sampleEvery = time.Second
	// sampleLimit is for one question to a server, which misses as many seconds.
	sampleLimit = 5 * time.Second
)

// sampling measures every server of the host once a second. What needs no answer of a server is
// measured by one goroutine for all of them; each server is asked by one of its own.
type sampling struct {
	agent   *Agent
	began   time.Time         // that of the clock of readings
	last    time.Duration     // newest reading
	device  cgroup.Device     // of the instances' folders; zero where nothing of I/O is known
	tcp     *tcpbytes.Counter // nil where the kernel tells nothing
	servers map[kurabe.InstanceID]*serverSampler
	once    unit.LogOnce
	// pictureOnce is of what cannot be kept of Enhanced Monitoring.
	pictureOnce unit.LogOnce
}

// serverSampler keeps what one server's next samples are compared with.
type serverSampler struct {
	group, network sample.Reading
	labels         labeller
	picture        *osmetrics.Reading // nil: none was made
}

// sampleServers measures until ctx ends.
func (a *Agent) sampleServers(ctx context.Context) {
	s := &sampling{agent: a, began: time.Now(), servers: map[kurabe.InstanceID]*serverSampler{}}
	s.device, _ = cgroup.DeviceOf(a.Homes)
	var err error
	if s.tcp, err = tcpbytes.Open(); err != nil {
		a.Log.Info("no metrics of the network", logkey.Error, err)
	}
	for unit.Wait(ctx, sampleEvery-time.Duration(a.Now().UnixNano())%sampleEvery) {
		s.measure(ctx)
	}
	if s.tcp != nil {
		s.tcp.Close()
	}
}

// measure appends one sample of every series of the second. The servers are asked at the same
// moment and answer later.
func (s *sampling) measure(ctx context.Context) {
	now, at := s.agent.Now(), time.Since(s.began)
	if at-s.last < sample.ElapsedMin { // the clock was set
		return
	}
	s.last = at
	// Without their counters, or on a machine that does not tell, the samples lack these values.
	disks, _ := cgroup.Disks()
	machine := sample.Group{CPUs: runtime.NumCPU(), AvailableBytes: availableBytes(), Device: s.device, Disk: disks[s.device]}
	workers := s.agent.workers.List()
	counts := s.countBytes(workers)
	var list []series.Sample
	kept := map[kurabe.InstanceID]*serverSampler{}
	for _, w := range workers {
		a, known := w.Assignment()
		if !known || a.Goal == kurabe.GoalAbsent {
			continue
		}
		one := s.servers[w.ID]
		if one == nil {
			one = &serverSampler{}
		}
		kept[w.ID] = one
		w.wakeSampler(&w.metricsDue)
		w.wakeLoad(ctx, a)
		machine.Limits = a.Limits
		group, found := s.agent.Levers.Find(string(w.ID))
		if found {
			var err error
			machine.Stats, err = group.Stats()
			found = err == nil // else it is being removed
		}
		values := slices.Concat(one.sampleNetwork(counts, w, at), w.sampleKnown(a))
		if found {
			values = append(values, one.sampleGroup(group, machine, at)...)
			one.keepPicture(w, a, group, machine, counts[string(w.ID)], at, &s.pictureOnce)
		} else {
			one.picture = nil
		}
		list = append(list, one.labels.label(a, values)...)
	}
	s.servers = kept
	s.agent.appendSamples(now, list, &s.once)
}

// sampleGroup samples the control group.
func (o *serverSampler) sampleGroup(group cgroup.Group, machine sample.Group, at time.Duration) []sample.Value {
	now := sample.Reading{Of: group.Name, At: at, Values: machine.Values()}
	samples := sample.WithQueueDepth(sample.Between(o.group, now))
	o.group = now
	return samples
}

// countBytes counts what has come and gone over the sockets of the servers.
func (s *sampling) countBytes(workers []*worker) map[string]tcpbytes.Count {
	if s.tcp == nil {
		return nil
	}
	servers := map[string]tcpbytes.Server{}
	for _, w := range workers {
		process := w.sampled.Load()
		if process == nil {
			continue
		}
		var st unix.Stat_t
		if unix.Stat("/proc/"+strconv.Itoa(process.PID), &st) != nil {
			continue
		}
		a, _ := w.Assignment()
		// Where it listens elsewhere, the endpoint may be the gateway's.
		server := tcpbytes.Server{UID: st.Uid, Sole: a.ListensAt == ""}
		for _, address := range []string{a.Address, a.ListensAt, a.ReaderAddress} {
			if ip, err := netip.ParseAddr(address); err == nil {
				server.At = append(server.At, netip.AddrPortFrom(ip, uint16(a.Port)))
			}
		}
		servers[string(w.ID)] = server
	}
	counts, err := s.tcp.Read(servers)
	if err != nil {
		s.once.Warn(s.agent.Log, "bytes of the network not counted", err)
		s.tcp.Close()
		s.tcp, _ = tcpbytes.Open() // counts begin anew, which no sample is made of
	}
	return counts
}

// sampleNetwork samples what countBytes has counted.
func (o *serverSampler) sampleNetwork(counts map[string]tcpbytes.Count, w *worker, at time.Duration) []sample.Value {
	count, known := counts[string(w.ID)]
	if !known {
		return nil
	}
	now := sample.Reading{Of: networkKey(w.sampled.Load().Name, count), At: at, Values: []sample.Value{
		{Metric: "NetworkReceiveThroughput", Kind: sample.Rate, Value: float64(count.ReceivedBytes)},
		{Metric: "NetworkTransmitThroughput", Kind: sample.Rate, Value: float64(count.SentBytes)},
	}}
	samples := sample.Between(o.network, now)
	o.network = now
	return samples
}

// networkKey names the process and the loss of what was counted.
func networkKey(process string, count tcpbytes.Count) string {
	return fmt.Sprint(process, " ", count.Lost)
}

// sampleKnown are the samples of what is known of a server without asking it.
func (w *worker) sampleKnown(a kurabe.Assignment) (samples []sample.Value) {
	w.usage.mu.Lock()
	used, measured := w.usage.bytes, !w.usage.at.IsZero()
	w.usage.mu.Unlock()
	if measured && a.Limits.StorageBytes > 0 {
		samples = append(samples, sample.Value{Metric: "FreeStorageSpace", Value: float64(max(0, a.Limits.StorageBytes-used))})
	}
	if a.Goal == kurabe.GoalRunning && a.Role != nil && a.Role.Duty == kurabe.DutyFollow {
		samples = append(samples, sample.Value{Metric: "ReplicaLag", Value: w.lag().Seconds})
	}
	return samples
}

// pokeSampler has the server asked now for what is due.
func (w *worker) wakeSampler(due *atomic.Bool) {
	due.Store(true)
	select {
	case w.samplerPoked <- struct{}{}:
	default:
	}
}

// subscribeSampler asks one process of a server each second until ctx ends. One that hangs costs
// its own samples.
func (w *worker) subscribeSampler(ctx context.Context, e engine.Engine, o engine.Observation) {
	var before sample.Reading
	var labels labeller
	var once, loadOnce unit.LogOnce
	var counted time.Time
	began, process := time.Now(), w.process(o, w.hangs)
	w.sampled.Store(&process)
	watch.Subscribe(ctx, process, watch.Purpose[engine.Sampler]{
		Every: time.Minute, Poked: w.samplerPoked, Limit: func() time.Duration { return sampleLimit },
		Open: func(asking context.Context) (engine.Sampler, error) {
			a, _ := w.Assignment()
			return e.OpenSampler(asking, a)
		},
		Ask: func(asking context.Context, s engine.Sampler) error {
			a, _ := w.Assignment()
			if w.loadDue.Swap(false) {
				if err := w.keepLoad(asking, a, &labels, s, &counted, &loadOnce); err != nil {
					return err
				}
			}
			at := time.Since(began)
			if !w.metricsDue.Swap(false) || before.Of != "" && at-before.At < sample.ElapsedMin {
				return nil
			}
			values, err := s.Sample(asking)
			if err != nil {
				return err
			}
			now := sample.Reading{Of: o.Process, At: at, Values: values}
			w.agent.appendSamples(w.agent.Now(), labels.label(a, sample.Between(before, now)), &once)
			before = now
			return nil
		},
		Failed: func(err error) { w.Log.Debug("server not sampled", logkey.Error, err) },
	})
}

func (a *Agent) appendSamples(at time.Time, list []series.Sample, once *unit.LogOnce) {
	// A store that is not open says so itself.
	if err := a.Series.Append(at, list); err != nil && kurabe.CodeOf(err) != kurabe.CodeUnavailable {
		once.Warn(a.Log, "metrics not kept", err)
	}
}

// availableBytes is the memory that the machine can give without swapping, 0 when it does not
// tell.
func availableBytes() int64 {
	raw, _ := os.ReadFile("/proc/meminfo")
	_, rest, _ := strings.Cut(string(raw), "\nMemAvailable:")
	kilobytes, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	n, _ := strconv.ParseInt(kilobytes, 10, 64)
	return n << 10
}
