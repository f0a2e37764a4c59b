package main

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// memoryBody hands a request's body on as bytes in memory. The SDK closes its
// own body as soon as the answer begins, and when net/http has not looked for the
// body's end by then, as happens with a fast server, it takes that for an error
// and cuts the answer off (smithy-go 1.28: WriteTo of a closed body returns
// io.EOF). The SDK's own client tries again, which would spoil a latency.
type memoryBody struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t memoryBody) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Body == nil {
		return t.next.RoundTrip(request)
	}
	body, err := io.ReadAll(request.Body)
	if err = errors.Join(err, request.Body.Close()); err != nil {
		return nil, err
	}
	request = request.Clone(request.Context())
	request.Body = io.NopCloser(bytes.NewReader(body))
	return t.next.RoundTrip(request)
}

func newTransport() http.RoundTripper {
	return memoryBody{http.DefaultTransport.(*http.Transport).Clone()}
}

// lastByte times requests from when they are handed over, signed, to the last
// byte of the answer. It reads the answer whole before it hands it on: the SDK
// parses while it reads, and the parsing would be timed too.
type lastByte struct {
	next http.RoundTripper
	// instead, when set, looks at an answer and returns what the SDK gets in its
	// place: parsing takes the client longer than the service took to answer, and
	// on one machine several clients would measure each other.
	instead func(answer []byte) ([]byte, error)

	mu    sync.Mutex // guards the rest
	took  []float64  // milliseconds
	bytes int64      // of all answers
}

func newLastByte() *lastByte { return &lastByte{next: newTransport()} }

// RoundTrip implements http.RoundTripper.
func (t *lastByte) RoundTrip(request *http.Request) (*http.Response, error) {
	began := time.Now()
	response, err := t.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	took := float64(time.Since(began).Microseconds()) / 1000
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	t.mu.Lock()
	t.took, t.bytes = append(t.took, took), t.bytes+int64(len(body))
	t.mu.Unlock()
	if t.instead != nil && response.StatusCode == http.StatusOK {
		if body, err = t.instead(body); err != nil {
			return nil, err
		}
		response.ContentLength = int64(len(body))
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}

// take returns what was noted, with the mean size of an answer, and forgets it.
func (t *lastByte) take() (took []float64, meanBytes int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	took, meanBytes = t.took, t.bytes/max(int64(len(t.took)), 1)
	t.took, t.bytes = nil, 0
	return took, meanBytes
}
