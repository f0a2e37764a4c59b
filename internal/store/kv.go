package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// RecordBytesMax bounds one record as written. Bulk bytes never pass through
// the store: it is replicated, kept in memory and read whole at start.
const RecordBytesMax = 100 << 10

// TxnOpsMax bounds the conditions, and separately the writes, of one
// transaction. It is etcd's own default (embed.DefaultMaxTxnOps), so an
// external cluster with default settings works too, less the condition that
// is added there.
const TxnOpsMax = 127

// Errors of the seam.
var (
	// ErrConflict: a condition did not hold and nothing was written. Read again
	// and decide again.
	ErrConflict = errors.New("store: a record changed since it was read")
	// ErrFull: the store's quota or the disk is full and nothing was written.
	ErrFull = errors.New("store: no space left for records")
)

// CorruptError is a record that exists and cannot be understood.
type CorruptError struct {
	Key string
	Err error
}

// Error implements error.
func (e *CorruptError) Error() string { return fmt.Sprintf("record %s is corrupt: %v", e.Key, e.Err) }

// Unwrap returns why the record does not decode.
func (e *CorruptError) Unwrap() error { return e.Err }

// Entry is one stored key. ModRevision is the revision of its last write; an
// Entry with ModRevision 0 does not exist.
type Entry struct {
	Key         string
	Value       []byte
	ModRevision int64
}

// Cond is one condition of a transaction.
type Cond struct {
	// Key must have been written last at ModRevision exactly; 0 means that it
	// must not exist.
	Key         string
	ModRevision int64
	// Prefix turns Key into a prefix under which nothing may have been written
	// after ModRevision. Deletions do not count.
	Prefix bool
}

// Op is one write of a transaction.
type Op struct {
	Key    string
	Value  []byte
	Delete bool
}

// KeyEvent is one key that was written or deleted.
type KeyEvent struct {
	Entry
	Deleted bool
}

// Batch is what a watch delivers: every event up to Revision that was not
// delivered before. The events of one transaction are never split. Resync says
// that events were lost (the history was compacted, or the watch broke): the
// reader must List again, and the channel closes.
type Batch struct {
	Revision int64
	Events   []KeyEvent
	Resync   bool
}

// KV is a key-value store with revisions. A revision is one committed
// transaction; revisions rise and never repeat.
type KV interface {
	// Get returns the entry; ModRevision is 0 when there is none.
	Get(ctx context.Context, key string) (Entry, error)
	// List returns everything under prefix, sorted by key, as of one revision,
	// which it returns too.
	List(ctx context.Context, prefix string) ([]Entry, int64, error)
	// Txn applies every op or none. It returns the revision that a View must
	// reach to show the writes, 0 when nothing changed (only deletes of absent
	// keys). ErrConflict means that a condition failed; any other error leaves
	// open whether the writes happened.
	Txn(ctx context.Context, conds []Cond, ops []Op) (int64, error)
	// Watch delivers what happens under prefix from that revision on,
	// inclusive, until ctx ends; then the channel closes.
	Watch(ctx context.Context, prefix string, fromRevision int64) <-chan Batch
}

// checkTxn refuses what one implementation would accept and the other not.
func checkTxn(conds []Cond, ops []Op) error {
	if len(conds) > TxnOpsMax || len(ops) > TxnOpsMax {
		return fmt.Errorf("store: transaction of %d conditions and %d writes; at most %d each", len(conds), len(ops), TxnOpsMax)
	}
	seen := make(map[string]bool, len(ops))
	for _, op := range ops {
		if seen[op.Key] {
			return fmt.Errorf("store: transaction writes %s twice", op.Key)
		}
		seen[op.Key] = true
		if !strings.HasPrefix(op.Key, Root) {
			return fmt.Errorf("store: key %q is outside %s", op.Key, Root)
		}
		if !op.Delete && len(op.Value) > RecordBytesMax {
			return fmt.Errorf("store: record %s has %d bytes; at most %d", op.Key, len(op.Value), RecordBytesMax)
		}
	}
	return nil
}
