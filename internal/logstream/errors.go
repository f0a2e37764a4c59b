package logstream

import (
	"errors"
	"fmt"
	"time"

	"kurabe"
)

// RangeError says that a moment or a snapshot is outside of what the log reaches.
type RangeError struct {
	Instance kurabe.InstanceID
	At       time.Time
	// From and To are what the run reaches that holds the snapshot; zero when none does.
	From, To time.Time
}

const errTime = "2006-01-02T15:04:05.000Z07:00"

func (e *RangeError) Error() string {
	if e.To.IsZero() {
		return fmt.Sprintf("out of range: no part of the log of %s belongs to this snapshot", e.Instance)
	}
	return fmt.Sprintf("out of range: requested %s, but the log of %s reaches from %s to %s",
		e.At.UTC().Format(errTime), e.Instance, e.From.UTC().Format(errTime), e.To.UTC().Format(errTime))
}

// Retryable is false: a moment that has passed comes into no run later.
func (e *RangeError) Retryable() bool { return false }

// MissingError is a gap: a piece that should be there is not.
type MissingError struct{ Piece string }

func (e *MissingError) Error() string {
	return fmt.Sprintf("gap in the log: piece %s is missing", e.Piece)
}

// Retryable is false.
func (e *MissingError) Retryable() bool { return false }

// Damaged tells what was lost from what is only out of reach.
func (e *MissingError) Damaged() bool { return true }

// DamagedError is a piece whose content is not what was kept.
type DamagedError struct {
	Piece string
	Err   error
}

func (e *DamagedError) Error() string { return fmt.Sprintf("piece %s is damaged: %v", e.Piece, e.Err) }
func (e *DamagedError) Unwrap() error { return e.Err }

// Retryable is false.
func (e *DamagedError) Retryable() bool { return false }

// Damaged is true.
func (e *DamagedError) Damaged() bool { return true }

// ErrFollowed refuses to remove or finish the log of an instance while Follow runs.
var ErrFollowed = errors.New("the log is being followed")

// ErrElsewhere is what a Log says of a mark whose place its server never had.
var ErrElsewhere = errors.New("the server's history does not contain this WAL position")

// gapError ends a run with a reason for people.
type gapError struct {
	reason string
	// moved: another server may have what follows.
	moved bool
}

func (e *gapError) Error() string { return e.reason }

var (
	errSpoolFull = errors.New("the spool is full")
	errNoRoom    = errors.New("waiting for room in the spool")
	errNoMark    = errors.New("no log was stored before")
	errNothing   = errors.New("no object of the log can be read in the repository")
	errLess      = errors.New("the repository holds less of the log than before")
	errNotYet    = errors.New("the log does not reach its mark yet")
)
