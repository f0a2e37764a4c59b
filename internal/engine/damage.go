package engine

import (
	"errors"

	"kurabe"
	"kurabe/internal/snapshot"
)

// damaged is an error that says of itself that what was read is not whole, rather
// than out of reach.
type damaged interface{ Damaged() bool }

func isDamage(err error) bool {
	var d damaged
	return errors.As(err, &d) && d.Damaged()
}

// RestoreError is a restore that can never succeed: what it reads is damaged.
type RestoreError struct {
	Kind kurabe.FailureKind // FailureSnapshot or FailureLog
	Err  error
}

// Error implements error.
func (e *RestoreError) Error() string { return e.Err.Error() }

// Unwrap gives what is damaged.
func (e *RestoreError) Unwrap() error { return e.Err }

// Retryable is false.
func (e *RestoreError) Retryable() bool { return false }

// judgeRestore says of a failed restore if it is one for good.
func judgeRestore(err error) error {
	var s *snapshot.DamagedError
	switch {
	case errors.As(err, &s):
		return &RestoreError{kurabe.FailureSnapshot, err}
	case isDamage(err):
		return &RestoreError{kurabe.FailureLog, err}
	}
	return err
}
