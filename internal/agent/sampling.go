package agent

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"kurabe"
	"kurabe/internal/agent/unit"
	"kurabe/internal/agent/watch"
	"kurabe/internal/cgroup"
	"kurabe/internal/engine"
	"kurabe/internal/logkey"
	"kurabe/internal/metrics/catalog"
	"kurabe/internal/metrics/sample"
	"kurabe/internal/metrics/series"
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
	began   time.Time     // that of the clock of readings
	device  cgroup.Device // of the instances' folders; zero where nothing of I/O is known
	servers map[kurabe.InstanceID]*groupSampler
	once    unit.LogOnce
}

// groupSampler measures the control group of one server.
type groupSampler struct {
	before sample.Reading
	labels labeller
}

// sampleServers measures until ctx ends.
func (a *Agent) sampleServers(ctx context.Context) {
	s := &sampling{agent: a, began: time.Now(), servers: map[kurabe.InstanceID]*groupSampler{}}
	s.device, _ = cgroup.DeviceOf(a.Homes)
	for unit.Wait(ctx, sampleEvery-time.Duration(a.Now().UnixNano())%sampleEvery) {
		s.measure()
	}
}

// measure appends one sample of every series of the second. The servers are asked at the same
// moment and answer later.
func (s *sampling) measure() {
	now, at := s.agent.Now(), time.Since(s.began)
	// Without their counters, or on a machine that does not tell, the samples lack these values.
	disks, _ := cgroup.Disks()
	machine := sample.Group{CPUs: runtime.NumCPU(), AvailableBytes: availableBytes(), Device: s.device, Disk: disks[s.device]}
	var list []series.Sample
	kept := map[kurabe.InstanceID]*groupSampler{}
	for _, w := range s.agent.workers.List() {
		a, known := w.Assignment()
		if !known || a.Goal == kurabe.GoalAbsent {
			continue
		}
		g := s.servers[w.ID]
		if g == nil {
			g = &groupSampler{}
		}
		kept[w.ID] = g
		w.pokeSampler()
		if g.before.TooSoon(at) {
			continue
		}
		machine.Limits = a.Limits
		list = append(list, g.labels.label(a, append(g.group(s.agent.Levers, machine, w.ID, at), w.sampleKnown(a)...))...)
	}
	s.servers = kept
	s.agent.appendSamples(now, list, &s.once)
}

// group samples the control group.
func (g *groupSampler) group(levers cgroup.Levers, machine sample.Group, id kurabe.InstanceID, at time.Duration) []sample.Value {
	group, found := levers.Find(string(id))
	if !found {
		return nil
	}
	var err error
	if machine.Stats, err = group.Stats(); err != nil {
		return nil // it is being removed
	}
	now := sample.Reading{Of: group.Name, At: at, Values: machine.Values()}
	samples := sample.WithQueueDepth(sample.Between(g.before, now))
	g.before = now
	return samples
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

// pokeSampler has the server asked now.
func (w *worker) pokeSampler() {
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
	var once unit.LogOnce
	began := time.Now()
	watch.Subscribe(ctx, w.process(o, w.hangs), watch.Purpose[engine.Sampler]{
		Every: time.Minute, Poked: w.samplerPoked, Limit: func() time.Duration { return sampleLimit },
		Open: func(asking context.Context) (engine.Sampler, error) {
			a, _ := w.Assignment()
			return e.OpenSampler(asking, a)
		},
		Ask: func(asking context.Context, s engine.Sampler) error {
			at := time.Since(began)
			if before.TooSoon(at) {
				return nil
			}
			values, err := s.Sample(asking)
			if err != nil {
				return err
			}
			a, _ := w.Assignment()
			now := sample.Reading{Of: o.Process, At: at, Values: values}
			w.agent.appendSamples(w.agent.Now(), labels.label(a, sample.Between(before, now)), &once)
			before = now
			return nil
		},
		Failed: func(err error) { w.Log.Debug("server not sampled", logkey.Error, err) },
	})
}

func (a *Agent) appendSamples(at time.Time, list []series.Sample, once *unit.LogOnce) {
	if err := a.Series.Append(at, list); err != nil {
		once.Warn(a.Log, "metrics not kept", err)
	}
}

// labeller keeps the labels of a server's series until its name or role is another.
type labeller struct {
	of      [3]string // instance, engine, role
	labels  map[string]series.Labels
	cluster bool // the server was seen to be one of a DB cluster
}

func (l *labeller) label(a kurabe.Assignment, samples []sample.Value) []series.Sample {
	instance, role := l.identity(a)
	if of := [3]string{instance, string(a.Engine), role}; l.of != of {
		l.of, l.labels = of, map[string]series.Labels{}
	}
	list := make([]series.Sample, 0, len(samples))
	for _, s := range samples {
		labels := l.labels[s.Metric]
		if labels == nil {
			labels = series.NewLabels(catalog.Namespace, catalog.Of(s.Metric).Namespace, catalog.Metric, s.Metric, catalog.Instance, instance,
				catalog.Server, string(a.Instance), catalog.Engine, string(a.Engine), catalog.Role, role)
			l.labels[s.Metric] = labels
		}
		list = append(list, series.Sample{Labels: labels, Value: s.Value})
	}
	return list
}

// identity is the name and role of a server in its metrics. A server of a DB cluster is an
// instance of its own there.
func (l *labeller) identity(a kurabe.Assignment) (instance, role string) {
	primary := a.Role == nil || a.Role.Duty == kurabe.DutyWrite
	replica := a.Role != nil && a.Role.Source != nil && a.Role.Source.ID.Owner() != a.Instance.Owner()
	l.cluster = l.cluster || a.ReaderAddress != "" || !primary && !replica && a.Role.ServesReads
	instance = a.Name
	if l.cluster {
		instance = kurabe.ServerName(a.Name, a.Instance)
	}
	switch {
	case primary:
		return instance, catalog.RolePrimary
	case replica:
		return instance, catalog.RoleReplica
	case l.cluster:
		return instance, catalog.RoleReader
	}
	return instance, catalog.RoleStandby
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
