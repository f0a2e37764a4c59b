package main

import (
	"context"
	"fmt"
	"net"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// serverFlags are the flags that server and run share.
type Config struct {
	HostConfig
	Listen, Region, Account, Zones, Zone, HostListen string
	PeerListen, Join, TokenFile                      string
	VerifyEvery                                      time.Duration
	Names                                            NameConfig
	Etcd                                             EtcdConfig
	Given                                              *pflag.FlagSet // to tell a default from what was asked for
	joinedScope                                      *string        // scopeRegion of the service that this server has joined
}

// Defaults of a service on one machine.
const (
	defaultData    = "./.kurabe"
	defaultListen  = "127.0.0.1:7380"
	DefaultRegion  = "us-east-1"
	defaultAccount = "000000000000"
	// At full speed a copy made clients on the same disk wait ten times as long;
	// at this rate, three times (internal/engine/postgres/DESIGN.md).
	defaultCopyRate = 100
)

func (f *Config) add(c *cobra.Command) {
	fs := c.Flags()
	f.HostConfig.add(c)
	fs.StringVar(&f.Listen, "listen", defaultListen, "address and port of the API; port 0 chooses a free one")
	fs.StringVar(&f.Region, "region", DefaultRegion, "region of the resources; when given, requests must be signed for it")
	f.Given = fs
	fs.StringVar(&f.Account, "account", defaultAccount, "account id in resource names, 12 digits")
	fs.StringVar(&f.Zones, "zones", "", "availability zones, separated by commas (default REGIONa,REGIONb,REGIONc)")
	fs.StringVar(&f.Zone, "zone", "", "zones of this machine, out of --zones (default: all of them)")
	fs.StringVar(&f.HostListen, "host-listen", "", "address and port at which other hosts join, such as 10.0.0.1:7381 (default: none do)")
	fs.StringVar(&f.PeerListen, "peer-listen", "", "address and port at which other servers reach the state store of this one, when there are any (default: the port after --host-listen)")
	f.Etcd.add(fs)
	f.Names.add(fs)
	fs.DurationVar(&f.VerifyEvery, "verify-every", defaultVerifyEvery, "how often a backup of each DB instance is restored and checked, 0 for never")
}

// scopeRegion is the region that requests must be signed for. A service that was
// given none is the only one its clients know, whatever region they are set to.
func (f *Config) scopeRegion() string {
	if f.joinedScope != nil {
		return *f.joinedScope
	}
	if f.Given.Changed("region") {
		return f.Region
	}
	return ""
}

func (f *Config) zoneList() []string {
	if f.Zones != "" {
		return strings.Split(f.Zones, ",")
	}
	return []string{f.Region + "a", f.Region + "b", f.Region + "c"}
}

// hostZones are the zones of this machine.
func (f *Config) hostZones() []string {
	if f.Zone != "" {
		return strings.Split(f.Zone, ",")
	}
	return f.zoneList()
}

func (f *Config) check() error {
	if err := f.HostConfig.check(); err != nil {
		return err
	}
	if err := checkJoin(f.Join); err != nil {
		return err
	}
	if err := f.Etcd.Check(); err != nil {
		return err
	}
	if err := f.Names.check(); err != nil {
		return err
	}
	if f.HostListen != "" {
		if _, _, err := net.SplitHostPort(f.HostListen); err != nil {
			return fmt.Errorf("--host-listen %q is not HOST:PORT: %w", f.HostListen, err)
		}
	}
	if f.VerifyEvery < 0 {
		return fmt.Errorf("--verify-every %s is negative", f.VerifyEvery)
	}
	if len(f.Account) != 12 || strings.Trim(f.Account, "0123456789") != "" {
		return fmt.Errorf("--account %q is not 12 digits", f.Account)
	}
	if _, _, err := net.SplitHostPort(f.Listen); err != nil {
		return fmt.Errorf("--listen %q is not HOST:PORT: %w", f.Listen, err)
	}
	return nil
}

// checkZones is possible only when it is known whether the zones are another server's.
func (f *Config) checkZones() error {
	for _, zone := range f.hostZones() {
		if !slices.Contains(f.zoneList(), zone) {
			return fmt.Errorf("--zone %q is none of the zones %s", zone, strings.Join(f.zoneList(), ", "))
		}
	}
	return nil
}

func serverCommand() *cobra.Command {
	var f Config
	c := &cobra.Command{
		Use:   "server",
		Short: "Run the service: API, planner, state store and the agent of this host",
		Long: `Run the service on this machine. When it is ready it prints one line on standard
output, "kurabe ready http://HOST:PORT"; logs go to standard error.

SIGTERM and SIGINT end the service and leave the databases running; the next start
adopts them without touching a connection. With --stop-databases-on-exit they are
shut down cleanly instead, and started again by the next service.

With --join it becomes a further server of a service that runs: the token comes from
"kurabe hosts token --server" there, in KURABE_JOIN_TOKEN or a file, and works once. With
three servers the service survives the loss of any one. Further starts need neither.

With --etcd-endpoints the state is kept in an etcd of yours instead of one in DATA; several
services may share it, each with an --etcd-prefix of its own. Every server of a service
names the same etcd and prefix, at every start.

KURABE_ROOT_ACCESS_KEY and KURABE_ROOT_SECRET_KEY set the root credentials; otherwise
they are made at the first start and written to DATA/credentials.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			return Serve(ctx, &f, func(s *Service) error {
				fmt.Println("kurabe ready " + s.URL)
				return nil
			})
		},
	}
	f.add(c)
	f.addStop(c)
	c.Flags().StringVar(&f.Join, "join", "", "address and port of a server of the service (its --host-listen) that this one becomes another server of")
	c.Flags().StringVar(&f.TokenFile, "token-file", "", "file with the join token (default: the environment's "+JoinTokenVariable+")")
	return c
}

// serve runs a service until ctx ends or a part of it fails; ready is called
// once it answers.
func Serve(ctx context.Context, f *Config, ready func(*Service) error) error {
	if err := f.check(); err != nil {
		return err
	}
	log, err := f.logger()
	if err != nil {
		return err
	}
	data, err := f.enter()
	if err != nil {
		return err
	}
	s, err := startService(ctx, f, data, log)
	if err != nil {
		return err
	}
	log.Info("service ready", "url", s.URL)
	failure := ready(s)
	if failure == nil {
		failure = s.wait(ctx)
	}
	return s.end(failure, s.stopControl, s.close)
}
