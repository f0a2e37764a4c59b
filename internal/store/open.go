package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// family is the prefix of every layout of this service, this one's and others'.
const family = "/kurabe/"

// format is the record that marks a store as ours.
type format struct {
	Layout int `json:"layout"`
}

// Layout is the number in Root, the version of the state's format.
const Layout = 1

// Open makes sure that the store is one that this version may use, and marks an
// empty one. It changes nothing else: a store of another layout, one that holds
// records but no mark, or one whose records do not decode is refused with the
// keys in question.
func Open(ctx context.Context, kv KV) error {
	entries, _, err := kv.List(ctx, family)
	if err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	if len(entries) == 0 {
		return mark(ctx, kv)
	}
	marked := false
	check := newState()
	var errs []error
	for _, e := range entries {
		if !strings.HasPrefix(e.Key, Root) {
			return fmt.Errorf("open store: key %s is of another layout; this version knows %s only", e.Key, Root)
		}
		check.put(e)
		if e.Key == formatKey {
			marked = true
			errs = append(errs, checkFormat(e))
		}
	}
	if !marked {
		errs = append(errs, fmt.Errorf("there are %d records but no %s", len(entries), formatKey))
	}
	for _, c := range check.corruptSorted() {
		errs = append(errs, c)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	return nil
}

func mark(ctx context.Context, kv KV) error {
	_, err := NewChange().Require(formatKey, 0).put(formatKey, format{Layout: Layout}).Commit(ctx, kv)
	if err != nil && !errors.Is(err, ErrConflict) { // another server was first
		return fmt.Errorf("open store: %w", err)
	}
	return nil
}

func checkFormat(e Entry) error {
	f, err := decode[format](e)
	if err == nil && f.Layout != Layout {
		err = fmt.Errorf("%s says layout %d; this version knows %d", e.Key, f.Layout, Layout)
	}
	return err
}
