package blobtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"kurabe/internal/blob"
)

// Run runs the suite; fresh gives an empty store each time. LargeBytes is a size
// that the store handles in several pieces.
func Run(t *testing.T, largeBytes int, fresh func(*testing.T) blob.Store) {
	for _, c := range []struct {
		name string
		test func(*testing.T, blob.Store)
	}{
		{"RoundTrip", roundTrip(largeBytes)},
		{"Range", ranges},
		{"Missing", missing},
		{"SecondPut", secondPut(largeBytes)},
		{"FailingReader", failingReader(largeBytes)},
		{"Cancelled", cancelled},
		{"Names", names},
		{"ListOrder", listOrder},
		{"ListStops", listStops},
		{"Delete", deletes},
		{"ConcurrentPuts", concurrentPuts},
		{"PutAndDelete", putAndDelete},
		{"Clean", clean},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, fresh(t)) })
	}
}

// Bytes is content that repeats itself a little, the same for the same seed.
func Bytes(seed int64, n int) []byte {
	data := make([]byte, n)
	state := uint64(seed)
	for i := range data {
		if i%16 < 8 {
			state = state*6364136223846793005 + 1442695040888963407 // Knuth's MMIX
			data[i] = byte(state >> 56)
		}
	}
	return data
}

// Put puts or ends the test.
func Put(t *testing.T, s blob.Store, name string, data []byte) {
	t.Helper()
	if err := s.Put(t.Context(), name, bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
}

// Want demands that the object holds the data.
func Want(t *testing.T, s blob.Store, name string, data []byte) {
	t.Helper()
	got, err := read(s.Get(t.Context(), name))
	if err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%s holds %d bytes, %v; want %d", name, len(got), err, len(data))
	}
}

// WantAbsent demands that there is no such object, by any method.
func WantAbsent(t *testing.T, s blob.Store, name string) {
	t.Helper()
	if _, err := read(s.Get(t.Context(), name)); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("Get(%s) = %v", name, err)
	}
	if _, err := s.Stat(t.Context(), name); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("Stat(%s) = %v", name, err)
	}
	if slices.Contains(List(t, s, name), name) {
		t.Errorf("%s is listed", name)
	}
}

// List gives the names below a prefix.
func List(t *testing.T, s blob.Store, prefix string) []string {
	t.Helper()
	var out []string
	for info, err := range s.List(t.Context(), prefix) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, info.Name)
	}
	return out
}

func read(r io.ReadCloser, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r)
	return data, errors.Join(err, r.Close())
}

func roundTrip(largeBytes int) func(*testing.T, blob.Store) {
	return func(t *testing.T, s blob.Store) {
		before := time.Now().Add(-2 * time.Second) // S3 counts in seconds
		for i, n := range []int{0, 1, 4095, 1 << 20, 1<<20 + 1, largeBytes, 3*largeBytes + 17} {
			name := fmt.Sprintf("round/%d", n)
			data := Bytes(int64(i), n)
			// One byte at a time at first: a short read is not an end.
			r := io.MultiReader(iotest.OneByteReader(bytes.NewReader(data[:min(n, 100)])), bytes.NewReader(data[min(n, 100):]))
			if err := s.Put(t.Context(), name, r); err != nil {
				t.Fatal(err)
			}
			Want(t, s, name, data)
			info, err := s.Stat(t.Context(), name)
			if err != nil || info.Name != name || info.Modified.Before(before) || info.Modified.After(time.Now().Add(time.Minute)) {
				t.Errorf("Stat(%s) = %+v, %v", name, info, err)
			}
			for listed, err := range s.List(t.Context(), name) {
				if err != nil || listed.Name == name && listed.SizeBytes != info.SizeBytes {
					t.Errorf("listed %+v, %v; Stat says %+v", listed, err, info)
				}
			}
		}
		if names := List(t, s, "round/"); len(names) != 7 {
			t.Errorf("listed: %v", names)
		}
	}
}

func ranges(t *testing.T, s blob.Store) {
	data := Bytes(1, 3<<20)
	Put(t, s, "a", data)
	Put(t, s, "empty", nil)
	for _, c := range []struct{ offset, length, want int64 }{
		{0, 10, 10}, {5, 0, 0}, {1<<20 - 3, 7, 7}, {2 << 20, 1 << 20, 1 << 20}, {3<<20 - 1, 100, 1}, {3 << 20, 1, 0}, {9 << 20, 5, 0}, {0, 1 << 40, 3 << 20},
	} {
		got, err := read(s.GetRange(t.Context(), "a", c.offset, c.length))
		end := min(c.offset+c.want, int64(len(data)))
		if err != nil || int64(len(got)) != c.want || c.want > 0 && !bytes.Equal(got, data[c.offset:end]) {
			t.Errorf("range %d+%d: %d bytes, %v; want %d", c.offset, c.length, len(got), err, c.want)
		}
	}
	if got, err := read(s.GetRange(t.Context(), "empty", 0, 1)); len(got) != 0 || err != nil {
		t.Errorf("range of nothing: %q, %v", got, err)
	}
	for _, c := range []struct{ offset, length int64 }{{-1, 1}, {0, -1}} {
		if _, err := s.GetRange(t.Context(), "a", c.offset, c.length); err == nil {
			t.Errorf("range %d+%d is accepted", c.offset, c.length)
		}
	}
	if _, err := read(s.GetRange(t.Context(), "none", 0, 1)); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("range of a missing object: %v", err)
	}
	if _, err := read(s.GetRange(t.Context(), "none", 0, 0)); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("empty range of a missing object: %v", err)
	}
}

func missing(t *testing.T, s blob.Store) {
	Put(t, s, "there/x", []byte("x"))
	for _, name := range []string{"none", "none/none", "there/y", "there/x2"} {
		WantAbsent(t, s, name)
	}
	_, err := s.Stat(t.Context(), "there/none")
	if err == nil || blob.Retryable(err) || !strings.Contains(err.Error(), "there/none") || !strings.Contains(err.Error(), s.String()) {
		t.Errorf("an error must name object and store: %v", err)
	}
}

func secondPut(largeBytes int) func(*testing.T, blob.Store) {
	return func(t *testing.T, s blob.Store) {
		for _, n := range []int{0, 10, largeBytes, 2*largeBytes + 5} {
			name := fmt.Sprintf("log/%d", n)
			data := Bytes(7, n)
			Put(t, s, name, data)
			Put(t, s, name, data) // the same again
			others := [][]byte{append(bytes.Clone(data), 'x')}
			if n > 0 {
				changed := bytes.Clone(data)
				changed[n-1] ^= 1
				others = append(others, changed, data[:n-1], nil)
			}
			for _, other := range others {
				if err := s.Put(t.Context(), name, bytes.NewReader(other)); !errors.Is(err, blob.ErrExists) || blob.Retryable(err) {
					t.Errorf("put of %d other bytes over %d: %v", len(other), n, err)
				}
			}
			broken := io.MultiReader(bytes.NewReader(data), iotest.ErrReader(io.ErrUnexpectedEOF))
			if err := s.Put(t.Context(), name, broken); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("a reader that fails after the same bytes: %v", err)
			}
			Want(t, s, name, data)
		}
	}
}

func failingReader(largeBytes int) func(*testing.T, blob.Store) {
	return func(t *testing.T, s blob.Store) {
		for _, fault := range []error{errors.New("the disk of the source"), io.ErrUnexpectedEOF} {
			for i, n := range []int{0, 1, 1 << 20, largeBytes, 2*largeBytes + 9} {
				r := io.MultiReader(bytes.NewReader(Bytes(1, n)), iotest.ErrReader(fault))
				if err := s.Put(t.Context(), "half", r); !errors.Is(err, fault) || blob.Retryable(err) {
					t.Errorf("case %d: %v", i, err)
				}
				WantAbsent(t, s, "half")
			}
		}
		// The failed ones are not in the way.
		Put(t, s, "half", []byte("whole"))
		Want(t, s, "half", []byte("whole"))
	}
}

// endless is a source that never ends by itself.
type endless struct{ stop context.CancelFunc }

func (e endless) Read(p []byte) (int, error) {
	e.stop()
	return len(p), nil
}

func cancelled(t *testing.T, s blob.Store) {
	Put(t, s, "there", Bytes(1, 2<<20))
	ctx, cancel := context.WithCancel(t.Context())
	if err := s.Put(ctx, "new", endless{cancel}); !errors.Is(err, context.Canceled) || blob.Retryable(err) {
		t.Errorf("Put = %v", err)
	}
	WantAbsent(t, s, "new")
	if _, err := read(s.Get(ctx, "there")); !errors.Is(err, context.Canceled) {
		t.Errorf("Get = %v", err)
	}
	if _, err := s.Stat(ctx, "there"); !errors.Is(err, context.Canceled) {
		t.Errorf("Stat = %v", err)
	}
	var last error
	for _, err := range s.List(ctx, "") {
		last = err
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("List = %v", last)
	}
}
