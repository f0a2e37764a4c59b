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
		Short: "Back the service's own records up, and restore them",
		Long: `Back up and restore what the service knows: instances, snapshots, hosts, events. Data of
databases is not in it (see kurabe snapshots and the guide to backups), nor are the keys in
DATA/pki, DATA/credentials and DATA/host.json, without which no host and no client knows the
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

With --etcd-endpoints they are read from an etcd of yours, where no service has to run.`,
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
		Short: "Put the records of a backup in the place of those in a data folder",
		Long: `Put the records of a backup in the place of those in a data folder, while no service runs on
it. What was there is kept beside it. It makes the only server of the service: the others
have to come back to it (see the guide, "The state").

Hosts obey the restored records: all orders get numbers above any that they have seen. So
what was changed since the backup is changed back, where it can be; instances that were
made since are known to nobody, and run on; those that were deleted since come back as
records without data, and fail.

With --etcd-endpoints they go into an etcd of yours, where the prefix must be empty, and the
data folder is told that they are there; without, into the folder, wherever they were.

Of a Multi-AZ instance the backup may not know who writes. With --multi-az-as-of-backup its
word is taken, and what was written since a failover after it MAY BE LOST.`,
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
	c.Flags().BoolVar(&f.StalePairs, "multi-az-as-of-backup", false, "restore Multi-AZ instances too, whose writer may be another one since")
	return c
}
