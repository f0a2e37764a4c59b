package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// fillingKey is there while a store is filled: what it holds is not a state yet.
const fillingKey = Root + "filling"

// fillOps is how many records are written at a time: etcd takes 1.5 MiB.
const fillOps = 10

// ErrFilled: the store holds records.
var ErrFilled = errors.New("the store already has records")

// Fill puts records of a backup into an empty store, or one in which a Fill was cut off. It
// is no state, and Open refuses it, until the last step, which makes it the service's; before
// that comes settle, for what must be true from then on.
func Fill(ctx context.Context, kv KV, service string, records []Entry, settle func() error) error {
	there, revision, err := kv.List(ctx, Family)
	if err != nil {
		return fmt.Errorf("fill store: %w", err)
	}
	if len(there) > 0 && !cut(there) {
		return fmt.Errorf("fill store: %w", ErrFilled)
	}
	_, err = NewChange().RequireUnwritten(Family, revision).Require(formatKey, 0).Put(fillingKey, []byte("{}")).Commit(ctx, kv)
	if err != nil {
		return fmt.Errorf("fill store: %w", err)
	}
	for part := range slices.Chunk(there, fillOps) {
		change := NewChange()
		for _, e := range part {
			if e.Key != fillingKey {
				change.Delete(e.Key)
			}
		}
		if _, err := change.Require(formatKey, 0).Commit(ctx, kv); err != nil {
			return fmt.Errorf("fill store: %w", err)
		}
	}
	for part := range slices.Chunk(records, fillOps) {
		change := NewChange().Require(formatKey, 0)
		for _, e := range part {
			if e.Key == formatKey {
				if err := checkFormat(e, ""); err != nil {
					return fmt.Errorf("fill store: %w", err)
				}
				continue
			}
			change.Put(e.Key, e.Value)
		}
		if _, err := change.Commit(ctx, kv); err != nil {
			return fmt.Errorf("fill store: %w", err)
		}
	}
	if err := settle(); err != nil {
		return err
	}
	_, err = NewChange().Require(formatKey, 0).put(formatKey, format{Layout, service}).Delete(fillingKey).Commit(ctx, kv)
	if err != nil {
		return fmt.Errorf("fill store: %w", err)
	}
	return nil
}

// cut says whether what is there is what a Fill has left.
func cut(there []Entry) bool {
	marked := slices.ContainsFunc(there, func(e Entry) bool { return e.Key == formatKey })
	return !marked && slices.ContainsFunc(there, func(e Entry) bool { return e.Key == fillingKey })
}

// ServiceOf says whose state the records are of, "" when they do not say.
func ServiceOf(records []Entry) string {
	for _, e := range records {
		if e.Key == formatKey {
			if f, err := decode[format](e); err == nil {
				return f.Service
			}
		}
	}
	return ""
}
