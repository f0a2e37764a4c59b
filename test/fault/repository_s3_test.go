//go:build fault

package fault

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"kurabe/internal/harness"
)

// TestSlowRepository: an S3 that takes its time, says that it is busy, and at last
// answers nothing at all, holds up nobody but the pushes. Both engines share it.
func TestSlowRepository(t *testing.T) {
	t.Parallel()
	store := newSlowS3(t)
	s := harness.Start(t, harness.Options{
		Args: []string{"--copy-rate", "0", "--backup-repository", "s3://bucket/prefix?endpoint=" + url.QueryEscape(store.url)},
		Env:  []string{"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null"},
	})
	s.EachEngine(t, func(t *testing.T, engine string) {
		b := newLogBed(t, s, engine)
		var moments []time.Time
		for _, how := range []string{"late", "busy", "silent"} {
			store.become(how)
			b.pour(t, pieceBytes)
			began := time.Now()
			b.snapshot(t, how+"-"+engine)
			moments = append(moments, b.grows(t))
			if how != "late" {
				// None of it can be there: what was told comes from the spool.
				if files, _ := b.spooled(); len(files) < 2 {
					t.Errorf("%s: %v wait for a repository that takes nothing", how, files)
				}
			}
			t.Logf("%s: a snapshot and its log took %v", how, time.Since(began).Round(time.Millisecond))
			store.become("")
			t.Logf("%s: everything is pushed %v later", how, b.pushed(t).Round(time.Millisecond))
		}
		b.unnoticed(t)
		b.exact(t, moments...)
		b.i.Delete(t)
		noOrphans(t, s)
	})
}

// slowS3 is an S3 that can be told to misbehave.
type slowS3 struct {
	url string

	mu      sync.Mutex // guards the rest
	how     string
	changed chan struct{} // closed when how is another
}

const (
	s3Late = 300 * time.Millisecond // of each request: a store on another continent
	s3Busy = `<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>`
)

func newSlowS3(t *testing.T) *slowS3 {
	t.Helper()
	s, backend := &slowS3{changed: make(chan struct{})}, s3mem.New()
	if err := backend.CreateBucket("bucket"); err != nil {
		t.Fatal(err)
	}
	real := gofakes3.New(backend).Server()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		how, changed := s.now()
		switch how {
		case "late":
			harness.Pause(r.Context(), s3Late)
		case "busy":
			w.WriteHeader(http.StatusServiceUnavailable)
			io.WriteString(w, s3Busy)
			return
		case "silent":
			select {
			case <-changed:
			case <-r.Context().Done():
				return
			}
		}
		real.ServeHTTP(w, r)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // the fake answers twice to some requests
	server.Start()
	s.url = server.URL
	t.Cleanup(func() {
		s.become("")
		server.CloseClientConnections()
		server.Close()
	})
	return s
}

func (s *slowS3) now() (string, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.how, s.changed
}

// become changes the behaviour, "" for a good one; requests that were held are served.
func (s *slowS3) become(how string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.how, s.changed = how, make(chan struct{})
}
