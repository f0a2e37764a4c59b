package bed

import (
	"bytes"
	"errors"
	"io"
	"net/http"
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
