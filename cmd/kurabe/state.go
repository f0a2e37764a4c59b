package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"kurabe/cmd/kurabe/client"
	"kurabe/internal/etcdnode"
	"kurabe/internal/service"
)

// stateBytesMax bounds a backup of the state: etcd's quota.
const stateBytesMax = 2 << 30

func stateCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "state",
		Short: "Back up and restore the records of the service",
		Long: `Back up and restore the records of the service: instances, snapshots, hosts, events. A backup
has no data of databases (see kurabe snapshots and the guide to backups). It also lacks
DATA/pki, DATA/credentials and DATA/host.json, which hosts and clients need to recognize the
service: keep a copy of those too.`,
		Args: cobra.NoArgs,
	}
	c.AddCommand(stateBackupCommand(), stateRestoreCommand())
	return c
}

func stateBackupCommand() *cobra.Command {
	var f client.Flags
	var external service.EtcdConfig
	c := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write all records of a running service, as of one moment, to a new file",
		Long: `Write all records of a running service, as of one moment, to a new file.

With --etcd-endpoints they are read from your own etcd, and no service has to run.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := external.Check(); err != nil {
				return err
			}
			if external.Given() {
				return writeState(args[0], func(w io.Writer) error { return external.BackUp(cmd.Context(), w) })
			}
			c, err := f.Client()
			if err != nil {
				return err
			}
			return writeState(args[0], func(w io.Writer) error {
				return c.Fetch(cmd.Context(), "/kurabe/state/backup", w, stateBytesMax)
			})
		},
	}
	f.Add(c)
	addEtcdFlags(c.Flags(), &external)
	return c
}

// writeState makes a file that is whole or absent. The verifiers of passwords are in it.
func writeState(path string, write func(io.Writer) error) error {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s already exists", path)
	}
	out, err := os.CreateTemp(filepath.Dir(path), ".state-*")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name()) // gone after the rename
	if err := errors.Join(write(out), out.Sync(), out.Close()); err != nil {
		return err
	}
	if err := etcdnode.CheckBackup(out.Name()); err != nil {
		return err
	}
	return os.Rename(out.Name(), path)
}

func stateRestoreCommand() *cobra.Command {
	var f service.Restore
	var yes bool
	c := &cobra.Command{
		Use:   "restore FILE",
		Short: "Replace the records in a data folder by those of a backup",
		Long: `Replace the records in a data folder by those of a backup, while no service runs on it. The
old records are kept beside them. This server becomes the only one of the service: other
servers have to join it again (see the guide, "The state").

The hosts then follow the restored records. Changes since the backup are undone where that is
possible. Instances created since the backup are no longer in the records, and run on;
instances deleted since come back without data, and fail.

With --etcd-endpoints the records go into your own etcd, where the prefix must be empty.
Without it they go into the data folder, wherever they were before.

The backup may name a server as the primary of a Multi-AZ instance that no longer is. With
--multi-az-as-of-backup it is taken as the primary, and commits after a later failover MAY BE
LOST.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if f.Data, err = filepath.Abs(f.Data); err != nil {
				return err
			}
			if err := f.Etcd.Check(); err != nil {
				return err
			}
			if err := os.MkdirAll(f.Data, 0o700); err != nil {
				return err
			}
			f.Say = func(line string) { fmt.Println(line) }
			f.Confirm = func() bool {
				return yes || client.Confirmed("The records in "+f.Data+" are replaced, and kept beside.", filepath.Base(f.Data))
			}
			return alone(f.Data, func() error { return f.Run(cmd.Context(), args[0]) })
		},
	}
	c.Flags().StringVar(&f.Data, "data", client.EnvOr("KURABE_DATA", client.DefaultData), "data folder of the service (KURABE_DATA)")
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	addEtcdFlags(c.Flags(), &f.Etcd)
	c.Flags().BoolVar(&f.StalePairs, "multi-az-as-of-backup", false, "restore Multi-AZ instances too, whose primary may have changed since the backup")
	return c
}
