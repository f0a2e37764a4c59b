package blob_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"kurabe/internal/blob"
	"kurabe/internal/blob/blobtest"
)

// stored gives an object as it lies in the store below.
func stored(t *testing.T, s blob.Store, name string) []byte {
	t.Helper()
	r, err := s.Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func get(t *testing.T, s blob.Store, name string) (int, error) {
	t.Helper()
	r, err := s.Get(t.Context(), name)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	n, err := io.Copy(io.Discard, r)
	return int(n), err
}

func TestSealedCompressesAndHides(t *testing.T) {
	m := blobtest.NewMemory()
	secret := bytes.Repeat([]byte("the customers' names; "), 50_000)
	for name, key := range map[string]*blob.Key{"plain": nil, "encrypted": blobtest.Key(t)} {
		blobtest.Put(t, blob.NewSealed(m, key), name, secret)
		form := stored(t, m, name)
		if len(form) > len(secret)/100 {
			t.Errorf("%s: %d bytes of %d", name, len(form), len(secret))
		}
		if key != nil && bytes.Contains(form, []byte("customers")) {
			t.Error("the content can be read")
		}
	}
	// What does not compress hardly grows.
	noise := make([]byte, 5<<20)
	for i := range noise {
		noise[i] = byte(i*i>>7 ^ i*31>>3)
	}
	blobtest.Put(t, blob.NewSealed(m, blobtest.Key(t)), "noise", noise)
	if n := len(stored(t, m, "noise")); n > len(noise)+len(noise)/500 {
		t.Errorf("%d bytes became %d", len(noise), n)
	}
}

// TestSealedDamage: every kind of damage is found before io.EOF, through all layers.
func TestSealedDamage(t *testing.T) {
	for name, key := range map[string]*blob.Key{"plain": nil, "encrypted": blobtest.Key(t)} {
		m := blobtest.NewMemory()
		s := blob.NewSealed(m, key)
		data := blobtest.Bytes(1, 3<<20)
		blobtest.Put(t, s, "a", data)
		size := int64(len(stored(t, m, "a")))
		for _, at := range []int64{1, 30, 200, 1000, size / 2, size - 70, size - 20, size - 1} {
			m.Faults = func(op, _ string) blobtest.Fault { return blobtest.Fault{Flip: at} }
			n, err := get(t, s, "a")
			if !errors.Is(err, blob.ErrDamaged) && !errors.Is(err, blob.ErrKey) || blob.Retryable(err) {
				t.Errorf("%s: flip at %d of %d: %d bytes, %v", name, at, size, n, err)
			}
			m.Faults = func(op, _ string) blobtest.Fault { return blobtest.Fault{Truncate: at} }
			n, err = get(t, s, "a")
			if !errors.Is(err, blob.ErrBusy) || !blob.Retryable(err) {
				t.Errorf("%s: connection lost at %d: %d bytes, %v", name, at, n, err)
			}
			m.Faults = nil
			// Cut for good, as by a disk that filled up below.
			short := blobtest.NewMemory()
			blobtest.Put(t, short, "a", stored(t, m, "a")[:at])
			n, err = get(t, blob.NewSealed(short, key), "a")
			if !errors.Is(err, blob.ErrDamaged) || n == len(data) && at < size-50 {
				t.Errorf("%s: cut at %d: %d bytes, %v", name, at, n, err)
			}
		}
	}
}

func TestSealedNameIsChecked(t *testing.T) {
	for _, key := range []*blob.Key{nil, blobtest.Key(t)} {
		m := blobtest.NewMemory()
		s := blob.NewSealed(m, key)
		blobtest.Put(t, s, "wal/1", []byte("one"))
		blobtest.Put(t, m, "wal/2", stored(t, m, "wal/1"))
		_, err := get(t, s, "wal/2")
		if !errors.Is(err, blob.ErrDamaged) || !strings.Contains(err.Error(), "wal/1") {
			t.Errorf("an object under another's name: %v", err)
		}
	}
}

func TestSealedKeys(t *testing.T) {
	m := blobtest.NewMemory()
	first, second := blobtest.Key(t), blobtest.Key(t)
	blobtest.Put(t, blob.NewSealed(m, first), "mine", []byte("x"))
	blobtest.Put(t, blob.NewSealed(m, nil), "plain", []byte("x"))
	for _, c := range []struct {
		name, object string
		key          *blob.Key
		kind         error
	}{
		{"another key", "mine", second, blob.ErrKey},
		{"no key", "mine", nil, blob.ErrDamaged},
		{"a plain object where all are encrypted", "plain", first, blob.ErrDamaged},
	} {
		if _, err := get(t, blob.NewSealed(m, c.key), c.object); !errors.Is(err, c.kind) || blob.Retryable(err) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestSealedAgain: the second put of the same content has other bytes below.
func TestSealedAgain(t *testing.T) {
	m := blobtest.NewMemory()
	s := blob.NewSealed(m, blobtest.Key(t))
	data := blobtest.Bytes(1, 2<<20)
	m.Faults = func(op, _ string) blobtest.Fault { return blobtest.Fault{LoseWord: op == "put"} }
	if err := s.Put(t.Context(), "a", bytes.NewReader(data)); !errors.Is(err, blob.ErrBusy) || !blob.Retryable(err) {
		t.Errorf("a lost answer: %v", err)
	}
	m.Faults = nil
	blobtest.Put(t, s, "a", data)
	m.Faults = func(op, _ string) blobtest.Fault { return blobtest.Fault{Flip: 5000} }
	if err := s.Put(t.Context(), "a", bytes.NewReader(data)); !errors.Is(err, blob.ErrDamaged) {
		t.Errorf("what is there is damaged: %v", err)
	}
}
