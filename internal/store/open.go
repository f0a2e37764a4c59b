package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Family is the prefix of every layout of this service, this one's and others'. In an etcd
// that is shared another one stands in its place.
const Family = "/kurabe/"

// FormatKey is the record that marks a store as ours, there from its first moment on.
const FormatKey = formatKey

// format is what is in it.
type format struct {
	Layout int `json:"layout"`
	// Service is whose store it is, where others could reach it; else "".
	Service string `json:"service,omitempty"`
}

// Layout is the number in Root, the version of the state's format.
const Layout = 1

// ErrForeign: the store belongs to another service.
var ErrForeign = errors.New("the records belong to another service")

// Open makes sure that the store is one that this version may use, and marks an
// empty one. It changes nothing else: a store of another layout, one that holds
// records but no mark, or one whose records do not decode is refused with the
// keys in question.
func Open(ctx context.Context, kv KV) error { return OpenOf(ctx, kv, "") }

// OpenOf is Open of a store that others can reach: it belongs to one service, which is known
// by the name, and is refused to every other one.
func OpenOf(ctx context.Context, kv KV, service string) error {
	for {
		entries, revision, err := kv.List(ctx, Family)
		if err != nil {
			return fmt.Errorf("open store: %w", err)
		}
		if len(entries) > 0 {
			return check(entries, service)
		}
		// Nor may anything have been written meanwhile: another one may have been first.
		_, err = NewChange().RequireUnwritten(Family, revision).Require(formatKey, 0).
			put(formatKey, format{Layout, service}).Commit(ctx, kv)
		if err == nil {
			return nil
		}
		if !errors.Is(err, ErrConflict) {
			return fmt.Errorf("open store: %w", err)
		}
	}
}

func check(entries []Entry, service string) error {
	marked := false
	check := newState()
	var errs []error
	for _, e := range entries {
		if !strings.HasPrefix(e.Key, Root) {
			return fmt.Errorf("open store: key %s has another layout or belongs to another program; this version knows %s only", e.Key, Root)
		}
		check.put(e)
		if e.Key == formatKey {
			marked = true
			errs = append(errs, checkFormat(e, service))
		}
	}
	if !marked {
		errs = append(errs, fmt.Errorf("there are %d records but no %s: a restore was interrupted", len(entries), formatKey))
	}
	for _, c := range check.corruptSorted() {
		errs = append(errs, c)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	return nil
}

func checkFormat(e Entry, service string) error {
	f, err := decode[format](e)
	switch {
	case err != nil:
		return err
	case f.Layout != Layout:
		return fmt.Errorf("%s has layout %d; this version knows %d", e.Key, f.Layout, Layout)
	case service != "" && f.Service != service:
		return ErrForeign
	}
	return nil
}
