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
	defaultCopyRate = 100
)

func addServerFlags(fs *pflag.FlagSet, f *service.Config) {
	addHostFlags(fs, &f.HostConfig)
	fs.StringVar(&f.Listen, "listen", client.DefaultListen, "address and port of the API; port 0 chooses a free one")
	fs.StringVar(&f.Region, "region", client.DefaultRegion, "region of the resources; when given, requests must be signed for it")
	f.Given = fs.Changed
	fs.StringVar(&f.Account, "account", defaultAccount, "account id in resource names, 12 digits")
	fs.StringVar(&f.Zones, "zones", "", "availability zones, separated by commas (default REGIONa,REGIONb,REGIONc)")
	fs.StringVar(&f.Zone, "zone", "", "zones of this machine, out of --zones (default: all of them)")
	fs.StringVar(&f.HostListen, "host-listen", "", "address and port at which other hosts join, such as 10.0.0.1:7381 (default: none do)")
	fs.StringVar(&f.PeerListen, "peer-listen", "", "address and port at which other servers reach the state store of this one, when there are any (default: the port after --host-listen)")
	addEtcdFlags(fs, &f.Etcd)
	addNameFlags(fs, &f.Names)
	fs.DurationVar(&f.VerifyEvery, "verify-every", defaultVerifyEvery, "how often a backup of each DB instance is restored and checked, 0 for never")
}

func addHostFlags(fs *pflag.FlagSet, f *service.HostConfig) {
	fs.StringVar(&f.Data, "data", client.DefaultData, "folder for everything that is kept")
	fs.StringVar(&f.AddressPool, "address-pool", "", "network of the endpoints: a loopback one, or a part of the network of an interface of this machine that nobody else uses, such as 10.0.0.64/27; needs root (default: a /24 below 127.66.0.0/16, chosen once)")
	fs.Int64Var(&f.CopyRate, "copy-rate", defaultCopyRate, "MiB/s at which a snapshot is read and written while clients work, and a copy is sent to a follower on another host (MariaDB), 0 for no bound; a clone costs none")
	fs.StringVar(&f.AccountIDs, "account-ids", "", "range of user ids, as 700000-799999, out of which each DB instance gets one of its own; nobody else on this machine may use them; needs root; none runs all instances of an engine as one user (default: the first free range of 100000 from 700000 on, chosen once)")
	addPoolFlags(fs, &f.Pool)
	addRepositoryFlags(fs, &f.Backups)
	fs.StringVar(&f.LogFormat, "log-format", "text", "text or json, on standard error")
	fs.StringVar(&f.LogLevel, "log-level", "info", "debug, info, warn or error")
}

func addPoolFlags(fs *pflag.FlagSet, f *service.PoolConfig) {
	fs.StringVar(&f.Kind, "pool", "", "loop: keep instances and snapshots in an XFS of our own, DATA/pool.img, where snapshots are instant; chosen at the first start, needs root")
	fs.StringVar(&f.Size, "pool-size", "", "size of the pool, such as 100GiB; larger than it is: it grows (default: as it is; a new one 80 % of the free disk)")
	fs.BoolVar(&f.Preallocate, "pool-preallocate", false, "take the whole size of the pool from the disk at once, so that nobody else can fill it")
}

func addRepositoryFlags(fs *pflag.FlagSet, f *service.RepositoryConfig) {
	fs.StringVar(&f.Location, "backup-repository", "", "folder, or s3://bucket/prefix?endpoint=…, that keeps backups (default DATA/repository, without snapshots)")
	fs.StringVar(&f.KeyFile, "backup-key-file", "", "file with the age key that encrypts the backup repository, chosen when it is made")
}

func addEtcdFlags(fs *pflag.FlagSet, f *service.EtcdConfig) {
	fs.StringVar(&f.Endpoints, "etcd-endpoints", "", "https://HOST:PORT of the members, separated by commas, of an etcd of yours that keeps the state (default: a store of the service's own in DATA/etcd)")
	fs.StringVar(&f.Prefix, "etcd-prefix", store.Family, "what all keys of this service in that etcd begin with; nobody else may have keys there")
	fs.StringVar(&f.CAFile, "etcd-cacert", "", "file with who signs the certificates of that etcd (default: whom this machine trusts)")
	fs.StringVar(&f.CertFile, "etcd-cert", "", "file with the certificate to show it")
	fs.StringVar(&f.KeyFile, "etcd-key", "", "file with the key of that certificate")
	fs.StringVar(&f.LoginFile, "etcd-login-file", "", "file with USER:PASSWORD for that etcd (default: the environment's "+service.EtcdUserVariable+" and "+service.EtcdPasswordVariable+")")
}

func addStopFlag(fs *pflag.FlagSet, f *service.HostConfig) {
	fs.BoolVar(&f.MaskStatements, "mask-statements", false, "keep statements of database load without their literals")
	fs.BoolVar(&f.StopDatabases, "stop-databases-on-exit", false, "shut the databases down cleanly at the end")
}

func addNameFlags(fs *pflag.FlagSet, f *service.NameConfig) {
	fs.StringVar(&f.Suffix, service.SuffixFlag, "", "domain that the names of endpoints end with, such as db.example: NAME.ID.REGION.rds.db.example. It is kept; an empty one takes the names away (default: what it was, at first none: clients are told addresses)")
	fs.StringVar(&f.Listen, "dns-listen", "", "address and port at which the names of endpoints are answered for, over UDP and TCP, such as 10.0.0.1:53 (default: nowhere; see kurabe exec)")
}
