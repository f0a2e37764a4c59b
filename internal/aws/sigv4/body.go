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

// ReadBody reads the whole body, which the signature covers. It closes the
// connection of a client that sends more than MaxBodyBytes.
func ReadBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBodyBytes))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, TooLarge()
	case err != nil:
		return nil, fault.New(http.StatusBadRequest, "MalformedInput", "The request's body ended early.")
	}
	return body, nil
}

// TooLarge refuses a body of more than MaxBodyBytes.
func TooLarge() *fault.Fault {
	return fault.New(http.StatusRequestEntityTooLarge, "RequestEntityTooLarge", "The request is larger than %d bytes.", MaxBodyBytes)
}
