package scope

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/store"
)

// Scope is an account in a region of one store. Its names are those of DB instances or, with
// Cluster, those of DB clusters, and of their snapshots and parameter groups.
type Scope struct {
	KV      store.KV
	View    *store.View
	Region  string
	Account string
	Zones   []string
	Now     func() time.Time
	Cluster bool

	// creating lets one create at a time check quotas and capacity and write: they all
	// depend on every resource, so side by side each would make the others try again.
	// Between servers the transaction's comparison does the same.
	creating *sync.Mutex
}

// New returns a scope that is ready for use.
func New(s Scope) Scope {
	s.creating = &sync.Mutex{}
	return s
}

// Of is the same scope with the names of clusters, or with those of instances.
func (s Scope) Of(cluster bool) Scope {
	s.Cluster = cluster
	return s
}

// maxTries bounds how often a request decides again because somebody else wrote
// the same record in between.
const maxTries = 16

// conflictPause is how long a conflicting request waits for the view to catch
// up; a watch delivers within milliseconds.
const conflictPause = 200 * time.Millisecond

// Commit writes a change and waits until this process sees it.
func (s Scope) Commit(ctx context.Context, change *store.Change) error {
	revision, err := change.Commit(ctx, s.KV)
	if err != nil {
		return err
	}
	return s.View.WaitRevision(ctx, revision)
}

// Update runs a decision again while its write conflicts: decide reads the view
// and returns the change to commit, nil for none. After a conflict the view may
// still be behind the other writer, so the next try waits for it to move.
func (s Scope) Update(ctx context.Context, decide func() (*store.Change, error)) error {
	for try := 0; try < maxTries; try++ {
		seen := s.View.Revision()
		change, err := decide()
		if err != nil || change == nil || change.Empty() {
			return err
		}
		err = s.Commit(ctx, change)
		if !errors.Is(err, store.ErrConflict) {
			return Error(err)
		}
		pause, cancel := context.WithTimeout(ctx, conflictPause)
		_ = s.View.WaitRevision(pause, seen+1) // a time-out only means: try again
		cancel()
	}
	return kurabe.Errorf(kurabe.CodeThrottled, "too many requests change the same resource; try again")
}

// Create is Update for what a quota or the capacity bounds: one at a time.
func (s Scope) Create(ctx context.Context, decide func() (*store.Change, error)) error {
	s.creating.Lock()
	defer s.creating.Unlock()
	return s.Update(ctx, decide)
}

// Error makes an error of the store fit for a user.
func Error(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrFull):
		return &kurabe.Error{Code: kurabe.CodeUnavailable, Message: "the state store has no space left; nothing was changed", Err: err}
	case errors.Is(err, store.ErrAway):
		return &kurabe.Error{Code: kurabe.CodeUnavailable, Message: "the state store cannot be reached; nothing was changed, and the databases keep running", Err: err}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return &kurabe.Error{Code: kurabe.CodeUnavailable, Message: "the state store did not answer in time; the request may or may not have been stored", Err: err}
	}
	return fmt.Errorf("write to the store: %w", err)
}

// ARN is the Amazon resource name of a resource: kind is db, cluster, pg, subgrp, og, …
func (s Scope) ARN(kind, name string) string {
	return "arn:aws:rds:" + s.Region + ":" + s.Account + ":" + kind + ":" + name
}

// ParseARN splits the ARN of a resource of this service into kind and name.
func (s Scope) ParseARN(arn string) (kind, name string, err error) {
	parts := strings.SplitN(arn, ":", 7)
	if len(parts) != 7 || parts[0] != "arn" || parts[2] != "rds" || parts[5] == "" || parts[6] == "" {
		return "", "", kurabe.Errorf(kurabe.CodeInvalidParameterValue, "Invalid resource name: %s", arn)
	}
	if parts[1] != "aws" || parts[3] != s.Region || parts[4] != s.Account {
		return "", "", kurabe.Errorf(kurabe.CodeInvalidParameterValue, "The specified resource name does not match an RDS resource in this region: %s", arn)
	}
	return parts[5], parts[6], nil
}

// Key is the name by which the store has a resource of that name.
func (s Scope) Key(name string) string { return kurabe.NameKey(name, s.Cluster) }

// Words are RDS's names of the resources of a scope.
type Words struct {
	DB, Group, Snapshot, Backup string // kinds of resource, in ARNs
	Noun, Title                 string // in a message, and where it begins one
	Is                          string // as RDS's names of parameters and errors begin
}

// Words are those of clusters or of instances.
func (s Scope) Words() Words {
	if s.Cluster {
		return Words{"cluster", "cluster-pg", "cluster-snapshot", "cluster-auto-backup", "DB cluster", "DB cluster", "DBCluster"}
	}
	return Words{"db", "pg", "snapshot", "auto-backup", "DB instance", "Database instance", "DBInstance"}
}

const maxDescription = 255 // RDS's

// CheckDescription checks the description of a group.
func CheckDescription(text string) error {
	if text == "" || len([]rune(text)) > maxDescription {
		return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "The description of a group has 1 to %d characters", maxDescription)
	}
	return nil
}

// HasFold says whether a list has a word, whatever the case.
func HasFold(list []string, word string) bool {
	return slices.ContainsFunc(list, func(s string) bool { return strings.EqualFold(s, word) })
}
