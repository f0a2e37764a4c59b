package fleet

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"sync"
	"syscall"
	"time"

	"kurabe"
	"kurabe/internal/agent"
	"kurabe/internal/api"
	apirds "kurabe/internal/api/rds"
	"kurabe/internal/control"
	"kurabe/internal/control/scope"
	"kurabe/internal/engine"
	"kurabe/internal/engine/fake"
	pg "kurabe/internal/engine/postgres"
	"kurabe/internal/etcdnode"
	"kurabe/internal/hostlink"
	"kurabe/internal/logkey"
	"kurabe/internal/pki"
	"kurabe/internal/proc"
	"kurabe/internal/reconcile"
	"kurabe/internal/store"
	"kurabe/internal/wire/pg/scram"
	"kurabe/test/bench/bed"
)

const (
	// fleetEnv makes this program the fleet's service, in the folder it names.
	ServerEnv  = "KURABE_BENCH_FLEET"
	fleetReady = "fleet ready "
	// fleetProfileEnv names a file for a processor profile of the fleet's service.
	fleetProfileEnv = "KURABE_BENCH_PROFILE"

	fleetSecret  = "fleet"
	fleetAccount = "000000000000"
	fleetHost    = kurabe.HostID("host-fleet")
	// The host has room for any fleet: 64 processors and 1 PiB.
	fleetCPUs   = 64
	fleetMemory = int64(1) << 50
	fleetPool   = "127.66.0.0/16"
)

// Serve is the service as cmd/kurabe wires it, but for the engine.
func Serve(dir string) (failure error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if path := os.Getenv(fleetProfileEnv); path != "" {
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer func() {
			pprof.StopCPUProfile()
			failure = errors.Join(failure, f.Close())
		}()
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	ca, err := pki.Open(filepath.Join(dir, "pki"))
	if err != nil {
		return err
	}
	etcd, err := etcdnode.Start(ctx, etcdnode.Options{Dir: filepath.Join(dir, "etcd"), Log: log})
	if err != nil {
		return err
	}
	defer func() { failure = errors.Join(failure, etcd.Close()) }()
	kv := store.Etcd(etcd.Client())
	view := store.NewView(kv)
	var loops sync.WaitGroup
	defer loops.Wait()
	loopCtx, cancel := context.WithCancel(context.Background())
	defer cancel()
	loops.Go(func() { _ = view.Run(loopCtx) }) // each loop ends with its context only
	if err := view.WaitReady(ctx); err != nil {
		return err
	}
	link := hostlink.NewLocal(kv, ca, log)
	report, err := announceFleet(ctx, dir, link)
	if err != nil {
		return err
	}
	if err := hostSeen(ctx, view); err != nil {
		return err
	}
	servers := fake.New()
	a := agent.New(agent.Config{
		Host: fleetHost, Link: link, Engines: map[kurabe.EngineName]engine.Engine{kurabe.Postgres: servers}, Homes: filepath.Join(dir, "instances"),
		Usage: func(kurabe.InstanceID) (int64, error) { return 40 << 20, nil }, Log: log, Now: time.Now,
	})
	loops.Go(func() { _ = a.Run(loopCtx) })
	far := &fleetLink{dir: filepath.Join(dir, "far"), kv: kv, view: view, ca: ca, log: log, report: report}
	links, err := far.listen(loopCtx, &loops, link)
	if err != nil {
		return err
	}
	loops.Go(func() { far.obey(loopCtx, os.Stdout) })
	planner := reconcile.New(reconcile.Config{KV: kv, View: view, Log: log, Now: time.Now, Heard: links.Heard, Elect: elect(etcd, &far.term)})
	loops.Go(func() { _ = planner.Run(loopCtx) })
	loops.Go(func() { _ = etcd.Maintain(loopCtx) })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: fleetAPI(kv, view, ca, log)}
	loops.Go(func() { _ = server.Serve(listener) })
	fmt.Println(fleetReady + "http://" + listener.Addr().String())
	<-ctx.Done()
	return server.Close()
}

// hostSeen waits until requests will find the host.
func hostSeen(ctx context.Context, view *store.View) error {
	wake, stop := view.Subscribe()
	defer stop()
	for {
		if _, ok := view.Host(fleetHost); ok {
			return nil
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func elect(etcd *etcdnode.Node, term *fleetTerm) func(context.Context) (reconcile.Term, error) {
	return func(ctx context.Context) (reconcile.Term, error) {
		l, err := etcdnode.Elect(ctx, etcd.Client(), store.PlannerElectionKey, string(fleetHost))
		if err != nil {
			return reconcile.Term{}, err
		}
		fence := store.Fence{Key: l.Key, ModRevision: l.Revision}
		term.set(&hostlink.Election{Since: time.Now(), Fence: fence})
		resign := func() error {
			term.set(nil)
			return l.Resign()
		}
		return reconcile.Term{Fence: fence, Lost: l.Lost(), Resign: resign}, nil
	}
}

func fleetAPI(kv store.KV, view *store.View, ca *pki.CA, log *slog.Logger) http.Handler {
	info := ca.Info()
	c := control.New(scope.Scope{KV: kv, View: view, Region: bed.Region, Account: fleetAccount, Zones: fleetZones(), Now: time.Now}, control.Config{
		Verifiers: map[kurabe.EngineName]control.Verifier{kurabe.Postgres: scram.Verifier},
		Authority: control.Authority{Identifier: info.Identifier, Thumbprint: info.Thumbprint, NotBefore: info.ValidFrom, NotAfter: info.ValidTill},
	})
	return api.New(api.Config{
		Region: bed.Region, Account: fleetAccount, Log: log, Now: time.Now, Services: []api.Service{apirds.New(c).API()},
		Ready: func(context.Context) error { return view.Healthy() },
		Credentials: func(id string) (logkey.Secret, bool) {
			return logkey.Secret(fleetSecret), subtle.ConstantTimeCompare([]byte(id), []byte(bed.AccessKey)) == 1
		},
	})
}

func fleetZones() []string { return []string{bed.Region + "a", bed.Region + "b", bed.Region + "c"} }

// announceFleet tells of a host that is not there. Its catalogue is the real one,
// because settings make up most of what is stored of an instance.
func announceFleet(ctx context.Context, dir string, link hostlink.Link) (host kurabe.HostReport, err error) {
	driver := pg.New(pg.Config{Root: filepath.Join(dir, "engines")})
	versions, err := driver.Discover(ctx)
	if err != nil {
		return host, err
	}
	request := engine.TemplateRequest{Scratch: filepath.Join(dir, "scratch"), Dir: filepath.Join(dir, "template")}
	if os.Getuid() == 0 {
		uid, gid, err := agent.EngineUser("postgres")
		if err != nil {
			return host, err
		}
		request.User = &proc.Credential{UID: uid, GID: gid}
	}
	host = kurabe.HostReport{Host: fleetHost, Zones: fleetZones(), AddressPool: fleetPool, CPUs: fleetCPUs, MemoryBytes: fleetMemory,
		StorageBytes: fleetMemory, FreeBytes: fleetMemory, StartedAt: time.Now().UTC()}
	for _, name := range []string{"cpu", "memory", "io"} {
		host.Levers = append(host.Levers, kurabe.Lever{Name: name, Available: true})
	}
	for _, v := range versions {
		if v.Reason != "" || !v.Default {
			continue
		}
		request.Version = v
		catalog, err := driver.ReadCatalog(ctx, request)
		if err != nil {
			return host, err
		}
		if err := link.PutCatalog(ctx, fleetHost, catalog); err != nil {
			return host, err
		}
		v.Ready = true
		host.Engines = append(host.Engines, v)
	}
	if len(host.Engines) == 0 {
		return host, errors.New("no PostgreSQL is installed")
	}
	return host, link.PutHost(ctx, host)
}
