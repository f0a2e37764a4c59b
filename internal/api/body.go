package api

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"

	"kurabe/internal/aws/fault"
	"kurabe/internal/aws/sigv4"
)

// inflate undoes the compression of a request's body, which SDKs apply to large ones before they
// sign. The result is bounded like a body that is not compressed: a kilobyte can stand for a
// megabyte.
func inflate(r *http.Request, body []byte, most int64) ([]byte, error) {
	switch encoding := r.Header.Get("Content-Encoding"); encoding {
	case "":
		return body, nil
	case "gzip":
	default:
		return nil, fault.New(http.StatusUnsupportedMediaType, "UnsupportedMediaType", "The content encoding %.40s is not supported: send gzip, or none.", encoding)
	}
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err == nil {
		body, err = io.ReadAll(io.LimitReader(z, most+1))
	}
	switch {
	case err != nil:
		return nil, fault.New(http.StatusBadRequest, "MalformedInput", "The request's body is not gzip.")
	case int64(len(body)) > most:
		return nil, sigv4.TooLarge(most)
	}
	return body, nil
}
