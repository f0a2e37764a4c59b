package blobtest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kurabe/internal/blob"
)

func names(t *testing.T, s blob.Store) {
	long := strings.Repeat("n", 200)
	for _, name := range []string{"a", "A-b_c.d/0", "x..y", "-", long, "l/" + long + "/" + long} {
		Put(t, s, name, []byte(name))
		Want(t, s, name, []byte(name))
	}
	for _, name := range []string{
		"", "/", "a/", "/a", "a//b", ".", "..", "../a", "a/../b", "a/./b", ".hidden", "a/.b", "a b", "a\x00", "ä", "a\\b", "a:b", "a%2e",
		long + "n", strings.Repeat("p/", 256) + "p", "kurabe-repository.json", ".incomplete/x",
	} {
		if err := s.Put(t.Context(), name, strings.NewReader("x")); !errors.Is(err, blob.ErrName) {
			t.Errorf("Put(%.20q) = %v", name, err)
		}
		if _, err := s.Get(t.Context(), name); !errors.Is(err, blob.ErrName) {
			t.Errorf("Get(%.20q) = %v", name, err)
		}
		if _, err := s.Stat(t.Context(), name); !errors.Is(err, blob.ErrName) {
			t.Errorf("Stat(%.20q) = %v", name, err)
		}
		if err := s.Delete(t.Context(), name); !errors.Is(err, blob.ErrName) {
			t.Errorf("Delete(%.20q) = %v", name, err)
		}
	}
	for _, prefix := range []string{"..", "a/../", "/", "a//", "a b", ".incomplete/"} {
		for info, err := range s.List(t.Context(), prefix) {
			if !errors.Is(err, blob.ErrName) {
				t.Errorf("List(%q) gives %v, %v", prefix, info, err)
			}
		}
	}
}

func listOrder(t *testing.T, s blob.Store) {
	all := []string{"a", "a.b", "a-b", "b/x", "b/y/z", "b.x", "b-", "b0", "bb/1", "c/d/e/f/g", "B", "_"}
	for i := range 40 {
		all = append(all, fmt.Sprintf("wal/%02X/%024X", i/8, i))
	}
	for _, i := range []int{5, 0, 9, 3} { // not in order
		for j := i; j < len(all); j += 11 {
			Put(t, s, all[j], []byte{byte(j)})
		}
	}
	for _, name := range all {
		Put(t, s, name, []byte{byte(slices.Index(all, name))})
	}
	slices.Sort(all)
	for _, prefix := range []string{"", "a", "b", "b/", "b/y", "b/y/", "wal/0", "wal/02/", "wal/02/000", "c/d/e/f/g", "c/d/e/f/gg", "nothing/here", "zz"} {
		want := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return !strings.HasPrefix(name, prefix) })
		if got := List(t, s, prefix); !slices.Equal(got, want) {
			t.Errorf("List(%q) = %q\nwant %q", prefix, got, want)
		}
	}
}

func listStops(t *testing.T, s blob.Store) {
	for i := range 10 {
		Put(t, s, fmt.Sprintf("x/%d/y", i), nil)
	}
	seen := 0
	for _, err := range s.List(t.Context(), "x") {
		if seen++; err != nil || seen == 3 {
			break
		}
	}
	if seen != 3 {
		t.Errorf("saw %d", seen)
	}
	// Deleting what is being listed is the ordinary case.
	for info, err := range s.List(t.Context(), "x") {
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Delete(t.Context(), info.Name); err != nil {
			t.Fatal(err)
		}
	}
	if got := List(t, s, ""); len(got) != 0 {
		t.Errorf("left: %q", got)
	}
}

func deletes(t *testing.T, s blob.Store) {
	Put(t, s, "d/e/f", []byte("1"))
	Put(t, s, "d/e/g", []byte("2"))
	for range 2 {
		if err := s.Delete(t.Context(), "d/e/f"); err != nil {
			t.Fatal(err)
		}
		WantAbsent(t, s, "d/e/f")
	}
	for _, name := range []string{"d", "d/e", "never/was", "d/e/g/h"} { // no objects
		if err := s.Delete(t.Context(), name); err != nil {
			t.Errorf("Delete(%s) = %v", name, err)
		}
	}
	Want(t, s, "d/e/g", []byte("2"))
	Put(t, s, "d/e/f", []byte("another")) // the name is free again
	Want(t, s, "d/e/f", []byte("another"))
}

func concurrentPuts(t *testing.T, s blob.Store) {
	const writers = 8
	var wg sync.WaitGroup
	errs := make([]error, writers)
	for i := range writers {
		wg.Go(func() {
			// All put the same in one name, and each its own in another.
			if err := s.Put(t.Context(), "race/same", bytes.NewReader(Bytes(3, 1<<18))); err != nil {
				t.Error(err)
			}
			errs[i] = s.Put(t.Context(), "race/own", bytes.NewReader(Bytes(int64(i), 1<<15)))
		})
	}
	wg.Wait()
	Want(t, s, "race/same", Bytes(3, 1<<18))
	won := -1
	for i, err := range errs {
		switch {
		case err == nil && won >= 0:
			t.Errorf("%d and %d both won", won, i)
		case err == nil:
			won = i
		case !errors.Is(err, blob.ErrExists):
			t.Error(err)
		}
	}
	if won < 0 {
		t.Fatal("nobody won")
	}
	Want(t, s, "race/own", Bytes(int64(won), 1<<15))
}

// putAndDelete lets folders come and go below the feet of a Put.
func putAndDelete(t *testing.T, s blob.Store) {
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 25 {
				name := fmt.Sprintf("come/and/go/%d", i)
				if err := s.Put(t.Context(), name, strings.NewReader(fmt.Sprint(j))); err != nil {
					t.Errorf("put: %v", err)
				}
				if err := s.Delete(t.Context(), name); err != nil {
					t.Errorf("delete: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if got := List(t, s, ""); len(got) != 0 {
		t.Errorf("left: %q", got)
	}
}

func clean(t *testing.T, s blob.Store) {
	Put(t, s, "keep", []byte("x"))
	if n, err := s.Clean(t.Context(), 0); n != 0 || err != nil {
		t.Errorf("cleaned %d, %v", n, err)
	}
	if n, err := s.Clean(t.Context(), time.Hour); n != 0 || err != nil {
		t.Errorf("cleaned %d, %v", n, err)
	}
	Want(t, s, "keep", []byte("x"))
}
