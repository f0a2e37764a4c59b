package agent

import (
	"context"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kurabe"
	"kurabe/internal/agent/unit"
	"kurabe/internal/cgroup"
	"kurabe/internal/engine"
	"kurabe/internal/hostlink"
	"kurabe/internal/volume"
)

// maker is a driver that can only be prepared.
type maker struct {
	engine.Driver
	mu    sync.Mutex // guards the rest
	fails map[string]error
	tries map[string]int
}

func (m *maker) MakeTemplate(_ context.Context, r engine.TemplateRequest) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tries[r.Version.Version]++
	if err := m.fails[r.Version.Version]; err != nil {
		return err
	}
	return os.Mkdir(r.Dir, 0o700)
}

func (m *maker) ReadCatalog(_ context.Context, r engine.TemplateRequest) (kurabe.Catalog, error) {
	return kurabe.Catalog{Engine: kurabe.Postgres, Version: r.Version.Version, Parameters: []kurabe.Parameter{{Name: "work_mem"}}}, nil
}

func (m *maker) mend(version string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.fails, version)
}

// hostScript remembers what a host says of itself.
type hostScript struct {
	hostlink.Link
	mu       sync.Mutex // guards the rest
	hosts    []kurabe.HostReport
	catalogs []string // versions
}

func (s *hostScript) PutHost(_ context.Context, h kurabe.HostReport) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hosts = append(s.hosts, h)
	return nil
}

func (s *hostScript) PutCatalog(_ context.Context, _ kurabe.HostID, c kurabe.Catalog) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.catalogs = append(s.catalogs, c.Version)
	return nil
}

func (s *hostScript) last() kurabe.HostReport {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hosts[len(s.hosts)-1]
}

// told counts the reports so far.
func (s *hostScript) told() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.hosts)
}

// newTestHost offers a version that can be made ready, one that cannot yet, and
// one that is listed only.
func newTestHost(dir string) (*Host, *maker, *hostScript) {
	versions := []kurabe.EngineVersion{
		{Engine: kurabe.Postgres, Version: "15.18", Locales: []string{"C"}},
		{Engine: kurabe.Postgres, Version: "16.4", Locales: []string{"C"}},
		{Engine: kurabe.Postgres, Version: "9.6", Reason: "too old"},
	}
	driver := &maker{fails: map[string]error{"16.4": errTest}, tries: map[string]int{}}
	lifecycle := engine.NewLifecycle(engine.Config{Driver: driver, Homes: filepath.Join(dir, "instances"), Templates: filepath.Join(dir, "templates"), Now: time.Now}, versions)
	link := &hostScript{}
	missing := cgroup.Lever{Reason: "not root"}
	return &Host{
		ID: "h", Zones: []string{"a", "b"}, AddressPool: "127.66.0.0/24", DataDir: dir, Levers: cgroup.Levers{CPU: missing, Memory: missing, IO: missing},
		Engines: []Installed{{lifecycle, versions}}, Link: link, Log: slog.New(slog.DiscardHandler), Now: time.Now,
	}, driver, link
}

func TestHostAnnounces(t *testing.T) {
	h, driver, link := newTestHost(t.TempDir())
	if err := h.Announce(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := link.last()
	if r.Host != "h" || len(r.Zones) != 2 || r.AddressPool != "127.66.0.0/24" || r.StartedAt.IsZero() || len(r.Engines) != 3 {
		t.Errorf("%+v", r)
	}
	// The instances must leave something to the system, and the disk is a real one.
	if r.CPUs < 1 || r.MemoryBytes < 1 || r.StorageBytes < r.FreeBytes || r.FreeBytes < 1 {
		t.Errorf("%d CPUs, %d bytes of memory, %d of %d bytes of disk", r.CPUs, r.MemoryBytes, r.FreeBytes, r.StorageBytes)
	}
	if r.Clones != volume.Reflink(h.DataDir) {
		t.Errorf("that files can be cloned: %v", r.Clones)
	}
	for _, name := range []string{"cpu", "memory", "io"} {
		if r.Has(name) || r.Detail(name) != "not root" {
			t.Errorf("lever %s: %v, %s", name, r.Has(name), r.Detail(name))
		}
	}
	for _, v := range r.Engines {
		if v.Ready {
			t.Errorf("%s is ready before it was prepared", v.Version)
		}
	}
	if len(driver.tries) > 0 {
		t.Errorf("an announcement makes templates: %v", driver.tries)
	}
	if !reflect.DeepEqual(h.Report(), r) {
		t.Errorf("told is %+v, kept %+v", r, h.Report())
	}
}

// A version that cannot be made ready is listed with the reason and tried again;
// the others do not wait for it.
func TestHostPreparesWhatItCan(t *testing.T) {
	dir := memoryFolder(t)
	synctest.Test(t, func(t *testing.T) {
		h, driver, link := newTestHost(dir)
		if err := h.Announce(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.Prepare(t.Context())
		check := func(ready bool, reason string) {
			t.Helper()
			e := link.last().Engines
			if !e[0].Ready || e[0].Reason != "" || e[1].Ready != ready || !strings.Contains(e[1].Reason, reason) || (e[1].Reason == "") != ready || e[2].Ready || e[2].Reason != "too old" {
				t.Errorf("engines %+v", e)
			}
		}
		check(false, errTest.Error())
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- h.Run(ctx) }()
		time.Sleep(10 * time.Minute) // virtual
		synctest.Wait()
		check(false, errTest.Error())
		driver.mend("16.4")
		time.Sleep(unit.PauseMost) // virtual
		synctest.Wait()
		check(true, "")
		if driver.tries["15.18"] != 1 || driver.tries["9.6"] != 0 || driver.tries["16.4"] < 600/30 || driver.tries["16.4"] > 60 {
			t.Errorf("tries %v", driver.tries)
		}
		if got := strings.Join(link.catalogs, " "); got != "15.18 16.4" {
			t.Errorf("catalogues told: %s", got)
		}
		// From now on only the free space is news.
		reports := link.told()
		time.Sleep(2 * reportEvery) // virtual
		synctest.Wait()
		if got := link.told() - reports; got != 2 {
			t.Errorf("%d reports in %v, want 2", got, 2*reportEvery)
		}
		cancel()
		if err := <-ended; err == nil {
			t.Error("Run ended without the reason")
		}
	})
}

func TestSpaceMoved(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		told, free int64
		want       bool
	}{
		{100 * gib, 99 * gib, false}, {100 * gib, 90 * gib, true}, {90 * gib, 100 * gib, true},
		{gib, gib - 100<<20, false}, {gib, gib - 300<<20, true}, {gib, 0, true}, {0, gib, true}, {gib, gib, false}, {0, 0, false},
	} {
		if got := spaceMoved(c.told, c.free); got != c.want {
			t.Errorf("told %d, free %d: %v", c.told, c.free, got)
		}
	}
}

func TestEngineUser(t *testing.T) {
	root, err := user.LookupId("0")
	if err != nil {
		t.Skip(err)
	}
	if uid, gid, err := EngineUser(root.Username); uid != 0 || gid != 0 || err != nil {
		t.Errorf("%s: %d, %d, %v", root.Username, uid, gid, err)
	}
	if _, _, err := EngineUser("kurabe-nobody"); err == nil || !strings.Contains(err.Error(), "adduser --system --group kurabe-nobody") {
		t.Errorf("an account that does not exist: %v", err)
	}
}
