package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/blob"
	"kurabe/internal/volume"
)

// Archived is a snapshot that was found, or why its record cannot be used.
type Archived struct {
	ID     kurabe.SnapshotID
	Record Record
	Err    error
}

// readersAtOnce is how many records are read at a time: a store far away takes a tenth
// of a second for each, and serves many at once. A record is some KB.
const readersAtOnce = 16

// Each reads the record of each snapshot in the repository, several at a time, and
// gives it to found, one after the other in the order of ids. One of which skip says so
// is not read. It returns the error of found, or that of a repository that does not
// answer. What was read is remembered: nobody needs to ask for it again soon.
func (a *Archive) Each(ctx context.Context, skip func(kurabe.SnapshotID) bool, found func(Archived) error) error {
	store, err := a.repository()
	if err != nil {
		return fmt.Errorf("list the repository of backups: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var wait sync.WaitGroup
	defer wait.Wait()
	defer cancel()                                 // before the wait
	turns := make(chan chan read, readersAtOnce-1) // and the one that is waited for
	wait.Go(func() {
		defer close(turns)
		a.ask(ctx, store, skip, turns, &wait)
	})
	for turn := range turns {
		r := <-turn
		switch {
		case r.err != nil:
			return r.err
		case r.absent:
			continue // removed meanwhile
		}
		if err := found(r.Archived); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// read is what came of one record, or why nothing more comes.
type read struct {
	Archived
	absent bool
	err    error
}

// ask goes through the listing and has each record read; the order of turns is that of
// the listing, and their number what is under way at most.
func (a *Archive) ask(ctx context.Context, store blob.Store, skip func(kurabe.SnapshotID) bool, turns chan<- chan read, wait *sync.WaitGroup) {
	for info, err := range store.List(ctx, archivePrefix) {
		turn := make(chan read, 1)
		if err != nil {
			turn <- read{err: fmt.Errorf("list the repository of backups: %w", err)}
			select {
			case turns <- turn:
			case <-ctx.Done():
			}
			return
		}
		dir, ok := strings.CutSuffix(strings.TrimPrefix(info.Name, archivePrefix), "/"+recordName)
		if !ok || !idForm.MatchString(dir) || skip(kurabe.SnapshotID(dir)) {
			continue
		}
		select {
		case turns <- turn: // waits while there are as many as may be
		case <-ctx.Done():
			return
		}
		wait.Go(func() { turn <- a.readOne(ctx, store, kurabe.SnapshotID(dir)) })
	}
}

func (a *Archive) readOne(ctx context.Context, store blob.Store, id kurabe.SnapshotID) read {
	changes := a.changes()
	r, state, err := findArchived(ctx, store, id)
	switch {
	case ctx.Err() != nil:
		return read{err: context.Cause(ctx)}
	case blob.Retryable(err):
		return read{err: err} // of the repository, not of this record
	case err == nil && state == Complete:
		a.learn(id, entry{record: &r, at: time.Now()}, nil, state, changes)
	}
	return read{Archived: Archived{id, r, err}, absent: err == nil && state != Complete}
}

// All reads the record of each complete snapshot in the folder, in the order of ids.
func (s Store) All() ([]Archived, error) {
	entries, err := volume.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the snapshots of this host: %w", err)
	}
	var all []Archived
	for _, e := range entries {
		if !e.IsDir() || strings.Contains(e.Name(), ".") || !idForm.MatchString(e.Name()) {
			continue // what a removal left, or not ours
		}
		id := kurabe.SnapshotID(e.Name())
		r, state, err := s.Find(id)
		if err != nil || state == Complete {
			all = append(all, Archived{id, r, err})
		}
	}
	return all, nil
}
