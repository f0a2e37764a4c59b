package sdkhttp

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"time"
)

// timeout bounds one request; the service itself answers within 30 s.
const timeout = 60 * time.Second

// maxBody bounds a request's body, as the service does.
const maxBody = 4 << 20

// Client returns a client with connections of its own.
func Client() *http.Client {
	return &http.Client{Timeout: timeout, Transport: ownBody{http.DefaultTransport.(*http.Transport).Clone()}}
}

// ownBody is a transport that sends a copy of each request's body.
type ownBody struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t ownBody) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return t.next.RoundTrip(r)
	}
	data, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if closeErr := r.Body.Close(); err == nil {
		err = closeErr
	}
	if err == nil && len(data) > maxBody {
		err = fmt.Errorf("request body is larger than %d bytes", maxBody)
	}
	if err != nil {
		return nil, err
	}
	own := r.Clone(r.Context())
	own.Body, own.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	own.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	return t.next.RoundTrip(own)
}
