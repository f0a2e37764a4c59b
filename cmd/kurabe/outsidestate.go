package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

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
func (f restoreFlags) restoreOutside(ctx context.Context, data string, records []etcdnode.Record, aside func() error) error {
	dir := filepath.Join(data, "pki")
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
	x, kv, err := f.etcd.reach(ctx)
	if err != nil {
		return err
	}
	err = x.Apart(ctx)
	if err == nil {
		err = store.Fill(ctx, kv, ca.Digest(), entries, func() error {
			return errors.Join(aside(), keepExternalEtcd(data, f.etcd.Prefix, x.Seen()))
		})
	}
	if errors.Is(err, store.ErrFilled) {
		err = fmt.Errorf("prefix %s: %w: end every server that uses it and remove them (etcdctl del --prefix %s), or take another --etcd-prefix", f.etcd.Prefix, err, f.etcd.Prefix)
	}
	return errors.Join(err, x.Close())
}
