package snapshot

import (
	"errors"
	"fmt"
	"io"

	"kurabe"
	"kurabe/internal/blob"
)

// DamagedError is a snapshot that is not what was written, in its folder or in the
// repository. A store that is away, a full disk or a wrong key is none.
type DamagedError struct {
	Snapshot kurabe.SnapshotID
	Err      error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("snapshot %s is damaged: %v", e.Snapshot, e.Err)
}

// Unwrap gives what is wrong with it.
func (e *DamagedError) Unwrap() error { return e.Err }

// Retryable is false: what was lost does not come back by itself.
func (e *DamagedError) Retryable() bool { return false }

// Damaged tells what was lost from what is only out of reach.
func (e *DamagedError) Damaged() bool { return true }

func damaged(id kurabe.SnapshotID, format string, args ...any) error {
	return &DamagedError{id, fmt.Errorf(format, args...)}
}

// notAsWritten marks content that was read well and is not what was archived.
type notAsWritten struct{ error }

func wrong(format string, args ...any) error { return notAsWritten{fmt.Errorf(format, args...)} }

// judge makes damage of a failure that speaks of an archived object itself, and
// leaves what only hinders its reading or the writing here as it is. A snapshot whose
// record is there lacks no object unless somebody removed it.
func judge(id kurabe.SnapshotID, err error) error {
	var content notAsWritten
	if errors.As(err, &content) || errors.Is(err, blob.ErrDamaged) || errors.Is(err, blob.ErrNotFound) {
		return &DamagedError{id, err}
	}
	return err
}

func isDamage(err error) bool {
	var d *DamagedError
	return errors.As(err, &d)
}

// noted remembers the failure of a reader, so that it is not taken for one of the
// content by who parses that.
type noted struct {
	r   io.Reader
	err error
}

func (n *noted) Read(p []byte) (int, error) {
	got, err := n.r.Read(p)
	if err != nil && err != io.EOF {
		n.err = err
	}
	return got, err
}

// failed is what a failure to parse means: the reader's own, or wrong content.
func (n *noted) failed(err error) error {
	if n.err != nil {
		return n.err
	}
	return notAsWritten{unexpectedEnd(err)}
}
