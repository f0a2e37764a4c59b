package blob_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kurabe/internal/blob"
	"kurabe/internal/blob/blobtest"
)

// listingOf is an answer with these keys, and the token of the next page.
func listingOf(w io.Writer, token string, keys ...string) {
	fmt.Fprintf(w, "<ListBucketResult><IsTruncated>%v</IsTruncated>", token != "")
	if token != "" {
		fmt.Fprintf(w, "<NextContinuationToken>%s</NextContinuationToken>", token)
	}
	for _, key := range keys {
		if key == "" {
			_, _ = io.WriteString(w, "<Contents><Size>1</Size></Contents>")
			continue
		}
		fmt.Fprintf(w, "<Contents><Key>%s</Key><Size>1</Size></Contents>", key)
	}
	_, _ = io.WriteString(w, "</ListBucketResult>")
}

// A store of others may answer anything. The service lists it at its start: a listing that
// ends the process, or never ends itself, would end the service.
func TestAttackLyingListing(t *testing.T) {
	var answers atomic.Pointer[func(w io.Writer, asked int)]
	var asked atomic.Int64
	s := faulty(t, func(w http.ResponseWriter, r *http.Request) bool {
		give := answers.Load()
		if give == nil || r.URL.Query().Get("list-type") == "" {
			return false
		}
		w.Header().Set("Content-Type", "application/xml")
		(*give)(w, int(asked.Add(1)))
		return true
	})
	blobtest.Put(t, s, "a/b", []byte("x"))
	prefix := keyPrefix(s)
	for name, give := range map[string]func(w io.Writer, asked int){
		"a shorter key":       func(w io.Writer, _ int) { listingOf(w, "", "k") },
		"no key":              func(w io.Writer, _ int) { listingOf(w, "", "") },
		"a key elsewhere":     func(w io.Writer, _ int) { listingOf(w, "", strings.Repeat("y", 300)) },
		"a key twice":         func(w io.Writer, _ int) { listingOf(w, "", prefix+"a/b", prefix+"a/b") },
		"keys that go back":   func(w io.Writer, _ int) { listingOf(w, "", prefix+"a/c", prefix+"a/b") },
		"a page again":        func(w io.Writer, n int) { listingOf(w, fmt.Sprint(n), prefix+"a/b") },
		"one token for ever":  func(w io.Writer, _ int) { listingOf(w, "t") },
		"empty pages forever": func(w io.Writer, n int) { listingOf(w, fmt.Sprint(n)) },
		"an endless answer": func(w io.Writer, _ int) {
			_, _ = io.WriteString(w, "<ListBucketResult>")
			for range 100 << 10 { // 100 MiB, if they were read
				if _, err := io.WriteString(w, strings.Repeat(" ", 1<<10)); err != nil {
					return
				}
			}
			listingOf(w, "", prefix+"a/b")
		},
	} {
		t.Run(name, func(t *testing.T) {
			answers.Store(&give)
			asked.Store(0)
			err := errors.New("nothing was listed")
			for info, failed := range s.List(t.Context(), "a/") {
				if err = failed; failed == nil && info.Name != "a/b" && info.Name != "a/c" {
					t.Errorf("listed %q", info.Name)
				}
			}
			if err == nil {
				t.Error("the listing was believed")
			}
		})
	}
}

// keyPrefix is what the keys of the repository begin with.
func keyPrefix(s *blob.S3) string {
	at, _, _ := strings.Cut(strings.TrimPrefix(s.String(), "s3://"), "?")
	_, prefix, _ := strings.Cut(at, "/")
	return prefix + "/"
}

// A store may say of uploads in parts what it likes: cleaning it ends.
func TestAttackLyingUploads(t *testing.T) {
	s := faulty(t, func(w http.ResponseWriter, r *http.Request) bool {
		if !r.URL.Query().Has("uploads") {
			return false
		}
		w.Header().Set("Content-Type", "application/xml")
		_, _ = io.WriteString(w, "<ListMultipartUploadsResult><IsTruncated>true</IsTruncated><NextKeyMarker>k</NextKeyMarker></ListMultipartUploadsResult>")
		return true
	})
	if _, err := s.Clean(t.Context(), time.Hour); err == nil {
		t.Error("an endless listing was cleaned")
	}
}
