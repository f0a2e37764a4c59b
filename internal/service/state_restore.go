package service

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

	"kurabe/internal/etcdnode"
	"kurabe/internal/pki"
	"kurabe/internal/store"
)

// reach connects to an etcd of others, for a command.
func (f *EtcdConfig) reach(ctx context.Context) (*etcdnode.External, store.KV, error) {
	access, err := f.access()
	if err != nil {
		return nil, nil, err
	}
	x := etcdnode.NewExternal(etcdnode.ExternalOptions{
		Access: access, Prefix: f.Prefix, Key: func(key string) string { return store.KeyAt(f.Prefix, key) }, Mark: store.FormatKey,
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	if err := x.Connect(ctx); err != nil {
		return nil, nil, errors.Join(err, x.Close())
	}
	return x, store.EtcdAt(x.Client(), f.Prefix), nil
}

// backUp writes what is below the prefix.
func (f *EtcdConfig) BackUp(ctx context.Context, w io.Writer) error {
	x, kv, err := f.reach(ctx)
	if err != nil {
		return err
	}
	entries, _, err := kv.List(ctx, store.Family)
	if err == nil && len(entries) == 0 {
		err = fmt.Errorf("there is nothing with the prefix %s", f.Prefix)
	}
	if err == nil {
		err = writeBackup(w, entries)
	}
	return errors.Join(err, x.Close())
}

// restoreOutside puts records into an etcd of others, for the service of a data folder.
func (f *Restore) restoreExternal(ctx context.Context, records []etcdnode.Record, aside func() error) error {
	data, dir := f.Data, filepath.Join(f.Data, "pki")
	if !exists(filepath.Join(dir, "ca.key")) {
		return fmt.Errorf("%s is not there: put the copies of DATA/pki, DATA/credentials and DATA/host.json back first; by them the service is known", filepath.Join(dir, "ca.key"))
	}
	ca, err := pki.Open(dir)
	if err != nil {
		return err
	}
	var entries []store.Entry
	for _, r := range records {
		entries = append(entries, store.Entry{Key: r.Key, Value: r.Value})
	}
	if of := store.ServiceOf(entries); of != "" && of != ca.Digest() {
		return fmt.Errorf("the backup is of another service than %s has the keys of: %w", data, store.ErrForeign)
	}
	x, kv, err := f.Etcd.reach(ctx)
	if err != nil {
		return err
	}
	err = x.Apart(ctx)
	if err == nil {
		err = store.Fill(ctx, kv, ca.Digest(), entries, func() error {
			return errors.Join(aside(), keepExternalEtcd(data, f.Etcd.Prefix, x.Seen()))
		})
	}
	if errors.Is(err, store.ErrFilled) {
		err = fmt.Errorf("prefix %s: %w: end every server that uses it and remove them (etcdctl del --prefix %s), or take another --etcd-prefix", f.Etcd.Prefix, err, f.Etcd.Prefix)
	}
	return errors.Join(err, x.Close())
}

// Restore puts the records of a backup in the place of those in a data folder.
type Restore struct {
	Data       string
	StalePairs bool // instances with several servers too, whose writer may be another one by now
	Etcd       EtcdConfig

	Confirm func() bool // that what is there may be replaced
	Say     func(line string)
}

// Run restores the records of a file, while no service runs on the data folder.
func (f *Restore) Run(ctx context.Context, file string) error {
	data, dir := f.Data, filepath.Join(f.Data, "etcd")
	if (exists(dir) || exists(filepath.Join(data, externalEtcdFile))) && !f.Confirm() {
		return errors.New("nothing was changed")
	}
	now := time.Now()
	records, err := f.records(ctx, file, now)
	if err != nil {
		return err
	}
	aside := func() error { return f.putAside(".before-" + now.UTC().Format("20060102T150405")) }
	if f.Etcd.Given() {
		err = f.restoreExternal(ctx, records, aside)
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
	f.Say(fmt.Sprintf("%d records are restored. Start the service.", len(records)))
	return nil
}

// records reads a backup, and makes its records fit to be restored.
func (f *Restore) records(ctx context.Context, file string, now time.Time) ([]etcdnode.Record, error) {
	var pairs []string
	records, err := etcdnode.ReadBackup(ctx, file, func(key string, value []byte) ([]byte, bool, error) {
		if id, ok := store.GroupOf(key); ok {
			pairs = append(pairs, string(id))
		}
		return store.Renumber(store.Entry{Key: key, Value: value}, now)
	})
	if err == nil && len(pairs) > 0 && !f.StalePairs {
		err = fmt.Errorf("the backup has instances with several servers (%s), whose writer may be another one by now: their records are restored with --multi-az-as-of-backup only; read kurabe state restore --help", strings.Join(pairs, ", "))
	}
	return records, err
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// putAside keeps what says in a data folder where the state is, under other names.
func (f *Restore) putAside(ending string) error {
	for _, name := range []string{"etcd", externalEtcdFile} {
		path := filepath.Join(f.Data, name)
		if !exists(path) {
			continue
		}
		if err := os.Rename(path, path+ending); err != nil {
			return err
		}
		f.Say("What was there is in " + path + ending + ".")
	}
	return nil
}
