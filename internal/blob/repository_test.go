package blob_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kurabe/internal/blob"
	"kurabe/internal/blob/blobtest"
)

func TestRepository(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "repo")
	mine, other := blobtest.Key(t), blobtest.Key(t)
	open := func(o blob.Options) error {
		_, err := blob.Open(t.Context(), dir, o)
		return err
	}
	if err := open(blob.Options{}); !errors.Is(err, blob.ErrNoRepository) {
		t.Fatalf("open before init: %v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Fatal("open made the folder")
	}
	repo, err := blob.Init(t.Context(), dir, blob.Options{Key: mine})
	if err != nil {
		t.Fatal(err)
	}
	blobtest.Put(t, repo, "a", []byte("x"))
	again, err := blob.Init(t.Context(), dir, blob.Options{Key: mine})
	if err != nil || again.ID != repo.ID || repo.ID == "" {
		t.Fatalf("init again: %v, %v", again, err)
	}
	blobtest.Want(t, again, "a", []byte("x"))
	if _, ok := repo.Cloner(); ok {
		t.Error("an encrypted repository takes files as they are")
	}
	for _, c := range []struct {
		name    string
		options blob.Options
		kind    error
	}{
		{"right", blob.Options{Key: mine, ID: repo.ID}, nil},
		{"another key", blob.Options{Key: other}, blob.ErrKey},
		{"no key", blob.Options{}, blob.ErrKey},
		{"another repository", blob.Options{Key: mine, ID: "OTHER"}, blob.ErrOtherRepository},
	} {
		if err := open(c.options); !errors.Is(err, c.kind) || blob.Retryable(err) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	mark := filepath.Join(dir, "kurabe-repository.json")
	for text, kind := range map[string]error{"": blob.ErrDamaged, "{}": blob.ErrDamaged, `{"version":2,"id":"x"}`: blob.ErrUnsupported,
		strings.Repeat(" ", 1<<20): blob.ErrDamaged, `{"version":1,"id":"x"}`: blob.ErrKey, `{"version":1,"id":"x","keyCheck":"AAAA"}`: blob.ErrKey} {
		if err := os.WriteFile(mark, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := open(blob.Options{Key: mine}); !errors.Is(err, kind) {
			t.Errorf("mark %.40q: %v", text, err)
		}
	}
}

func TestRepositoryWithoutKey(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "repo")
	repo, err := blob.Init(t.Context(), dir, blob.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := repo.Cloner(); !ok {
		t.Error("a folder does not clone")
	}
	if _, err := blob.Open(t.Context(), dir, blob.Options{Key: blobtest.Key(t)}); !errors.Is(err, blob.ErrKey) {
		t.Errorf("a key for a plain repository: %v", err)
	}
	m, err := blob.InitAt(t.Context(), blobtest.NewMemory(), blob.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := m.Cloner(); ok {
		t.Error("memory clones")
	}
}

func TestS3Repository(t *testing.T) {
	s := newFakeS3(t)
	blobtest.Put(t, s, "foreign/thing", nil)
	if _, err := blob.Open(t.Context(), "s3://bucket/elsewhere", blob.Options{}); err == nil {
		t.Error("no region, no endpoint, and no error")
	}
}

func TestLocations(t *testing.T) {
	for text, part := range map[string]string{
		"":                                      "scheme",
		"backups":                               "scheme",
		"./backups":                             "scheme",
		"file:///backups":                       "scheme",
		"/":                                     "folder",
		"//":                                    "folder",
		"s3://":                                 "bucket",
		"s3://B":                                "bucket",
		"s3://my_bucket/x":                      "bucket",
		"s3://bucket/a/../b":                    "prefix",
		"s3://bucket/a b":                       "prefix",
		"s3://bucket/p#x":                       "fragment",
		"s3://key:hunter2@bucket/p":             "user",
		"s3://bucket?endpoint=h:9":              "parameter endpoint",
		"s3://bucket?endpoint=":                 "parameter endpoint",
		"s3://bucket?region=a&region=b":         "parameter region",
		"s3://bucket?endpoint=http://h/path":    "parameter endpoint",
		"s3://bucket?style=path":                "parameter style",
		"s3://bucket?endpoint=http://h&style=x": "parameter style",
		"s3://bucket?acl=public":                "parameter acl",
	} {
		_, err := blob.Open(t.Context(), text, blob.Options{})
		var bad *blob.LocationError
		if !errors.As(err, &bad) || bad.Part != part || blob.Retryable(err) {
			t.Errorf("%q: %v, want a complaint of its %s", text, err, part)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("a secret is repeated: %v", err)
		}
	}
}

func TestKeys(t *testing.T) {
	first, second := blobtest.KeyText(t), blobtest.KeyText(t)
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(second.Reveal()+first.Reveal()), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := blob.LoadKey(path); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a key that all may read: %v", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	both, err := blob.LoadKey(path)
	if err != nil {
		t.Fatal(err)
	}
	old, err := blob.ParseKey(first)
	if err != nil {
		t.Fatal(err)
	}
	// A new key above an old one reads both, and writes with the new.
	m := blobtest.NewMemory()
	blobtest.Put(t, blob.NewSealed(m, old), "old", []byte("x"))
	blobtest.Put(t, blob.NewSealed(m, both), "new", []byte("x"))
	blobtest.Want(t, blob.NewSealed(m, both), "old", []byte("x"))
	if _, err := get(t, blob.NewSealed(m, old), "new"); !errors.Is(err, blob.ErrKey) {
		t.Error(err)
	}
	for _, shown := range []string{fmt.Sprint(both), fmt.Sprintf("%+v %#v %s %d %x", both, both, both, both, both), fmt.Sprintf("%+v", blob.Options{Key: both})} {
		if strings.Contains(shown, "SECRET") || strings.Contains(shown, "identities") {
			t.Errorf("a key prints as %s", shown)
		}
	}
	for _, bad := range []string{"", "# nothing", "hunter2", "AGE-SECRET-KEY-1HUNTER2", strings.Repeat("x", 100)} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := blob.LoadKey(path); err == nil || bad != "" && strings.Contains(err.Error(), bad) || !strings.Contains(err.Error(), path) {
			t.Errorf("key file %.20q: %v", bad, err)
		}
	}
	if _, err := blob.LoadKey(path + "-none"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestMemoryFaults(t *testing.T) {
	m := blobtest.NewMemory()
	blobtest.Put(t, m, "a", []byte("abc"))
	var fault blobtest.Fault
	m.Faults = func(op, name string) blobtest.Fault { return fault }
	fault = blobtest.Fault{Err: errors.New("cable")}
	if err := m.Put(t.Context(), "b", strings.NewReader("x")); !blob.Retryable(err) || !strings.Contains(err.Error(), "cable") {
		t.Error(err)
	}
	fault = blobtest.Fault{Lose: true}
	blobtest.Put(t, m, "b", []byte("x"))
	fault = blobtest.Fault{}
	blobtest.WantAbsent(t, m, "b")
	fault = blobtest.Fault{Truncate: 2}
	r, err := m.Get(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); string(got) != "ab" || !blob.Retryable(err) {
		t.Errorf("%q, %v", got, err)
	}
}
