package blob

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
)

const compareBytes = 128 << 10

// sameBytes reads both to the first difference or to the end of both.
func sameBytes(a, b io.Reader) (bool, error) {
	bufA, bufB := make([]byte, compareBytes), make([]byte, compareBytes)
	for {
		n, errA := io.ReadFull(a, bufA)
		m, errB := io.ReadFull(b, bufB)
		endA, endB := ended(errA), ended(errB)
		if errA != nil && !endA {
			return false, errA
		}
		if errB != nil && !endB {
			return false, errB
		}
		if !bytes.Equal(bufA[:n], bufB[:m]) {
			return false, nil
		}
		if endA || endB {
			return endA == endB, nil
		}
	}
}

// ended knows what io.ReadFull says at an end. Not errors.Is: a store that breaks
// off wraps the same words.
func ended(err error) bool { return err == io.EOF || err == io.ErrUnexpectedEOF }

// settle answers a Put of a name that is taken: nil for the same bytes.
func settle(ctx context.Context, s Store, name string, src *source) error {
	there, err := s.Get(ctx, name)
	if err != nil {
		return err
	}
	defer there.Close()
	same, err := sameBytes(src, there)
	switch {
	case src.failed() != nil:
		return &Error{Op: "put", Name: name, Where: s.String(), Err: src.failed()}
	case err != nil:
		return err
	case !same:
		return taken(s, name)
	}
	return nil
}

// settleDigest is settle for a source that has been read already.
func settleDigest(ctx context.Context, s Store, name string, digest []byte) error {
	there, err := s.Get(ctx, name)
	if err != nil {
		return err
	}
	defer there.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, there); err != nil {
		return err
	}
	if !bytes.Equal(hash.Sum(nil), digest) {
		return taken(s, name)
	}
	return nil
}

func taken(s Store, name string) error {
	return &Error{Op: "put", Name: name, Where: s.String(), Kind: ErrExists,
		Hint: "another writer uses this repository, or an old one was left here: give each its own folder or prefix"}
}
