package store

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
)

// memoryHistoryMax bounds the history that a watch may start from; what is
// older counts as compacted.
const memoryHistoryMax = 10_000

// Memory is a KV in memory, for tests. It keeps the promises of Etcd and
// nothing on disk.
type Memory struct {
	mu sync.Mutex // guards everything below
	// entries are the present keys.
	entries map[string]Entry
	// history holds every change since revision compacted, one batch per
	// revision.
	history   []Batch
	revision  int64
	compacted int64
	// grown is closed and replaced when history grows or is compacted.
	grown chan struct{}
}

// NewMemory returns an empty store.
func NewMemory() *Memory {
	// etcd's first revision is 1, before any write.
	return &Memory{entries: map[string]Entry{}, revision: 1, grown: make(chan struct{})}
}

// Get implements KV.
func (m *Memory) Get(ctx context.Context, key string) (Entry, error) {
	if err := ctx.Err(); err != nil {
		return Entry{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.entries[key]
	if !ok {
		return Entry{Key: key}, nil
	}
	e.Value = bytes.Clone(e.Value)
	return e, nil
}

// List implements KV.
func (m *Memory) List(ctx context.Context, prefix string) ([]Entry, int64, error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Entry
	for key, e := range m.entries {
		if strings.HasPrefix(key, prefix) {
			e.Value = bytes.Clone(e.Value)
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b Entry) int { return strings.Compare(a.Key, b.Key) })
	return out, m.revision, nil
}

// Txn implements KV.
func (m *Memory) Txn(ctx context.Context, conds []Cond, ops []Op) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if err := checkTxn(conds, ops); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range conds {
		if !m.holdsLocked(c) {
			return 0, ErrConflict
		}
	}
	batch := Batch{Revision: m.revision + 1}
	for _, op := range ops {
		e := Entry{Key: op.Key, Value: bytes.Clone(op.Value), ModRevision: batch.Revision}
		if !op.Delete {
			m.entries[op.Key] = e
			batch.Events = append(batch.Events, KeyEvent{Entry: e})
			continue
		}
		if _, ok := m.entries[op.Key]; ok {
			delete(m.entries, op.Key)
			e.Value = nil
			batch.Events = append(batch.Events, KeyEvent{Entry: e, Deleted: true})
		}
	}
	if len(batch.Events) == 0 {
		return 0, nil
	}
	m.revision = batch.Revision
	m.history = append(m.history, batch)
	if len(m.history) > memoryHistoryMax {
		m.compactLocked(m.history[len(m.history)-memoryHistoryMax/2].Revision)
	}
	m.wakeLocked()
	return m.revision, nil
}

// Compact forgets the history up to and including that revision; a watch that
// still needs it gets a resync.
func (m *Memory) Compact(revision int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.compactLocked(min(revision, m.revision))
	m.wakeLocked()
}

// Watch implements KV.
func (m *Memory) Watch(ctx context.Context, prefix string, fromRevision int64) <-chan Batch {
	out := make(chan Batch)
	go func() {
		defer close(out)
		next := fromRevision
		for {
			batches, grown := m.since(prefix, &next)
			for _, b := range batches {
				select {
				case out <- b:
				case <-ctx.Done():
					return
				}
				if b.Resync {
					return
				}
			}
			select {
			case <-grown:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

// since returns the batches from *next on, moves *next past them, and a channel
// that closes when there may be more.
func (m *Memory) since(prefix string, next *int64) ([]Batch, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if *next <= m.compacted {
		return []Batch{{Resync: true}}, m.grown
	}
	var out []Batch
	for _, b := range m.history {
		if b.Revision < *next {
			continue
		}
		picked := Batch{Revision: b.Revision}
		for _, e := range b.Events {
			if strings.HasPrefix(e.Key, prefix) {
				e.Value = bytes.Clone(e.Value)
				picked.Events = append(picked.Events, e)
			}
		}
		if len(picked.Events) > 0 {
			out = append(out, picked)
		}
		*next = b.Revision + 1
	}
	return out, m.grown
}

func (m *Memory) holdsLocked(c Cond) bool {
	if !c.Prefix {
		return m.entries[c.Key].ModRevision == c.ModRevision
	}
	for key, e := range m.entries {
		if strings.HasPrefix(key, c.Key) && e.ModRevision > c.ModRevision {
			return false
		}
	}
	return true
}

func (m *Memory) compactLocked(revision int64) {
	m.compacted = max(m.compacted, revision)
	m.history = slices.DeleteFunc(m.history, func(b Batch) bool { return b.Revision <= m.compacted })
}

func (m *Memory) wakeLocked() {
	close(m.grown)
	m.grown = make(chan struct{})
}
