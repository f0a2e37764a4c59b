package blob_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kurabe/internal/blob"
	"kurabe/internal/blob/blobtest"
)

// faulty answers some requests itself.
func faulty(t *testing.T, fault func(w http.ResponseWriter, r *http.Request) (handled bool)) *blob.S3 {
	t.Helper()
	inner := fakeS3(t)
	return openS3(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !fault(w, r) {
			inner.ServeHTTP(w, r)
		}
	}))
}

func answer(w http.ResponseWriter, status int, code string) bool {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, "<Error><Code>"+code+"</Code><Message>m</Message></Error>")
	return true
}

func TestS3Errors(t *testing.T) {
	var status atomic.Int64
	var code atomic.Value
	s := faulty(t, func(w http.ResponseWriter, r *http.Request) bool {
		return status.Load() != 0 && answer(w, int(status.Load()), code.Load().(string))
	})
	for _, c := range []struct {
		status int
		code   string
		kind   error
		retry  bool
	}{
		{403, "AccessDenied", blob.ErrDenied, false},
		{403, "RequestTimeTooSkewed", blob.ErrDenied, false},
		{404, "NoSuchBucket", blob.ErrNoRepository, true},
		{404, "NoSuchKey", blob.ErrNotFound, false},
		{507, "XMinioStorageFull", blob.ErrFull, true},
		{400, "EntityTooLarge", blob.ErrTooLarge, false},
		{301, "PermanentRedirect", blob.ErrDenied, false},
	} {
		status.Store(int64(c.status))
		code.Store(c.code)
		_, err := s.Get(t.Context(), "a/b")
		if !errors.Is(err, c.kind) || blob.Retryable(err) != c.retry || !strings.Contains(err.Error(), "a/b") {
			t.Errorf("%d %s: %v, retryable %v", c.status, c.code, err, blob.Retryable(err))
		}
	}
}

func TestS3IsBusy(t *testing.T) {
	for code, status := range map[string]int{"SlowDown": 503, "ConditionalRequestConflict": 409, "ExistingObjectIsDirectory": 409} {
		t.Run(code, func(t *testing.T) {
			var bad atomic.Int64
			s := faulty(t, func(w http.ResponseWriter, r *http.Request) bool {
				return bad.Add(-1) >= 0 && answer(w, status, code)
			})
			bad.Store(2) // the client comes back
			blobtest.Put(t, s, "a", []byte("x"))
			bad.Store(1 << 30)
			if err := s.Put(t.Context(), "b", strings.NewReader("x")); !errors.Is(err, blob.ErrBusy) || !blob.Retryable(err) {
				t.Errorf("put = %v", err)
			}
			bad.Store(0)
			blobtest.WantAbsent(t, s, "b")
		})
	}
}

func TestS3Unreachable(t *testing.T) {
	s := newFakeS3(t)
	_ = s
	_, err := blob.Open(t.Context(), "s3://bucket/x?endpoint="+url.QueryEscape("http://127.0.0.1:1"), blob.Options{})
	if !errors.Is(err, blob.ErrBusy) || !blob.Retryable(err) {
		t.Errorf("open = %v", err)
	}
}

// cutWriter ends the connection, or goes silent, after so many bytes.
type cutWriter struct {
	http.ResponseWriter
	left  int
	stall <-chan struct{} // nil: cut
}

func (c *cutWriter) Write(p []byte) (int, error) {
	if len(p) > c.left {
		_, _ = c.ResponseWriter.Write(p[:c.left])
		if f, ok := c.ResponseWriter.(http.Flusher); ok {
			f.Flush()
		}
		if c.stall != nil {
			<-c.stall
		}
		panic(http.ErrAbortHandler)
	}
	c.left -= len(p)
	return c.ResponseWriter.Write(p)
}

func TestS3ReadGoesOn(t *testing.T) {
	data := blobtest.Bytes(1, 1<<20)
	for _, stalls := range []bool{false, true} {
		inner := fakeS3(t)
		var cuts atomic.Int64
		s := openS3(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && cuts.Add(-1) >= 0 {
				cut := &cutWriter{ResponseWriter: w, left: 300_000}
				if stalls {
					cut.stall = r.Context().Done()
				}
				w = cut
			}
			inner.ServeHTTP(w, r)
		}))
		blobtest.Put(t, s, "a", data)
		cuts.Store(2)
		blobtest.Want(t, s, "a", data)
		if cuts.Load() >= 0 {
			t.Errorf("only %d answers were cut", 2-cuts.Load())
		}
	}
}

func TestS3ReadGivesUp(t *testing.T) {
	inner := fakeS3(t)
	var cut atomic.Bool
	s := openS3(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if cut.Load() && r.Method == http.MethodGet {
			w = &cutWriter{ResponseWriter: w, left: 0}
		}
		inner.ServeHTTP(w, r)
	}))
	blobtest.Put(t, s, "a", blobtest.Bytes(1, 1<<20))
	r, err := s.Get(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := io.CopyN(io.Discard, r, 100); err != nil {
		t.Fatal(err)
	}
	cut.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	limited, err := s.Get(ctx, "a")
	if err == nil {
		_, err = io.Copy(io.Discard, limited)
	}
	if !blob.Retryable(err) {
		t.Errorf("read = %v", err)
	}
}

// TestS3WithoutConditions: a service that ignores If-None-Match, or refuses it.
func TestS3WithoutConditions(t *testing.T) {
	for name, fault := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"ignores": func(_ http.ResponseWriter, r *http.Request) bool { r.Header.Del("If-None-Match"); return false },
		"refuses": func(w http.ResponseWriter, r *http.Request) bool {
			return r.Header.Get("If-None-Match") != "" && answer(w, 501, "NotImplemented")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := faulty(t, fault)
			if !s.Blind() {
				t.Fatal("it was not found out")
			}
			for _, n := range []int{10, 200_000} {
				data, text := blobtest.Bytes(1, n), strconv.Itoa(n)
				blobtest.Put(t, s, text, data)
				blobtest.Put(t, s, text, data)
				if err := s.Put(t.Context(), text, bytes.NewReader(data[1:])); !errors.Is(err, blob.ErrExists) {
					t.Errorf("second put of %d bytes: %v", n, err)
				}
				blobtest.Want(t, s, text, data)
			}
		})
	}
}

// TestS3LeavesNoParts: a put that fails half-way aborts its upload, and Clean finds
// the one of a process that died.
func TestS3LeavesNoParts(t *testing.T) {
	var aborted, begun atomic.Int64
	var deaf atomic.Bool
	s := faulty(t, func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.Method == http.MethodPost && r.URL.Query().Has("uploads"):
			begun.Add(1)
		case r.Method == http.MethodPut && r.URL.Query().Get("partNumber") == "3":
			return answer(w, 403, "AccessDenied")
		case r.Method == http.MethodDelete && r.URL.Query().Has("uploadId"):
			if deaf.Load() {
				return answer(w, 403, "AccessDenied")
			}
			aborted.Add(1)
		}
		return false
	})
	put := func() {
		if err := s.Put(t.Context(), "big", bytes.NewReader(blobtest.Bytes(1, 1<<20))); !errors.Is(err, blob.ErrDenied) {
			t.Errorf("put = %v", err)
		}
		blobtest.WantAbsent(t, s, "big")
	}
	put()
	if begun.Load() != 1 || aborted.Load() != 1 {
		t.Fatalf("%d uploads, %d aborted", begun.Load(), aborted.Load())
	}
	deaf.Store(true)
	put()
	deaf.Store(false)
	if n, err := s.Clean(t.Context(), time.Hour); n != 0 || err != nil {
		t.Errorf("a young one: %d, %v", n, err)
	}
	if n, err := s.Clean(t.Context(), -time.Minute); n != 1 || err != nil {
		t.Errorf("cleaned %d, %v", n, err)
	}
	if aborted.Load() != 2 {
		t.Errorf("%d aborted", aborted.Load())
	}
}

// TestS3AnswerLost: the upload is completed, and its answer never comes.
func TestS3AnswerLost(t *testing.T) {
	inner := fakeS3(t)
	var lost sync.Map // paths whose first answer was
	s := openS3(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		completes := r.Method == http.MethodPost && r.URL.Query().Has("uploadId")
		puts := r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/small")
		if completes || puts {
			if _, again := lost.LoadOrStore(path.Base(r.URL.Path), true); !again {
				w = &cutWriter{ResponseWriter: w}
			}
		}
		inner.ServeHTTP(w, r)
	}))
	for name, n := range map[string]int{"small": 100, "big": 300_000} {
		data := blobtest.Bytes(1, n)
		blobtest.Put(t, s, name, data)
		blobtest.Want(t, s, name, data)
		if _, ok := lost.Load(name); !ok {
			t.Errorf("no answer to %s was lost", name)
		}
	}
}
