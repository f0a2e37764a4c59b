package control

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/logkey"
	"kurabe/internal/store"
)

// maxTries bounds how often a request decides again because somebody else wrote
// the same record in between.
const maxTries = 16

// Authority is what the API tells of the internal certificate authority.
type Authority struct {
	Identifier string
	Thumbprint string
	NotBefore  time.Time
	NotAfter   time.Time
}

// Verifier turns a password into what an engine checks it with.
type Verifier func(password logkey.Secret) (string, error)

// Config is what a Control needs.
type Config struct {
	KV        store.KV
	View      *store.View
	Region    string
	Account   string
	Zones     []string
	Authority Authority
	// Verifiers has one for each engine.
	Verifiers map[kurabe.EngineName]Verifier
	Logs      LogSource
	// RemoveMember takes a server out of those that hold the state, or says why it stays;
	// one that is out already is no error. nil where there is one server.
	RemoveMember func(context.Context, kurabe.JoinedHost) error
	Now          func() time.Time
}

// Control is the use cases over one store, those of DB instances or, of Clusters, those of
// DB clusters: names are looked for among the ones or the others.
type Control struct {
	Config
	cluster bool

	// creating lets one create at a time check the capacity and write: they all
	// depend on every instance, so side by side each would make the others try
	// again. Between servers the transaction's comparison does the same.
	creating *sync.Mutex
}

// New returns a Control.
func New(c Config) *Control { return &Control{Config: c, creating: &sync.Mutex{}} }

// commit writes a change and waits until this process sees it.
func (c *Control) commit(ctx context.Context, change *store.Change) error {
	revision, err := change.Commit(ctx, c.KV)
	if err != nil {
		return err
	}
	return c.View.WaitRevision(ctx, revision)
}

// update runs a decision again while its write conflicts: decide reads the view
// and returns the change to commit, nil for none. After a conflict the view may
// still be behind the other writer, so the next try waits for it to move.
func (c *Control) update(ctx context.Context, decide func() (*store.Change, error)) error {
	for try := 0; try < maxTries; try++ {
		seen := c.View.Revision()
		change, err := decide()
		if err != nil || change == nil || change.Empty() {
			return err
		}
		err = c.commit(ctx, change)
		if !errors.Is(err, store.ErrConflict) {
			return c.storeError(err)
		}
		pause, cancel := context.WithTimeout(ctx, conflictPause)
		_ = c.View.WaitRevision(pause, seen+1) // a time-out only means: try again
		cancel()
	}
	return kurabe.Errorf(kurabe.CodeThrottled, "too many requests change the same resource; try again")
}

// conflictPause is how long a conflicting request waits for the view to catch
// up; a watch delivers within milliseconds.
const conflictPause = 200 * time.Millisecond

// storeError makes what the store says fit for a user.
func (c *Control) storeError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrFull):
		return &kurabe.Error{Code: kurabe.CodeUnavailable, Message: "the state store has no space left; nothing was changed", Err: err}
	case errors.Is(err, store.ErrAway):
		return &kurabe.Error{Code: kurabe.CodeUnavailable, Message: "the state store is not reached at this moment; nothing was changed, and databases go on", Err: err}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return &kurabe.Error{Code: kurabe.CodeUnavailable, Message: "the state store did not answer in time; the request may or may not have been stored", Err: err}
	}
	return fmt.Errorf("write to the store: %w", err)
}

// ARN is the Amazon resource name of a resource: kind is db, cluster, pg, subgrp, og, …
func (c *Control) ARN(kind, name string) string {
	return "arn:aws:rds:" + c.Region + ":" + c.Account + ":" + kind + ":" + name
}

// MarkerPage cuts one page out of a sorted list. marker is the name that the
// page starts after, max how many items; it returns the next marker, "" at the
// end.
func MarkerPage[T any](list []T, name func(T) string, marker string, max int) ([]T, string) {
	start := 0
	if marker != "" {
		for start < len(list) && name(list[start]) <= marker {
			start++
		}
	}
	list = list[start:]
	if len(list) <= max {
		return list, ""
	}
	return list[:max], name(list[max-1])
}
