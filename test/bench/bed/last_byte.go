package bed

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// LastByte times requests from when they are handed over, signed, to the last
// byte of the answer. It reads the answer whole before it hands it on: the SDK
// parses while it reads, and the parsing would be timed too.
type LastByte struct {
	next http.RoundTripper
	// Instead, when set, looks at an answer and returns what the SDK gets in its
	// place: parsing takes the client longer than the service took to answer, and
	// on one machine several clients would measure each other.
	Instead func(answer []byte) ([]byte, error)

	mu    sync.Mutex // guards the rest
	took  []float64  // milliseconds
	bytes int64      // of all answers
}

// NewLastByte is one with connections of its own.
func NewLastByte() *LastByte { return &LastByte{next: newTransport()} }

// RoundTrip implements http.RoundTripper.
func (t *LastByte) RoundTrip(request *http.Request) (*http.Response, error) {
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
	if t.Instead != nil && response.StatusCode == http.StatusOK {
		if body, err = t.Instead(body); err != nil {
			return nil, err
		}
		response.ContentLength = int64(len(body))
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}

// Take returns what was noted, with the mean size of an answer, and forgets it.
func (t *LastByte) Take() (took []float64, meanBytes int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	took, meanBytes = t.took, t.bytes/max(int64(len(t.took)), 1)
	t.took, t.bytes = nil, 0
	return took, meanBytes
}
