package service

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"kurabe"
	"kurabe/internal/api"
	"kurabe/internal/api/ec2"
	ownapi "kurabe/internal/api/kurabe"
	"kurabe/internal/api/monitoring"
	"kurabe/internal/api/pi"
	"kurabe/internal/api/rds"
	"kurabe/internal/api/secretsmanager"
	"kurabe/internal/api/sns"
	"kurabe/internal/api/sts"
	"kurabe/internal/api/tagging"
	"kurabe/internal/connlimit"
	"kurabe/internal/control"
	"kurabe/internal/control/loggroup"
	"kurabe/internal/control/scope"
	"kurabe/internal/control/secret"
	"kurabe/internal/importer"
	"kurabe/internal/logkey"
	"kurabe/internal/logread"
	"kurabe/internal/metrics"
	"kurabe/internal/pki"
	"kurabe/internal/reconcile"
	"kurabe/internal/store"
)

// Time limits of the API's connections; a request body is at most 1 MiB.
const (
	headerTimeout = 10 * time.Second
	readTimeout   = 30 * time.Second
	writeTimeout  = 60 * time.Second
	idleTimeout   = 2 * time.Minute
	// headerBytesMax is far above what a signed request has, and below what many could fill
	// the memory with.
	headerBytesMax = 64 << 10
	// connectionsMax bounds the connections from one address, signed or not.
	connectionsMax = 2048
)

// scope is whose resources requests and the planner's server are about.
func (s *Service) scope(f *Config, kv store.KV) scope.Scope {
	return scope.Scope{KV: kv, View: s.view, Region: f.Region, Account: f.Account, Zones: f.zoneList(), Now: time.Now}
}

// openSecrets makes the use cases of secrets, for the API and for all who hand passwords on.
func (s *Service) openSecrets(f *Config, kv store.KV, ca *pki.CA) error {
	key, err := ca.Derive("kurabe secrets 1")
	if err != nil {
		return err
	}
	s.secrets = secret.Secrets{Scope: scope.New(s.scope(f, kv)), Sealer: secret.NewSealer(key)}
	if n := s.secrets.Foreign(); n > 0 {
		s.log.Error("values of secrets cannot be opened: they were sealed with another key", "versions", n, logkey.Reason, secret.WordsOtherKey)
	}
	return nil
}

// newControl is the use cases over the service's state.
func (s *Service) newControl(f *Config, kv store.KV, ca *pki.CA) *control.Control {
	info := ca.Info()
	return control.New(s.scope(f, kv), control.Config{
		RemoveMember: s.removeMember, Verifiers: verifiers(),
		Authority: control.Authority{Identifier: info.Identifier, Thumbprint: info.Thumbprint, NotBefore: info.ValidFrom, NotAfter: info.ValidTill},
		Logs:      logFiles{s.hosts(), s.host.ID, s.view}, Secrets: s.secrets,
	})
}

func (s *Service) startAPI(loopCtx context.Context, f *Config, data string, kv store.KV, ca *pki.CA, listener net.Listener) error {
	c := s.newControl(f, kv, ca)
	if err := s.startNames(loopCtx, f, kv, c); err != nil {
		return err
	}
	token, err := metricsToken(data)
	if err != nil {
		return fmt.Errorf("token of metrics: %w", err)
	}
	own := s.newAPI(loopCtx, c, ca)
	events := s.logs(loggroup.Groups{Scope: c.Scope})
	server := api.New(api.Config{
		Region: f.Region, ScopeRegion: f.scopeRegion(), Account: f.Account, Log: s.log, Now: time.Now,
		Services: []api.Service{rds.New(c).API(), sts.API(), tagging.API(c), ec2.API(c), monitoring.API(c, s.allSeries()),
			pi.API{Control: c, Source: allLoad{s.hosts(), s.hostIDs}, Now: func() int64 { return time.Now().Unix() }}.Service(), events.Service(), sns.API(s.topics), secretsmanager.API(c), own.Service()},
		Ready: func(context.Context) error { return errors.Join(s.view.Healthy(), s.external.healthy()) },
		Credentials: func(id string) (logkey.Secret, bool) {
			return s.Credentials.Secret, subtle.ConstantTimeCompare([]byte(id), []byte(s.Credentials.AccessKey)) == 1
		},
	})
	server.Handle("GET /ca.pem", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-pem-file")
		w.Write(ca.PEM())
	}))
	server.Handle("GET "+certificatePath+"{name}", http.HandlerFunc(s.signingCertificate))
	look := pageSource{c, s.allSeries(), allLoad{s.hosts(), s.hostIDs}, own.Following, func() []kurabe.SnapshotKnown { return reconcile.Snapshots(s.view) }}
	server.Handle("GET /metrics", metricsPage{token, s.view.Healthy, func(ctx context.Context) metrics.Page { return s.addNotifications(look.page(ctx)) }})
	server.Handle("GET /kurabe/state/backup", server.Signed(func(w http.ResponseWriter, r *http.Request) error { return s.etcd.BackupTo(r.Context(), w) }))
	s.http = &http.Server{Handler: server, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: headerBytesMax, ConnState: connlimit.New(connectionsMax).Watch, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug)}
	secure := api.SecurePort(listener, &tls.Config{GetCertificate: s.portCertificate(ca), NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12})
	s.URL = "http://" + listener.Addr().String()
	s.loop("log groups", func() error { return s.keepLogGroups(loopCtx, events) })
	s.loop("metrics of instances", func() error { return s.sampleInstances(loopCtx, c) })
	s.loop("notifications without room", func() error { return s.deliverer.TellUnqueued(loopCtx) })
	s.loop("API", func() error {
		if err := s.http.Serve(secure); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	return nil
}

// newAPI makes the service "kurabe".
func (s *Service) newAPI(loopCtx context.Context, c *control.Control, ca *pki.CA) ownapi.API {
	imports := importer.New(s.archive, snapshotsOf(s.base), c, s.log)
	s.loop("import", func() error { return imports.Run(loopCtx) })
	return ownapi.API{Config: ownapi.Config{
		Control: c, Hosts: s.hosts(), Logs: logread.Hosts{Ask: s.hosts(), IDs: s.hostIDs}, Importer: imports, CheckImport: func(id string) error { return s.repo.checkImport(id, s.archive != nil) },
		Following: s.newFollowings().look, Authority: ca.Digest(), JoinAddress: s.hostAddress, CheckServers: s.canHaveServers, ServerOptions: s.external.flags(),
	}}
}
