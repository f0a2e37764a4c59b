package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"kurabe"
	"kurabe/internal/agent/unit"
	"kurabe/internal/cgroup"
	"kurabe/internal/engine"
	"kurabe/internal/hostlink"
	"kurabe/internal/logkey"
	"kurabe/internal/volume"
)

// Installed is one engine of this host: its lifecycle and versions.
type Installed struct {
	Lifecycle *engine.Lifecycle
	Versions  []kurabe.EngineVersion
}

// Host reports what this host is and can do, and makes its engines ready.
type Host struct {
	ID          kurabe.HostID
	Zones       []string
	Server      bool // a server of the service runs on it
	AddressPool string
	Network     string // see kurabe.HostReport
	Address     string // likewise
	NoFilter    error  // why it cannot filter packets, nil where it can
	DataDir     string
	Levers      cgroup.Levers
	Engines     []Installed
	Link        hostlink.Link
	Log         *slog.Logger
	Now         func() time.Time

	telling sync.Mutex // held from a change until it is told: reports keep their order

	mu         sync.Mutex // guards the rest
	report     kurabe.HostReport
	unreported bool // the newest report was not delivered
}

// ErrUnreported says that the control plane does not know of the host yet. Run tries again.
var ErrUnreported = errors.New("host report not delivered")

// hostMemoryKept is what the host keeps for the system and for Kurabe: an
// eighth, at most 2 GiB.
const hostMemoryKept = 2 * kurabe.GiB

const (
	// reportEvery is how often the free space of the host is told anew, however little
	// it has moved; spaceEvery is how often it is looked at.
	reportEvery = 5 * time.Minute
	spaceEvery  = 10 * time.Second
	// unreportedRetry is how soon a report is told again that could not be delivered.
	unreportedRetry = time.Second
	// spaceBytesTold and a sixteenth of what is free are what it has to move by to be
	// told before that.
	spaceBytesTold = 256 << 20
)

// spaceMoved says whether the free space is so far from what was told that people who
// read it would decide otherwise.
func spaceMoved(told, free int64) bool {
	by := max(told-free, free-told)
	return by >= spaceBytesTold && by >= min(told, free)/16
}

// Announce tells the control plane of the host as it is, before any engine is
// ready.
func (h *Host) Announce(ctx context.Context) error {
	r := kurabe.HostReport{Host: h.ID, Zones: h.Zones, Server: h.Server, AddressPool: h.AddressPool, Network: h.Network, Address: h.Address, StartedAt: h.Now().UTC(), Levers: h.levers(), Clones: volume.Reflink(h.DataDir)}
	var err error
	if r.CPUs, r.MemoryBytes, err = machine(); err != nil {
		return err
	}
	r.StorageBytes, r.FreeBytes = space(h.DataDir)
	for _, e := range h.Engines {
		r.Engines = append(r.Engines, e.Versions...)
	}
	h.telling.Lock()
	defer h.telling.Unlock()
	h.mu.Lock()
	h.report = r
	h.mu.Unlock()
	return h.send(ctx, r)
}

// send delivers a report; the caller holds telling.
func (h *Host) send(ctx context.Context, r kurabe.HostReport) error {
	err := h.Link.PutHost(ctx, r)
	h.mu.Lock()
	h.unreported = err != nil
	h.mu.Unlock()
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrUnreported, err)
}

// hasUnsentReport says whether the control plane lacks the newest report.
func (h *Host) hasUnsentReport() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.unreported
}

// Prepare makes every version ready, engines beside each other: its template and
// its catalogue. What an earlier service prepared is used again, so only a first
// start takes seconds. A version that fails stays listed with the reason, and
// Run tries it again.
func (h *Host) Prepare(ctx context.Context) {
	var wait sync.WaitGroup
	for _, e := range h.Engines {
		wait.Go(func() {
			for _, v := range e.Versions {
				if v.Reason == "" {
					h.prepare(ctx, e.Lifecycle, v)
				}
			}
		})
	}
	wait.Wait()
}

// Run tries again what Prepare could not do, and keeps the report true until ctx
// ends.
func (h *Host) Run(ctx context.Context) error {
	next, try := time.Now().Add(reportEvery), 2
	again := time.Now().Add(unit.Backoff(try))
	for {
		pause := min(time.Until(next), spaceEvery)
		if h.unprepared() {
			pause = min(pause, time.Until(again))
		}
		owes := h.hasUnsentReport()
		if owes {
			pause = min(pause, unreportedRetry)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
		if !time.Now().Before(again) {
			h.prepareRest(ctx)
			try++
			again = time.Now().Add(unit.Backoff(try))
		}
		total, free := space(h.DataDir)
		if owes || !time.Now().Before(next) || spaceMoved(h.Report().FreeBytes, free) {
			next = time.Now().Add(reportEvery)
			clones := volume.Reflink(h.DataDir) // a disk that was full could not tell
			h.update(ctx, func(r *kurabe.HostReport) { r.StorageBytes, r.FreeBytes, r.Clones = total, free, clones })
		}
	}
}

// prepareRest tries what is not ready yet.
func (h *Host) prepareRest(ctx context.Context) {
	for _, e := range h.Engines {
		for _, v := range e.Versions {
			if v.Reason == "" && !h.ready(v) {
				h.prepare(ctx, e.Lifecycle, v)
			}
		}
	}
}

// Report is what the host told last.
func (h *Host) Report() kurabe.HostReport {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.report
}

// ready says whether a version was prepared.
func (h *Host) ready(v kurabe.EngineVersion) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, have := range h.report.Engines {
		if have.Engine == v.Engine && have.Version == v.Version {
			return have.Ready
		}
	}
	return false
}

// unprepared says whether a version that could be offered is not ready.
func (h *Host) unprepared() bool {
	for _, e := range h.Engines {
		for _, v := range e.Versions {
			if v.Reason == "" && !h.ready(v) {
				return true
			}
		}
	}
	return false
}

// prepare makes one version ready, or tells why it is not.
func (h *Host) prepare(ctx context.Context, l *engine.Lifecycle, v kurabe.EngineVersion) {
	log := h.Log.With(logkey.Engine, v.Engine, logkey.Version, v.Version)
	catalog, err := l.Prepare(ctx, v)
	if err == nil {
		err = h.Link.PutCatalog(ctx, h.ID, catalog)
	}
	switch {
	case err == nil:
		log.Info("engine version ready", "parameters", len(catalog.Parameters))
		h.setVersion(ctx, v, true, "")
	case ctx.Err() == nil:
		log.Error("engine version not ready", logkey.Error, err)
		h.setVersion(ctx, v, false, err.Error())
	}
}

func (h *Host) setVersion(ctx context.Context, v kurabe.EngineVersion, ready bool, reason string) {
	h.update(ctx, func(r *kurabe.HostReport) {
		for n := range r.Engines {
			if r.Engines[n].Engine == v.Engine && r.Engines[n].Version == v.Version {
				r.Engines[n].Ready, r.Engines[n].Reason = ready, reason
			}
		}
	})
}

// update changes the report and tells it; Run tells one again that cannot be delivered.
func (h *Host) update(ctx context.Context, change func(*kurabe.HostReport)) {
	h.telling.Lock()
	defer h.telling.Unlock()
	h.mu.Lock()
	h.report.Engines = append([]kurabe.EngineVersion(nil), h.report.Engines...)
	change(&h.report)
	r := h.report
	h.mu.Unlock()
	if err := h.send(ctx, r); err != nil && ctx.Err() == nil {
		h.Log.Warn("host report not delivered", logkey.Error, err)
	}
}

func (h *Host) levers() []kurabe.Lever {
	io := h.Levers.IO
	if _, err := cgroup.DeviceOf(h.DataDir); err != nil && io.Enforceable {
		io.Enforceable, io.Reason = false, err.Error()
	}
	lever := func(name string, l cgroup.Lever) kurabe.Lever {
		detail := l.Reason
		if l.Enforceable {
			detail = fmt.Sprintf("cgroup v%d", l.Version)
		}
		return kurabe.Lever{Name: name, Available: l.Enforceable, Detail: detail}
	}
	filter := kurabe.Lever{Name: kurabe.LeverFilter, Available: h.NoFilter == nil, Detail: "nftables"}
	if h.NoFilter != nil {
		filter.Detail = h.NoFilter.Error()
	}
	return []kurabe.Lever{lever("cpu", h.Levers.CPU), lever("memory", h.Levers.Memory), lever("io", io), filter}
}

// machine tells how many processors we may use and how much memory instances
// may reserve.
func machine() (cpus int, memoryBytes int64, err error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return 0, 0, fmt.Errorf("count processors: %w", err)
	}
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0, 0, fmt.Errorf("read memory size: %w", err)
	}
	total := int64(info.Totalram) * int64(info.Unit)
	return set.Count(), total - min(total/8, hostMemoryKept), nil
}

func space(dir string) (total, free int64) {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return 0, 0
	}
	free, _ = volume.FreeBytes(dir)
	return int64(st.Blocks) * st.Bsize, free
}

// EngineUser finds the account that an engine runs as when the service is root.
func EngineUser(name string) (uid, gid int, err error) {
	data, err := os.ReadFile(filepath.Join("/etc", "passwd"))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.SplitSeq(string(data), "\n") {
		f := strings.Split(line, ":")
		if len(f) >= 4 && f[0] == name {
			if _, err := fmt.Sscan(f[2]+" "+f[3], &uid, &gid); err != nil {
				return 0, 0, err
			}
			return uid, gid, nil
		}
	}
	return 0, 0, fmt.Errorf("no OS user %q to run the engine as; create it with: adduser --system --group %s", name, name)
}
