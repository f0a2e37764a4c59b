package target

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/rds"
)

const (
	// requestTime bounds one request to an API.
	requestTime = 60 * time.Second
	// requestBytesMax bounds its body; ours are a few hundred bytes.
	requestBytesMax = 1 << 20
)

// ownBody is around the SDK's client, which knows of proxies and of AWS_CA_BUNDLE. The SDK
// closes a request's body as soon as it has the reply's head; where net/http is still
// finishing the write, it cuts the connection and the SDK sends the request again, so that
// a create which worked is reported as AlreadyExists
// (https://github.com/aws/aws-sdk-go-v2/issues/2737). Here nobody closes the body.
type ownBody struct{ next rds.HTTPClient }

// Do implements rds.HTTPClient.
func (t ownBody) Do(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(r.Context(), requestTime)
	answer, err := t.do(r.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	answer.Body = endingBody{answer.Body, cancel}
	return answer, nil
}

// endingBody ends a request's time with its answer's body.
type endingBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b endingBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

func (t ownBody) do(r *http.Request) (*http.Response, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return t.next.Do(r)
	}
	data, err := io.ReadAll(io.LimitReader(r.Body, requestBytesMax+1))
	if closeErr := r.Body.Close(); err == nil {
		err = closeErr
	}
	if err == nil && len(data) > requestBytesMax {
		err = fmt.Errorf("request body is larger than %d bytes", requestBytesMax)
	}
	if err != nil {
		return nil, err
	}
	own := r.Clone(r.Context())
	own.Body, own.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	return t.next.Do(own)
}
