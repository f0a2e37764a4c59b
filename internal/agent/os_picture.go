package agent

import (
	"encoding/json"
	"time"

	"kurabe"
	"kurabe/internal/agent/unit"
	"kurabe/internal/cgroup"
	"kurabe/internal/logevents"
	"kurabe/internal/metrics/catalog"
	"kurabe/internal/metrics/osmetrics"
	"kurabe/internal/metrics/sample"
	"kurabe/internal/tcpbytes"
)

// keepPicture pictures the operating system around a server when its interval is over. Clients
// see no standby.
func (o *serverSampler) keepPicture(w *worker, a kurabe.Assignment, group cgroup.Group, machine sample.Group, count tcpbytes.Count, at time.Duration, once *unit.LogOnce) {
	every := time.Duration(a.MonitoringSeconds) * time.Second
	if w.agent.Events == nil || every == 0 {
		o.picture = nil
		return
	}
	// Seconds come a bit early or late.
	if o.picture != nil && at-o.picture.Elapsed < every-sampleEvery/2 {
		return
	}
	name, role := o.labels.identity(a)
	ids, err := group.Pids()
	if err != nil || len(ids) == 0 || role == catalog.RoleStandby {
		o.picture = nil // it is stopped, or being removed
		return
	}
	id := string(a.Instance.Owner())
	if a.Cluster {
		id = kurabe.ServerResourceID(a.Instance)
	}
	now := osmetrics.Reading{
		At: w.agent.Now(), Elapsed: at, Instance: name, ID: kurabe.InstanceID(id), Engine: a.Engine, CPUs: a.Limits.CPUs, Stats: machine.Stats, Device: machine.Device,
		Processes: osmetrics.Processes(ids), Storage: a.Limits.StorageBytes, Used: -1,
	}
	if now.CPUs == 0 {
		now.CPUs = float64(machine.CPUs)
	}
	w.usage.mu.Lock()
	if !w.usage.at.IsZero() {
		now.Used = w.usage.bytes
	}
	w.usage.mu.Unlock()
	if process := w.sampled.Load(); process != nil && count != (tcpbytes.Count{}) {
		now.NetworkKey, now.Rx, now.Tx = networkKey(process.Name, count), int64(count.ReceivedBytes), int64(count.SentBytes)
	}
	before := o.picture
	o.picture = &now
	text, err := json.Marshal(osmetrics.Picture(before, now))
	if err == nil {
		ms := now.At.UnixMilli()
		err = w.agent.Events.Append(kurabe.OSMetricsGroup, id, []logevents.Event{{Time: ms, Ingested: ms, Message: text}}, nil)
	}
	if err != nil {
		once.Warn(w.agent.Log, "picture of the operating system not kept", err)
	}
}
