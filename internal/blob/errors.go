package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// What can be wrong. Every error of a Store is an *Error of at most one of these
// kinds; ask with errors.Is.
var (
	ErrNotFound        = errors.New("no such object")
	ErrExists          = errors.New("an object with this name and other content exists")
	ErrName            = errors.New("invalid object name")
	ErrNoRepository    = errors.New("no repository at this location")
	ErrOtherRepository = errors.New("this is another repository")
	ErrKey             = errors.New("wrong encryption key")
	ErrDamaged         = errors.New("the object is damaged")
	ErrDenied          = errors.New("access is denied")
	ErrFull            = errors.New("no space is left")
	ErrBusy            = errors.New("unexpected answer of the object store")
	ErrTooLarge        = errors.New("the object is too large")
	ErrUnsupported     = errors.New("not supported at this location")
)

// Error is what went wrong with one object.
type Error struct {
	Op    string // the method, in lower case
	Name  string // of the object, "" for the whole store
	Where string // location of the store
	Kind  error  // one of the above, or nil
	Err   error  // the cause, or nil
	Hint  string // what to do, or ""
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.Name != "" {
		fmt.Fprintf(&b, " %s", e.Name)
	}
	fmt.Fprintf(&b, " in %s", e.Where)
	for _, err := range []error{e.Kind, e.Err} {
		if err != nil {
			fmt.Fprintf(&b, ": %v", err)
		}
	}
	if e.Hint != "" {
		fmt.Fprintf(&b, " (%s)", e.Hint)
	}
	return b.String()
}

// Unwrap gives kind and cause.
func (e *Error) Unwrap() []error {
	var out []error
	for _, err := range []error{e.Kind, e.Err} {
		if err != nil {
			out = append(out, err)
		}
	}
	return out
}

// Retryable says that the same call is safe to repeat and may succeed without a
// change of our configuration: the store is slow, throttles or is cut off, a disk
// is full or not mounted yet. Wait in between; of the last two a person must know.
func (e *Error) Retryable() bool {
	return e.Kind == ErrBusy || e.Kind == ErrFull || e.Kind == ErrNoRepository || errors.Is(e.Err, context.DeadlineExceeded)
}

// Retryable is the same question to any error of this package. A cancelled
// context is no reason to come back.
func Retryable(err error) bool {
	var r interface{ Retryable() bool }
	if errors.As(err, &r) {
		return r.Retryable()
	}
	return errors.Is(err, context.DeadlineExceeded)
}

// source is what a Put reads from. It remembers its failure, so that the store's
// and the source's faults are not taken for each other on their way through
// libraries, and it ends when the context does.
type source struct {
	ctx context.Context
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	if s.err == nil && s.ctx.Err() != nil {
		s.err = context.Cause(s.ctx)
	}
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.r.Read(p)
	if err != nil {
		s.err = err
	}
	return n, err
}

// failed is the source's own error, nil if it has ended well or not at all.
func (s *source) failed() error {
	if s.err == nil || s.err == io.EOF {
		return nil
	}
	return fmt.Errorf("read the content to store: %w", s.err)
}
