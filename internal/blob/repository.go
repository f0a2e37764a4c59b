package blob

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Options of Init and Open.
type Options struct {
	// Key encrypts the repository. It is chosen by Init, for good: a repository
	// where some objects are encrypted and others are not would protect nothing.
	Key *Key

	// ID is what Init gave. With it Open refuses any other repository, for example
	// of another disk at the same mount point. "" accepts what is there.
	ID string
}

// Repository is an open repository. As a Store it compresses, checks and encrypts.
type Repository struct {
	Store
	ID string

	raw Place
	key *Key
}

// Raw is the Store below, for clones and for looking at an object as it is stored.
// A name is used through one of the two only.
func (r *Repository) Raw() Store { return r.raw }

// Verify reads the repository's mark anew: nil while the same repository answers that was
// opened, ErrNoRepository or ErrOtherRepository once it does not. Whoever takes "no such
// object" for a loss asks this first: an unmounted disk, an emptied folder and a wrong
// bucket say the same of every object.
func (r *Repository) Verify(ctx context.Context) error {
	_, err := openAt(ctx, r.raw, Options{Key: r.key, ID: r.ID})
	return err
}

// Cloner is the way to add local files without copying. There is none in S3, and
// none in an encrypted repository, whose objects are never files as they are.
func (r *Repository) Cloner() (Cloner, bool) {
	cloner, ok := r.raw.(Cloner)
	return cloner, ok && r.key == nil
}

// mark is the content of markName.
type mark struct {
	Comment string    `json:"comment"`
	Version int       `json:"version"`
	ID      string    `json:"id"`
	Created time.Time `json:"created"`
	// KeyCheck is the ID, encrypted: it tells a wrong key before a backup is made
	// with it. Absent where nothing is encrypted.
	KeyCheck []byte `json:"keyCheck,omitempty"`
}

const (
	markVersion  = 1
	markBytesMax = 64 << 10
	markComment  = "This file marks a repository of database backups made by Kurabe. Without it, Kurabe does not find the backups."
)

// Place is a Store that can hold the mark of a repository.
type Place interface {
	Store
	// ReadMark reads it anew; ErrNoRepository where there is none.
	ReadMark(context.Context) ([]byte, error)
	// WriteMark writes it, and leaves one alone that is there.
	WriteMark(context.Context, []byte) error
}

// Init makes a repository at a location that holds nothing yet, and opens it. One
// that is there already is opened. Call it when a person says so, once; remember
// the ID; then call Open.
func Init(ctx context.Context, text string, o Options) (*Repository, error) {
	where, err := locate(ctx, text)
	if err != nil {
		return nil, err
	}
	return InitAt(ctx, where, o)
}

// Open opens the repository at a location: an absolute folder, or
// s3://bucket/prefix?endpoint=…&region=…&profile=…&style=path|virtual.
func Open(ctx context.Context, text string, o Options) (*Repository, error) {
	where, err := locate(ctx, text)
	if err != nil {
		return nil, err
	}
	return openAt(ctx, where, o)
}

func locate(ctx context.Context, text string) (Place, error) {
	loc, err := parseLocation(text)
	if err != nil {
		return nil, err
	}
	if loc.folder != "" {
		return NewFolder(loc.folder)
	}
	return newS3(ctx, loc)
}

// InitAt is Init at a place.
func InitAt(ctx context.Context, where Place, o Options) (*Repository, error) {
	_, err := where.ReadMark(ctx)
	if errors.Is(err, ErrNoRepository) {
		var text []byte
		if text, err = newMark(o.Key); err == nil {
			err = where.WriteMark(ctx, text)
		}
	}
	if err != nil {
		return nil, err
	}
	return openAt(ctx, where, o)
}

func newMark(key *Key) ([]byte, error) {
	m := mark{Comment: markComment, Version: markVersion, ID: rand.Text(), Created: time.Now().UTC().Truncate(time.Second)}
	if key != nil {
		sealed, err := key.encrypt(bytes.NewReader([]byte(m.ID)))
		if err != nil {
			return nil, err
		}
		if m.KeyCheck, err = io.ReadAll(sealed); err != nil {
			return nil, err
		}
	}
	text, err := json.MarshalIndent(m, "", "  ")
	return append(text, '\n'), err
}

func openAt(ctx context.Context, where Place, o Options) (*Repository, error) {
	text, err := where.ReadMark(ctx)
	if err != nil {
		return nil, err
	}
	bad := func(kind, err error, hint string) error {
		return &Error{Op: "open", Name: markName, Where: where.String(), Kind: kind, Err: err, Hint: hint}
	}
	var m mark
	if err := json.Unmarshal(text, &m); err != nil || m.Version < 1 || m.ID == "" || len(text) > markBytesMax {
		return nil, bad(ErrDamaged, err, "restore this small file from a copy of the repository; the backups beside it are not touched")
	}
	switch {
	case m.Version > markVersion:
		return nil, bad(ErrUnsupported, nil, fmt.Sprintf("it has version %d, of a newer Kurabe: upgrade", m.Version))
	case o.ID != "" && o.ID != m.ID:
		return nil, bad(ErrOtherRepository, fmt.Errorf("id %.40q instead of %q", m.ID, o.ID), "is the right disk mounted, the right bucket named?")
	case m.KeyCheck != nil && o.Key == nil:
		return nil, bad(ErrKey, nil, "this repository is encrypted: give its key file")
	case m.KeyCheck == nil && o.Key != nil:
		return nil, bad(ErrKey, nil, "this repository is not encrypted: use it without a key, or begin a new one with the key")
	}
	if o.Key != nil {
		r, err := o.Key.decrypt(bytes.NewReader(m.KeyCheck))
		var id []byte
		if err == nil {
			id, err = io.ReadAll(r)
		}
		if err != nil || string(id) != m.ID {
			return nil, bad(ErrKey, err, "the repository was created with another key")
		}
	}
	return &Repository{Store: NewSealed(where, o.Key), ID: m.ID, raw: where, key: o.Key}, nil
}
