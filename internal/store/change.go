package store

import (
	"context"
	"errors"
	"fmt"
)

// Change gathers the writes of one transaction and the conditions under which
// they hold. The typed methods (CreateInstance, PutStatus, …) live beside their
// resource. Methods return the Change; the first mistake is kept and Commit
// returns it, so a chain needs one check.
type Change struct {
	conds  []Cond
	ops    []Op
	events int // events added so far: orders those of one change
	// notified are the notifications so far, and unqueued what the view is told of those that
	// found no room, once this is committed.
	notified int
	unqueued []func()
	err      error
}

// Fence is proof of an election: the key holds exactly as long as the election
// does, so a change that compares it cannot be committed by a deposed planner.
type Fence struct {
	Key         string
	ModRevision int64
}

// NewChange returns an empty change.
func NewChange() *Change { return &Change{} }

// Require demands that the key was written last at modRevision; 0 demands that
// it does not exist.
func (c *Change) Require(key string, modRevision int64) *Change {
	c.conds = append(c.conds, Cond{Key: key, ModRevision: modRevision})
	return c
}

// RequireUnwritten demands that nothing under prefix was written after
// revision.
func (c *Change) RequireUnwritten(prefix string, revision int64) *Change {
	c.conds = append(c.conds, Cond{Key: prefix, ModRevision: revision, Prefix: true})
	return c
}

// RequireElected demands that the election still holds.
func (c *Change) RequireElected(f Fence) *Change {
	if f.Key == "" || f.ModRevision == 0 {
		return c.fail(errors.New("store: not a fence of an election"))
	}
	return c.Require(f.Key, f.ModRevision)
}

// Put writes raw bytes; the typed methods are preferred.
func (c *Change) Put(key string, value []byte) *Change {
	c.ops = append(c.ops, Op{Key: key, Value: value})
	return c
}

// Delete removes a key; removing an absent one is no error.
func (c *Change) Delete(key string) *Change {
	c.ops = append(c.ops, Op{Key: key, Delete: true})
	return c
}

// Size counts the conditions or the writes, whichever are more; Commit refuses
// more than TxnOpsMax.
func (c *Change) Size() int { return max(len(c.conds), len(c.ops)) }

// Empty says that there is nothing to write.
func (c *Change) Empty() bool { return len(c.ops) == 0 && c.err == nil }

// Commit writes everything or nothing and returns the revision that a View
// must reach to show it.
func (c *Change) Commit(ctx context.Context, kv KV) (int64, error) {
	if c.err != nil {
		return 0, c.err
	}
	revision, err := kv.Txn(ctx, c.conds, c.ops)
	if err == nil {
		for _, tell := range c.unqueued {
			tell()
		}
	}
	return revision, err
}

// put encodes a record and writes it. The segments are the parts of the key that
// came from outside; one that would change the key's shape is refused.
func (c *Change) put(key string, record any, segments ...string) *Change {
	for _, s := range segments {
		if !keySafe(s) {
			return c.fail(unsafeSegment(s))
		}
	}
	value, err := encode(key, record)
	if err != nil {
		return c.fail(err)
	}
	return c.Put(key, value)
}

func (c *Change) fail(err error) *Change {
	if c.err == nil {
		c.err = err
	}
	return c
}

func unsafeSegment(s string) error { return fmt.Errorf("store: %q cannot be part of a key", s) }
