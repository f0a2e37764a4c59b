package blob

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"time"
)

// Sealed is a layer over a Store: its objects are compressed, checked when read
// and, with a key, encrypted. Names and the lengths of what is stored stay
// readable. It holds a few MB for each object that is read or written.
type Sealed struct {
	inner Store
	key   *Key // nil: not encrypted
}

// NewSealed puts the layer over a store. Objects that were put with another key,
// or with none where there is one, are refused.
func NewSealed(inner Store, key *Key) *Sealed { return &Sealed{inner, key} }

func (s *Sealed) String() string { return s.inner.String() }

// Put implements Store.
func (s *Sealed) Put(ctx context.Context, name string, r io.Reader) error {
	if err := CheckName(name); err != nil {
		return s.fail("put", name, nil, err)
	}
	src := &source{ctx: ctx, r: r}
	sealing := newSealer(name, src)
	var form io.Reader = sealing
	if s.key != nil {
		var err error
		if form, err = s.key.encrypt(sealing); err != nil {
			return s.fail("put", name, nil, err)
		}
	}
	err := s.inner.Put(ctx, name, form)
	if !errors.Is(err, ErrExists) {
		return err
	}
	// The same content has another form under another library or a fresh nonce.
	digest, readErr := sealing.drain()
	if readErr != nil {
		return s.fail("put", name, nil, src.failed())
	}
	there, readErr := s.digest(ctx, name)
	if readErr != nil {
		return readErr
	}
	if !bytes.Equal(digest, there) {
		return err
	}
	return nil
}

// digest reads a whole object, and so checks it.
func (s *Sealed) digest(ctx context.Context, name string) ([]byte, error) {
	r, err := s.open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if _, err := io.Copy(io.Discard, r); err != nil {
		return nil, err
	}
	return r.opener.digest, nil
}

// Get implements Store. What is wrong with an object shows as ErrDamaged, before
// io.EOF, and no chunk is given out before it is checked; still, use nothing of an
// object before its EOF if order matters to you.
func (s *Sealed) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	return s.open(ctx, name)
}

// GetRange implements Store. It reads, and checks, all that comes before the range
// too: good for the beginning of an object, a waste for its end. The digest of the
// whole is not checked.
func (s *Sealed) GetRange(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if err := checkRange(offset, length); err != nil {
		return nil, s.fail("get", name, nil, err)
	}
	r, err := s.open(ctx, name)
	if err != nil {
		return nil, err
	}
	if _, err := io.CopyN(io.Discard, r, offset); err != nil && err != io.EOF {
		return nil, errors.Join(err, r.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(r, length), r}, nil
}

// Stat implements Store. The size is that of the stored form.
func (s *Sealed) Stat(ctx context.Context, name string) (Info, error) { return s.inner.Stat(ctx, name) }

// List implements Store. The sizes are those of the stored forms.
func (s *Sealed) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return s.inner.List(ctx, prefix)
}

// Delete implements Store.
func (s *Sealed) Delete(ctx context.Context, name string) error { return s.inner.Delete(ctx, name) }

// Clean implements Store.
func (s *Sealed) Clean(ctx context.Context, olderThan time.Duration) (int, error) {
	return s.inner.Clean(ctx, olderThan)
}

func (s *Sealed) fail(op, name string, kind, err error) error {
	e := &Error{Op: op, Name: name, Where: s.String(), Kind: kind, Err: err}
	switch kind {
	case ErrDamaged:
		e.Hint = "take an older backup, or bring this object back from a copy of the repository"
	case ErrKey:
		e.Hint = "it is encrypted with another key"
	}
	return e
}

func (s *Sealed) open(ctx context.Context, name string) (*sealedReader, error) {
	inner, err := s.inner.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	r := &sealedReader{s: s, name: name, inner: inner, src: &source{ctx: ctx, r: inner}}
	if err := r.begin(); err != nil {
		return nil, errors.Join(r.judge(err), inner.Close())
	}
	return r, nil
}

type sealedReader struct {
	s      *Sealed
	name   string
	inner  io.Closer
	src    *source
	opener *opener
}

func (r *sealedReader) begin() (err error) {
	var form io.Reader = r.src
	if r.s.key != nil {
		if form, err = r.s.key.decrypt(r.src); err != nil {
			return err
		}
	}
	r.opener, err = newOpener(form, r.name)
	return err
}

func (r *sealedReader) Read(p []byte) (int, error) {
	n, err := r.opener.Read(p)
	if err != nil && err != io.EOF {
		err = r.judge(err)
	}
	return n, err
}

func (r *sealedReader) Close() error { return r.inner.Close() }

// judge says what a failure means: the store's own first, then the key, then the
// object.
func (r *sealedReader) judge(err error) error {
	switch {
	case r.src.err != nil && r.src.err != io.EOF:
		return r.src.err
	case errors.Is(err, ErrKey):
		return r.s.fail("get", r.name, ErrKey, nil)
	case errors.Is(err, errNewer):
		return r.s.fail("get", r.name, ErrUnsupported, err)
	}
	return r.s.fail("get", r.name, ErrDamaged, err)
}
