package sigv4

import (
	"errors"
	"io"
	"net/http"

	"kurabe/internal/aws/fault"
)

// MaxBodyBytes bounds a request's body: 1 MiB. The largest real request, a user
// changing 20 parameters or a script of 50 tags, is a few tens of KiB.
const MaxBodyBytes = 1 << 20

// LargeBodyBytes bounds those of the services that take a megabyte of text as JSON, in which a
// byte can be six.
const LargeBodyBytes = 4 << 20

// large has a place for each body that is read beyond MaxBodyBytes: who sends it is not known yet.
var large = make(chan struct{}, 16)

// ReadBody reads the whole body, which the signature covers. It closes the
// connection of a client that sends more than most bytes.
func ReadBody(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	from := http.MaxBytesReader(w, r.Body, most)
	body, err := io.ReadAll(io.LimitReader(from, MaxBodyBytes))
	if err == nil && int64(len(body)) == MaxBodyBytes {
		select {
		case large <- struct{}{}:
			defer func() { <-large }()
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
		var rest []byte
		rest, err = io.ReadAll(from)
		body = append(body, rest...)
	}
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, TooLarge(most)
	case err != nil:
		return nil, fault.New(http.StatusBadRequest, "MalformedInput", "The request's body ended early.")
	}
	return body, nil
}

// TooLarge refuses a body of more than most bytes.
func TooLarge(most int64) *fault.Fault {
	return fault.New(http.StatusRequestEntityTooLarge, "RequestEntityTooLarge", "The request is larger than %d bytes.", most)
}
