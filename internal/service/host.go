package service

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"kurabe"
	"kurabe/internal/account"
	"kurabe/internal/agent"
	"kurabe/internal/cgroup"
	"kurabe/internal/control"
	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb"
	"kurabe/internal/engine/postgres"
	"kurabe/internal/hostlink"
	"kurabe/internal/logkey"
	"kurabe/internal/packetfilter"
	"kurabe/internal/proc"
	"kurabe/internal/snapshot"
	"kurabe/internal/volume"
	"kurabe/internal/wire/pg/scram"
)

// osUsers are the accounts that engines run as when the service is root, those
// of Debian's packages.
var osUsers = map[kurabe.EngineName]string{kurabe.Postgres: "postgres", kurabe.MariaDB: "mysql"}

// verifiers has one for each engine.
func verifiers() map[kurabe.EngineName]control.Verifier {
	return map[kurabe.EngineName]control.Verifier{
		kurabe.Postgres: scram.Verifier,
		kurabe.MariaDB:  mariadb.Verifier,
	}
}

// hostParts are what a host's engines are built on.
type hostParts struct {
	seen     string // the service's folder
	link     hostlink.Link
	fetch    engine.Fetch
	accounts *account.Book // nil: none but the packages'
}

// newHost finds the engines and levers of this machine.
func newHost(ctx context.Context, h hostFile, at standing, p hostParts, copyRate int64, log *slog.Logger) (*agent.Host, map[kurabe.EngineName]engine.Engine, error) {
	seen, link := p.seen, p.link
	network, own := h.network()
	host := &agent.Host{
		ID: h.ID, Zones: at.zones, Server: at.server, AddressPool: h.AddressPool, Network: network, Address: own, NoFilter: packetfilter.Probe(), DataDir: seen, Link: link, Log: log, Now: time.Now,
		Levers: cgroup.Detect("/sys/fs/cgroup", "kurabe-"+string(h.ID)),
	}
	engines := map[kurabe.EngineName]engine.Engine{}
	for _, driver := range drivers(seen) {
		versions, err := driver.Discover(ctx)
		if err != nil {
			return nil, nil, fmt.Errorf("look for %s: %w", driver.Name(), err)
		}
		user, reason := engineUser(driver.Name())
		for n := range versions {
			if versions[n].Reason == "" {
				versions[n].Reason = reason
			}
		}
		l := engine.NewLifecycle(engine.Config{
			Driver: driver, Homes: placeIn(seen, "instances"), Templates: placeIn(seen, "templates"),
			Snapshots: placeIn(seen, "snapshots"), Runtime: "/run/kurabe", Fetch: p.fetch, User: user, Accounts: p.accounts, Sign: signer(link), Levers: host.Levers, Now: time.Now,
			CopyBytesPerSecondMax: copyRate << 20,
		}, versions)
		engines[driver.Name()] = l
		host.Engines = append(host.Engines, agent.Installed{Lifecycle: l, Versions: versions})
		log.Info("engine found", logkey.Engine, driver.Name(), "versions", len(versions))
	}
	if p.accounts != nil && len(host.Engines) > 0 {
		if err := host.Engines[0].Lifecycle.SweepAccounts(ctx); err != nil {
			return nil, nil, fmt.Errorf("release the user ids of what is gone: %w", err)
		}
	}
	mode := os.FileMode(0o700)
	if os.Getuid() == 0 {
		mode = 0o711
		if err := proc.Secludes(); err != nil {
			log.Warn("servers that verify and replay are not secluded from this machine", logkey.Error, err)
		}
	}
	if err := os.MkdirAll(filepath.Join(seen, "instances"), mode); err != nil {
		return nil, nil, fmt.Errorf("make instances folder: %w", err)
	}
	return host, engines, nil
}

// accountOf tells which user id the server of an assignment runs as, 0 for our own.
func accountOf(h *agent.Host) func(kurabe.Assignment) int {
	return func(a kurabe.Assignment) int {
		for _, e := range h.Engines {
			if len(e.Versions) == 0 || e.Versions[0].Engine != a.Engine {
				continue
			}
			if user := e.Lifecycle.Account(a.Instance); user != nil {
				return user.UID
			}
		}
		return 0
	}
}

// placeIn is a folder of ours in the data folder. An administrator may have put it on another
// disk by a link: the data folder is nobody else's to write.
func placeIn(seen, name string) string {
	path := filepath.Join(seen, name)
	if place, err := volume.Resolve(path); err == nil {
		return place
	}
	return path
}

// snapshotsOf is the folder of a host's snapshots.
func snapshotsOf(seen string) snapshot.Store {
	return snapshot.Store{Dir: placeIn(seen, "snapshots")}
}

// archive keeps snapshots in the repository of backups, at the rate of any copy.
func archive(r *repository, local snapshot.Store, copyRate int64) *snapshot.Archive {
	if !r.forSnapshots() {
		return nil
	}
	a := snapshot.NewArchive(local, r.Store)
	a.BytesPerSecondMax = copyRate << 20
	return a
}

// snapshots keeps the snapshots of all engines of the host.
func snapshots(h *agent.Host, seen string, copyRate int64, archive *snapshot.Archive) *engine.Snapshots {
	var lifecycles []*engine.Lifecycle
	for _, e := range h.Engines {
		lifecycles = append(lifecycles, e.Lifecycle)
	}
	s := engine.NewSnapshots(snapshotsOf(seen).Dir, lifecycles...)
	s.BytesPerSecondMax = copyRate << 20
	if archive != nil {
		s.UseArchive(archive)
	}
	return s
}

func drivers(seen string) []engine.Driver {
	return []engine.Driver{
		postgres.New(postgres.Config{Root: filepath.Join(seen, "engines")}),
		mariadb.New(mariadb.Config{Guard: guardPath()}),
	}
}

// HasEngine says whether a service on this machine would find an engine. A driver keeps in dir what
// it makes of the engine while it looks.
func HasEngine(ctx context.Context, dir, engine string) (bool, error) {
	for _, driver := range drivers(dir) {
		if string(driver.Name()) != engine {
			continue
		}
		versions, err := driver.Discover(ctx)
		if err != nil {
			return false, fmt.Errorf("look for %s: %w", engine, err)
		}
		_, reason := engineUser(driver.Name())
		return reason == "" && slices.ContainsFunc(versions, func(v kurabe.EngineVersion) bool { return v.Reason == "" }), nil
	}
	return false, nil
}

// guardPath is where the build puts the plugin that MariaDB servers load: beside
// this program.
func guardPath() string {
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	return filepath.Join(filepath.Dir(self), "kurabe_guard.so")
}

// engineUser is the account to run an engine as, or why there is none.
func engineUser(name kurabe.EngineName) (*proc.Credential, string) {
	if os.Getuid() != 0 {
		return nil, ""
	}
	uid, gid, err := agent.EngineUser(osUsers[name])
	if err != nil {
		return nil, err.Error()
	}
	return &proc.Credential{UID: uid, GID: gid}, ""
}

// signer has server certificates signed over the link.
func signer(link hostlink.Link) engine.Signer {
	return func(ctx context.Context, csrPEM []byte, ips, names []string) ([]byte, []byte, error) {
		request := hostlink.SignRequest{CSRPEM: csrPEM, DNSNames: names}
		for _, ip := range ips {
			request.IPs = append(request.IPs, net.ParseIP(ip))
		}
		c, err := link.Sign(ctx, request)
		return c.CertPEM, c.CAPEM, err
	}
}
