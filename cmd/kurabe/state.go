package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kurabe/internal/etcdnode"
	"kurabe/internal/store"
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
	var f clientFlags
	var outside EtcdConfig
	c := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write all records of a running service, as of one moment, to a new file",
		Long: `Write all records of a running service, as of one moment, to a new file.

With --etcd-endpoints they are read from an etcd of yours, where no service has to run.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := outside.Check(); err != nil {
				return err
			}
			if outside.Given() {
				return writeState(args[0], func(w io.Writer) error { return outside.BackUp(cmd.Context(), w) })
			}
			c, err := f.client()
			if err != nil {
				return err
			}
			return writeState(args[0], func(w io.Writer) error {
				return c.fetch(cmd.Context(), "/kurabe/state/backup", w, stateBytesMax)
			})
		},
	}
	f.add(c)
	outside.add(c.Flags())
	return c
}

// writeState makes a file that is whole or absent. The verifiers of passwords are in it.
func writeState(path string, write func(io.Writer) error) error {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s is there already", path)
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

// restoreFlags are those of kurabe state restore.
type restoreFlags struct {
	data       string
	yes, pairs bool
	etcd       EtcdConfig
}

func stateRestoreCommand() *cobra.Command {
	var f restoreFlags
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
			data, err := filepath.Abs(f.data)
			if err != nil {
				return err
			}
			if err := f.etcd.Check(); err != nil {
				return err
			}
			if err := os.MkdirAll(data, 0o700); err != nil {
				return err
			}
			return alone(data, func() error { return f.restore(cmd.Context(), args[0], data) })
		},
	}
	c.Flags().StringVar(&f.data, "data", envOr("KURABE_DATA", defaultData), "data folder of the service (KURABE_DATA)")
	c.Flags().BoolVar(&f.yes, "yes", false, "do not ask")
	f.etcd.add(c.Flags())
	c.Flags().BoolVar(&f.pairs, "multi-az-as-of-backup", false, "restore Multi-AZ instances too, whose writer may be another one since")
	return c
}

func (f restoreFlags) restore(ctx context.Context, file, data string) error {
	dir := filepath.Join(data, "etcd")
	replaces := exists(dir) || exists(filepath.Join(data, externalEtcdFile))
	if replaces && !f.yes && !confirmed("The records in "+data+" are replaced, and kept beside.", filepath.Base(data)) {
		return errors.New("nothing was changed")
	}
	now := time.Now()
	records, err := f.records(ctx, file, now)
	if err != nil {
		return err
	}
	aside := func() error { return putAside(data, ".before-"+now.UTC().Format("20060102T150405")) }
	if f.etcd.Given() {
		err = f.restoreOutside(ctx, data, records, aside)
	} else {
		restored := dir + ".restored-" + now.UTC().Format("20060102T150405")
		err = etcdnode.Restore(ctx, restored, records, slog.New(slog.DiscardHandler))
		if err == nil {
			err = aside()
		}
		if err != nil {
			return errors.Join(err, os.RemoveAll(restored))
		}
		err = os.Rename(restored, dir)
	}
	if err != nil {
		return err
	}
	fmt.Printf("%d records are restored. Start the service.\n", len(records))
	return nil
}

// records reads a backup, and makes its records fit to be restored.
func (f restoreFlags) records(ctx context.Context, file string, now time.Time) ([]etcdnode.Record, error) {
	var pairs []string
	records, err := etcdnode.ReadBackup(ctx, file, func(key string, value []byte) ([]byte, bool, error) {
		if id, ok := store.GroupOf(key); ok {
			pairs = append(pairs, string(id))
		}
		return store.Renumber(store.Entry{Key: key, Value: value}, now)
	})
	if err == nil && len(pairs) > 0 && !f.pairs {
		err = fmt.Errorf("the backup has instances with several servers (%s), whose writer may be another one by now: their records are restored with --multi-az-as-of-backup only; read kurabe state restore --help", strings.Join(pairs, ", "))
	}
	return records, err
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// putAside keeps what says in a data folder where the state is, under other names.
func putAside(data, ending string) error {
	for _, name := range []string{"etcd", externalEtcdFile} {
		path := filepath.Join(data, name)
		if !exists(path) {
			continue
		}
		if err := os.Rename(path, path+ending); err != nil {
			return err
		}
		fmt.Printf("What was there is in %s.\n", path+ending)
	}
	return nil
}
