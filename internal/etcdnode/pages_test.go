package etcdnode

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// A page that names itself as its child was once followed until memory ran out.
func TestCyclesAreFound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	makeDatabase(t, path, 2000)
	if err := checkPages(path); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	cycles := 0
	for at := 0; at < len(whole); at += os.Getpagesize() {
		if binary.LittleEndian.Uint16(whole[at+8:]) != flagBranch {
			continue
		}
		cycles++
		damaged := bytes.Clone(whole)
		copy(damaged[at+pageHeaderBytes+8:], damaged[at:at+8]) // the first child is the page itself
		write(t, path, damaged)
		if err := checkPages(path); err == nil || !strings.Contains(err.Error(), "twice") {
			t.Errorf("page %d below itself: %v", at/os.Getpagesize(), err)
		}
	}
	if cycles == 0 {
		t.Fatal("no branch page: the database is too small")
	}
}

func TestOlderMetaWillDo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	makeDatabase(t, path, 100)
	page := int64(os.Getpagesize())
	for at := int64(0); at <= page; at += page {
		overwrite(t, path, at+pageHeaderBytes, 0x11, 8)
		err := checkPages(path)
		if at == 0 && err != nil {
			t.Errorf("without the first meta page: %v", err)
		}
		if at == page && (err == nil || !strings.Contains(err.Error(), "meta")) {
			t.Errorf("without both: %v", err)
		}
	}
}

// Whatever a page holds, the walk ends, and what it lets pass bbolt can read.
func FuzzCheckPages(f *testing.F) {
	path := filepath.Join(f.TempDir(), "db")
	makeDatabase(f, path, 400)
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint32(0), []byte{0x5a}, uint16(97))
	f.Add(uint32(4096), []byte{0, 1}, uint16(0))
	f.Add(uint32(12<<10+24), []byte{3, 0, 0, 0, 0, 0, 0, 0}, uint16(16))
	f.Fuzz(func(t *testing.T, at uint32, with []byte, every uint16) {
		damaged := bytes.Clone(whole)
		for n := int(at); n < len(damaged); n += int(every) {
			copy(damaged[n:], with)
			if every == 0 {
				break
			}
		}
		path := filepath.Join(t.TempDir(), "db")
		write(t, path, damaged)
		if checkPages(path) != nil {
			return
		}
		if _, err := readDatabase(path); err != nil {
			t.Logf("passes the walk: %v", err)
		}
	})
}

func makeDatabase(t testing.TB, path string, keys int) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"key", "meta", "small"} {
		err := db.Update(func(tx *bolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists([]byte(name))
			if err != nil || name == "small" {
				return err
			}
			for n := range keys {
				// Some values need pages of overflow.
				if err := b.Put(fmt.Appendf(nil, "%s/%06d", name, n), bytes.Repeat([]byte{'x'}, n%7*n%9000)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
