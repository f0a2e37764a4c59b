package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kurabe/internal/proc"
)

// serverFlags are the flags that server and run share.
type serverFlags struct {
	data, listen, region, account, zones string
	copyRate                             int64 // MiB/s
	verifyEvery                          time.Duration
	set                                  *pflag.FlagSet // to tell a default from what was asked for
	addressPool, logFormat, logLevel     string
	stopDatabases                        bool
	backups                              repositoryFlags
	pool                                 poolFlags
}

// Defaults of a service on one machine.
const (
	defaultData    = "./.kurabe"
	defaultListen  = "127.0.0.1:7380"
	defaultRegion  = "us-east-1"
	defaultAccount = "000000000000"
	// At full speed a copy made clients on the same disk wait ten times as long;
	// at this rate, three times (internal/engine/postgres/DESIGN.md).
	defaultCopyRate = 100
)

func (f *serverFlags) add(c *cobra.Command) {
	fs := c.Flags()
	fs.StringVar(&f.data, "data", defaultData, "folder for everything the service keeps")
	fs.StringVar(&f.listen, "listen", defaultListen, "address and port of the API; port 0 chooses a free one")
	fs.StringVar(&f.region, "region", defaultRegion, "region of the resources; when given, requests must be signed for it")
	f.set = fs
	fs.StringVar(&f.account, "account", defaultAccount, "account id in resource names, 12 digits")
	fs.StringVar(&f.zones, "zones", "", "availability zones, separated by commas (default REGIONa,REGIONb,REGIONc)")
	fs.StringVar(&f.addressPool, "address-pool", "", "loopback network of the endpoints (default: a /24 below 127.66.0.0/16, chosen once)")
	fs.Int64Var(&f.copyRate, "copy-rate", defaultCopyRate, "MiB/s at which a snapshot is read and written while clients work, 0 for no bound; a clone costs none")
	fs.DurationVar(&f.verifyEvery, "verify-every", defaultVerifyEvery, "how often a backup of each DB instance is restored and checked, 0 for never")
	f.pool.add(fs)
	f.backups.add(c)
	fs.StringVar(&f.logFormat, "log-format", "text", "text or json, on standard error")
	fs.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error")
}

// scopeRegion is the region that requests must be signed for. A service that was
// given none is the only one its clients know, whatever region they are set to.
func (f *serverFlags) scopeRegion() string {
	if f.set.Changed("region") {
		return f.region
	}
	return ""
}

func (f *serverFlags) zoneList() []string {
	if f.zones != "" {
		return strings.Split(f.zones, ",")
	}
	return []string{f.region + "a", f.region + "b", f.region + "c"}
}

func (f *serverFlags) check() error {
	if f.copyRate < 0 || f.copyRate > 1<<20 {
		return fmt.Errorf("--copy-rate %d is not from 0 to %d MiB/s", f.copyRate, 1<<20)
	}
	if f.verifyEvery < 0 {
		return fmt.Errorf("--verify-every %s is negative", f.verifyEvery)
	}
	if len(f.account) != 12 || strings.Trim(f.account, "0123456789") != "" {
		return fmt.Errorf("--account %q is not 12 digits", f.account)
	}
	if _, _, err := net.SplitHostPort(f.listen); err != nil {
		return fmt.Errorf("--listen %q is not HOST:PORT: %w", f.listen, err)
	}
	return nil
}

func (f *serverFlags) logger() (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.logLevel)); err != nil {
		return nil, fmt.Errorf("--log-level: %w", err)
	}
	options := &slog.HandlerOptions{Level: level}
	switch f.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(os.Stderr, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(os.Stderr, options)), nil
	}
	return nil, fmt.Errorf("--log-format %q is neither text nor json", f.logFormat)
}

func serverCommand() *cobra.Command {
	var f serverFlags
	c := &cobra.Command{
		Use:   "server",
		Short: "Run the service: API, planner, state store and the agent of this host",
		Long: `Run the service on this machine. When it is ready it prints one line on standard
output, "kurabe ready http://HOST:PORT"; logs go to standard error.

SIGTERM and SIGINT end the service and leave the databases running; the next start
adopts them without touching a connection. With --stop-databases-on-exit they are
shut down cleanly instead, and started again by the next service.

KURABE_ROOT_ACCESS_KEY and KURABE_ROOT_SECRET_KEY set the root credentials; otherwise
they are made at the first start and written to DATA/credentials.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			return serve(ctx, &f, func(s *service) error {
				fmt.Println("kurabe ready " + s.url)
				return nil
			})
		},
	}
	f.add(c)
	c.Flags().BoolVar(&f.stopDatabases, "stop-databases-on-exit", false, "shut the databases down cleanly when the service ends")
	return c
}

// Time limits of an end: SIGTERM ends the service within 5 s whatever hangs;
// databases that are to stop get as long as a checkpoint may take.
const (
	endLimit          = 4500 * time.Millisecond
	stopDatabasesTime = 5 * time.Minute
)

// serve runs a service until ctx ends or a part of it fails; ready is called
// once it answers.
func serve(ctx context.Context, f *serverFlags, ready func(*service) error) error {
	if err := f.check(); err != nil {
		return err
	}
	log, err := f.logger()
	if err != nil {
		return err
	}
	data, err := filepath.Abs(f.data)
	if err != nil {
		return err
	}
	if err := enterData(data); err != nil {
		return err
	}
	s, err := startService(ctx, f, data, log)
	if err != nil {
		return err
	}
	log.Info("service ready", "url", s.url)
	failure := ready(s)
	if failure == nil {
		failure = s.wait(ctx)
	}
	log.Info("service ends", "databases", map[bool]string{false: "keep running", true: "are stopped"}[f.stopDatabases])
	hardStop := time.AfterFunc(endLimit, func() {
		log.Error("the end took too long; databases are untouched")
		os.Exit(3)
	})
	s.stopControl()
	hardStop.Stop()
	if f.stopDatabases {
		stopCtx, cancel := context.WithTimeout(context.Background(), stopDatabasesTime)
		defer cancel()
		if err := s.agent.StopAll(stopCtx); err != nil && failure == nil {
			failure = fmt.Errorf("stop databases: %w", err)
		}
	}
	s.close()
	return failure
}

// enterData makes the data folder. As root, where a parent bars the engines'
// users, it starts the program again so that they see the folder elsewhere.
func enterData(data string) error {
	mode := os.FileMode(0o700)
	if os.Getuid() == 0 {
		mode = 0o711 // engines' users pass through to their own folders
	}
	if err := os.MkdirAll(data, mode); err != nil {
		return fmt.Errorf("make data folder: %w", err)
	}
	if err := os.Chmod(data, mode); err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	const nobody = 65534
	if os.Getuid() != 0 || proc.Bound() != "" || proc.Traversable(data, nobody, nobody) {
		return nil
	}
	h, err := loadHostFile(data, "")
	if err != nil {
		return err
	}
	err = proc.ReexecBound(data, filepath.Join("/run/kurabe", string(h.ID)))
	return fmt.Errorf("the engines' users may not enter a parent of %s, and it cannot be shown to them elsewhere (%w); choose another folder with --data, for example /var/lib/kurabe", data, err)
}
