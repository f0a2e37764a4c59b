package blob_test

import (
	"crypto/rand"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"kurabe/internal/blob"
	"kurabe/internal/blob/blobtest"
)

func TestMemory(t *testing.T) {
	blobtest.Run(t, 2<<20, func(*testing.T) blob.Store { return blobtest.NewMemory() })
}

func TestFolder(t *testing.T) {
	blobtest.Run(t, 2<<20, func(t *testing.T) blob.Store { return newFolder(t) })
}

func TestS3(t *testing.T) {
	blobtest.Run(t, 64<<10, func(t *testing.T) blob.Store { return newFakeS3(t) })
}

func TestSealed(t *testing.T) {
	for name, fresh := range map[string]func(*testing.T) blob.Store{
		"Memory": func(*testing.T) blob.Store { return blobtest.NewMemory() },
		"Folder": func(t *testing.T) blob.Store { return newFolder(t) },
	} {
		t.Run(name, func(t *testing.T) {
			blobtest.Run(t, 1_300_000, func(t *testing.T) blob.Store { return blob.NewSealed(fresh(t), nil) })
		})
		t.Run(name+"Encrypted", func(t *testing.T) {
			blobtest.Run(t, 1_300_000, func(t *testing.T) blob.Store { return blob.NewSealed(fresh(t), blobtest.Key(t)) })
		})
	}
	t.Run("S3Encrypted", func(t *testing.T) {
		blobtest.Run(t, 1_300_000, func(t *testing.T) blob.Store { return blob.NewSealed(newFakeS3(t), blobtest.Key(t)) })
	})
}

func newFolder(t testing.TB) *blob.Folder {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "repo")
	if _, err := blob.Init(t.Context(), dir, blob.Options{}); err != nil {
		t.Fatal(err)
	}
	f, err := blob.NewFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// newFakeS3 is a store in a bucket of a server of its own, with small parts.
func newFakeS3(t testing.TB) *blob.S3 {
	t.Helper()
	return openS3(t, fakeS3(t))
}

func fakeS3(t testing.TB) http.Handler {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("bucket"); err != nil {
		t.Fatal(err)
	}
	return gofakes3.New(backend).Server()
}

// openS3 is a store on a server of our own.
func openS3(t testing.TB, handler http.Handler) *blob.S3 {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // the fake answers twice to some requests
	server.Start()
	t.Cleanup(server.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	t.Setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1") // must not matter
	t.Setenv("AWS_CONFIG_FILE", "/dev/null")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
	return openS3At(t, "s3://bucket/some/prefix?endpoint="+url.QueryEscape(server.URL))
}

func openS3At(t testing.TB, location string) *blob.S3 {
	t.Helper()
	repo, err := blob.Init(t.Context(), location, blob.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, ok := repo.Raw().(*blob.S3)
	if !ok {
		t.Fatalf("%T", repo.Raw())
	}
	s.SetParts(64<<10, 200*time.Millisecond)
	return s
}

// TestRealS3 runs the suite on any S3 store, below prefixes of its own that stay:
// KURABE_TEST_S3='s3://bucket/prefix?endpoint=…' with credentials as usual.
func TestRealS3(t *testing.T) {
	text := os.Getenv("KURABE_TEST_S3")
	if text == "" {
		t.Skip("KURABE_TEST_S3 names no store")
	}
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	const part = 5 << 20 // the smallest that S3 takes
	run := func(layer func(blob.Store) blob.Store) {
		blobtest.Run(t, part, func(t *testing.T) blob.Store {
			u := *u
			u.Path += "/" + rand.Text()
			s := openS3At(t, u.String())
			if s.Blind() {
				t.Error("the store does not obey If-None-Match")
			}
			s.SetParts(part, time.Minute)
			return layer(s)
		})
	}
	run(func(s blob.Store) blob.Store { return s })
	key := blobtest.Key(t)
	run(func(s blob.Store) blob.Store { return blob.NewSealed(s, key) })
}
