package service

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kurabe/internal/blob"
	"kurabe/internal/snapshot"
)

func testRepository(t *testing.T, data string, f RepositoryConfig) *repository {
	t.Helper()
	r, err := newRepository(f, data, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A location is used once with whatever is there, and from then on with that alone.
func TestRepositoryIsTheOneOfTheFirstStart(t *testing.T) {
	data, disk := t.TempDir(), filepath.Join(t.TempDir(), "disk")
	f := RepositoryConfig{Location: disk}
	first := testRepository(t, data, f)
	if _, err := first.Store(); !errors.Is(err, errOpening) {
		t.Errorf("before Run: %v", err)
	}
	if err := first.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	store, err := first.Store()
	if err != nil || store.String() != disk || !first.forSnapshots() {
		t.Fatalf("%v, %v", store, err)
	}
	if info, err := os.Stat(filepath.Join(data, "repositories.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := testRepository(t, data, f).tryOpen(t.Context()); err != nil {
		t.Errorf("the same again: %v", err)
	}
	aside := func(do func() error) {
		t.Helper()
		if err := errors.Join(os.Rename(disk, disk+".away"), do()); err != nil {
			t.Fatal(err)
		}
	}
	back := func() {
		t.Helper()
		if err := errors.Join(os.RemoveAll(disk), os.Rename(disk+".away", disk)); err != nil {
			t.Fatal(err)
		}
	}
	aside(func() error { return os.Mkdir(disk, 0o700) })
	if _, err := testRepository(t, data, f).tryOpen(t.Context()); !errors.Is(err, blob.ErrNoRepository) {
		t.Errorf("an empty mount point: %v", err)
	}
	if entries, _ := os.ReadDir(disk); len(entries) > 0 {
		t.Errorf("it holds %v", entries)
	}
	back()
	aside(func() error {
		_, err := blob.Init(t.Context(), disk, blob.Options{})
		return err
	})
	if _, err := testRepository(t, data, f).tryOpen(t.Context()); !errors.Is(err, blob.ErrOtherRepository) || !strings.Contains(err.Error(), "repositories.json") {
		t.Errorf("another disk: %v", err)
	}
	back()
	other := RepositoryConfig{Location: filepath.Join(t.TempDir(), "other")}
	if _, err := testRepository(t, data, other).tryOpen(t.Context()); err != nil {
		t.Errorf("another location, on purpose: %v", err)
	}
	if _, err := testRepository(t, data, f).tryOpen(t.Context()); err != nil {
		t.Errorf("and the first again: %v", err)
	}
}

// Run tries again until the disk is there.
func TestRepositoryComesLater(t *testing.T) {
	above := filepath.Join(t.TempDir(), "mount")
	r := testRepository(t, t.TempDir(), RepositoryConfig{Location: filepath.Join(above, "repository")})
	done := make(chan error, 1)
	go func() { done <- r.Run(t.Context()) }()
	for deadline := time.Now().Add(20 * time.Second); ; {
		if _, err := r.Store(); !errors.Is(err, errOpening) {
			if !errors.Is(err, blob.ErrNoRepository) {
				t.Fatal(err)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("it is still being opened")
		}
	}
	if err := os.Mkdir(above, 0o700); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		if _, openErr := r.Store(); err != nil || openErr != nil {
			t.Errorf("%v, %v", err, openErr)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it was not tried again")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := testRepository(t, t.TempDir(), RepositoryConfig{}).Run(ended); err != nil {
		t.Errorf("ended: %v", err)
	}
}

func TestRepositoryFlags(t *testing.T) {
	data := t.TempDir()
	for _, location := range []string{"/", "s3://", "s3://b", "ftp://bucket/x", "s3://key:secret@bucket/x", "s3://bucket/x?endpont=y"} {
		_, err := newRepository(RepositoryConfig{Location: location}, data, slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), "--backup-repository") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", location, err)
		}
	}
	if r := testRepository(t, data, RepositoryConfig{}); r.location != filepath.Join(data, "repository") || r.forSnapshots() || archive(r, snapshot.Store{}, 0) != nil {
		t.Errorf("the default: %+v", r)
	}
	key := filepath.Join(data, "key")
	if err := os.WriteFile(key, []byte("AGE-SECRET-KEY-1NONSENSE"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := testRepository(t, data, RepositoryConfig{KeyFile: key}).tryOpen(t.Context())
	if err == nil || strings.Contains(err.Error(), "NONSENSE") {
		t.Errorf("a bad key: %v", err)
	}
	if _, err := os.Stat(filepath.Join(data, "repository")); err == nil {
		t.Error("a repository was made with a bad key")
	}
	if a, b := placeKey("s3://bucket/x/?endpoint=http://a"), placeKey("s3://bucket/x?endpoint=http://b"); a != b {
		t.Errorf("%s and %s", a, b)
	}
}
