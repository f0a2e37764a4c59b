package main

import (
	"github.com/spf13/pflag"

	"kurabe/cmd/kurabe/client"
	"kurabe/internal/service"
	"kurabe/internal/store"
)

const (
	defaultAccount = "000000000000"
	// At full speed a copy made clients on the same disk wait ten times as long;
	// at this rate, three times (internal/engine/postgres/DESIGN.md).
	defaultCopyRate  = 100
	defaultLogEvents = 10
)

func addServerFlags(fs *pflag.FlagSet, f *service.Config) {
	addHostFlags(fs, &f.HostConfig)
	fs.StringVar(&f.Listen, "listen", client.DefaultListen, "address and port of the API; port 0 chooses a free one")
	fs.StringVar(&f.Region, "region", client.DefaultRegion, "region of the resources; when given, requests must be signed for it")
	f.Given = fs.Changed
	fs.StringVar(&f.Account, "account", defaultAccount, "account id in resource names, 12 digits")
	fs.StringVar(&f.Zones, "zones", "", "availability zones, separated by commas (default REGIONa,REGIONb,REGIONc)")
	fs.StringVar(&f.Zone, "zone", "", "zones of this machine, out of --zones (default: all of them)")
	fs.StringVar(&f.HostListen, "host-listen", "", "address and port at which other hosts join, such as 10.0.0.1:7381 (default: no host can)")
	fs.StringVar(&f.PeerListen, "peer-listen", "", "address and port at which other servers of the service reach the state store of this one (default: the port after --host-listen)")
	addEtcdFlags(fs, &f.Etcd)
	addNameFlags(fs, &f.Names)
	addNotifyFlags(fs, &f.Notify)
	fs.DurationVar(&f.VerifyEvery, "verify-every", defaultVerifyEvery, "how often a backup of each DB instance is restored and checked; 0: never")
}

func addHostFlags(fs *pflag.FlagSet, f *service.HostConfig) {
	fs.StringVar(&f.Data, "data", client.DefaultData, "data folder of the service")
	fs.StringVar(&f.AddressPool, "address-pool", "", "network of endpoint addresses: loopback, or an unused part of the network of an interface of this machine, such as 10.0.0.64/27, which needs root (default: a /24 below 127.66.0.0/16, chosen once)")
	fs.Int64Var(&f.CopyRate, "copy-rate", defaultCopyRate, "maximum MiB/s of a snapshot that copies files, and of a copy for a standby on another host (MariaDB); 0: no limit; does not apply where the file system clones")
	fs.Int64Var(&f.LogEvents, "log-events", defaultLogEvents, "maximum GiB of log events that this host keeps, and half of it of one log group: the oldest are removed first")
	fs.StringVar(&f.AccountIDs, "account-ids", "", "range of user ids such as 700000-799999: each DB instance runs as a user id of its own from it; nothing else on this machine may use them; needs root; \"none\": all instances of an engine run as one user (default: the first free range of 100000 from 700000 on, chosen once)")
	addPoolFlags(fs, &f.Pool)
	addRepositoryFlags(fs, &f.Backups)
	fs.StringVar(&f.LogFormat, "log-format", "text", "text or json, on standard error")
	fs.StringVar(&f.LogLevel, "log-level", "info", "debug, info, warn or error")
}

func addPoolFlags(fs *pflag.FlagSet, f *service.PoolConfig) {
	fs.StringVar(&f.Kind, "pool", "", "\"loop\": keep instances and snapshots in an XFS image, DATA/pool.img, where snapshots are instant; fixed at the first start; needs root")
	fs.StringVar(&f.Size, "pool-size", "", "size of the pool, such as 100GiB; a larger value grows it (default: unchanged; a new pool takes 80 % of the free disk)")
	fs.BoolVar(&f.Preallocate, "pool-preallocate", false, "allocate the whole pool on the disk at once, so that nothing else can fill the disk")
}

func addRepositoryFlags(fs *pflag.FlagSet, f *service.RepositoryConfig) {
	fs.StringVar(&f.Location, "backup-repository", "", "folder, or s3://bucket/prefix?endpoint=…, that keeps backups (default DATA/repository, without snapshots)")
	fs.StringVar(&f.KeyFile, "backup-key-file", "", "file with the age key that encrypts the backup repository; fixed when the repository is created")
}

func addEtcdFlags(fs *pflag.FlagSet, f *service.EtcdConfig) {
	fs.StringVar(&f.Endpoints, "etcd-endpoints", "", "https://HOST:PORT of the members of your own etcd, separated by commas, which keeps the state (default: the service's own in DATA/etcd)")
	fs.StringVar(&f.Prefix, "etcd-prefix", store.Family, "prefix of all keys of this service in that etcd; nothing else may use it")
	fs.StringVar(&f.CAFile, "etcd-cacert", "", "file with the CA certificate of that etcd (default: this machine's trusted CAs)")
	fs.StringVar(&f.CertFile, "etcd-cert", "", "file with the client certificate for that etcd")
	fs.StringVar(&f.KeyFile, "etcd-key", "", "file with the key of the client certificate")
	fs.StringVar(&f.LoginFile, "etcd-login-file", "", "file with USER:PASSWORD for that etcd (default: the environment's "+service.EtcdUserVariable+" and "+service.EtcdPasswordVariable+")")
}

func addStopFlag(fs *pflag.FlagSet, f *service.HostConfig) {
	fs.BoolVar(&f.MaskStatements, "mask-statements", false, "keep statements of database load without their literals")
	fs.BoolVar(&f.StopDatabases, "stop-databases-on-exit", false, "shut the databases down cleanly at the end")
}

func addNotifyFlags(fs *pflag.FlagSet, f *service.NotifyConfig) {
	fs.StringVar(&f.PublicURL, "public-url", "", "URL by which subscribers reach the API, for the links in notifications (default: http:// and the address of --listen)")
	fs.StringSliceVar(&f.Allow, "notify-allow", nil, "address or network to which notifications may go although it is one of a link, of metadata or the service's own; may be given several times")
	fs.StringVar(&f.SMTPServer, "smtp-server", "", "HOST:PORT of the mail server for notifications by email; TLS with STARTTLS, or from the start at port 465 (default: no mail is sent)")
	fs.StringVar(&f.SMTPFrom, "smtp-from", "", "sender of these mails")
	fs.StringVar(&f.SMTPCredentials, "smtp-login-file", "", "file with USER:PASSWORD for that mail server (default: the environment's "+service.SMTPUserVariable+" and "+service.SMTPPasswordVariable+")")
}

func addNameFlags(fs *pflag.FlagSet, f *service.NameConfig) {
	fs.StringVar(&f.Suffix, service.SuffixFlag, "", "domain of endpoint names, such as db.example for NAME.ID.REGION.rds.db.example; kept for later starts; empty: endpoints are addresses (default: as at the last start, at first empty)")
	fs.StringVar(&f.Listen, "dns-listen", "", "address and port of a DNS server for endpoint names, such as 10.0.0.1:53 (default: none; see kurabe exec)")
}
