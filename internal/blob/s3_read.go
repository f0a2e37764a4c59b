package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Get implements Store. A connection that breaks or stalls is opened again at the
// place where it broke.
func (s *S3) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := CheckName(name); err != nil {
		return nil, s.fail("get", name, err)
	}
	return s.read(ctx, name, 0, -1)
}

// GetRange implements Store.
func (s *S3) GetRange(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if err := errors.Join(CheckName(name), checkRange(offset, length)); err != nil {
		return nil, s.fail("get", name, err)
	}
	if length == 0 { // which no range header can say
		_, err := s.Stat(ctx, name)
		return http.NoBody, err
	}
	return s.read(ctx, name, offset, length)
}

func (s *S3) read(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	r := &s3Reader{s: s, name: name, pos: offset, end: -1}
	if length >= 0 {
		r.end = offset + length
	}
	r.ctx, r.cancel = context.WithCancel(ctx)
	if err := r.open(); err != nil {
		r.cancel()
		if errorStatus(err) == http.StatusRequestedRangeNotSatisfiable {
			return http.NoBody, nil
		}
		return nil, s.fail("get", name, err)
	}
	return r, nil
}

const (
	resumesMax  = 5                      // in a row, without a byte in between
	resumePause = 500 * time.Millisecond // doubles with each
)

// s3Reader reads [pos, end) of an object through as many connections as it takes.
type s3Reader struct {
	s      *S3
	name   string
	ctx    context.Context
	cancel context.CancelFunc

	pos, end int64 // end is -1 until the first answer has told
	etag     *string
	body     io.ReadCloser
	drop     context.CancelFunc // ends the connection of body
	failures int
}

func (r *s3Reader) open() error {
	in := &s3.GetObjectInput{Bucket: &r.s.bucket, Key: r.s.key(r.name), IfMatch: r.etag}
	switch {
	case r.end >= 0:
		in.Range = aws.String(fmt.Sprintf("bytes=%d-%d", r.pos, r.end-1))
	case r.pos > 0:
		in.Range = aws.String(fmt.Sprintf("bytes=%d-", r.pos))
	}
	ctx, drop := context.WithCancel(r.ctx)
	out, err := r.s.client.GetObject(ctx, in)
	if err != nil {
		drop()
		return err
	}
	if out.ContentLength == nil || in.Range != nil && out.ContentRange == nil {
		drop()
		return errors.Join(errors.New("the answer has no valid Content-Range"), out.Body.Close())
	}
	r.body, r.drop, r.etag = out.Body, drop, out.ETag
	r.end = r.pos + *out.ContentLength
	return nil
}

func (r *s3Reader) Read(p []byte) (int, error) {
	for {
		if r.pos == r.end {
			return 0, io.EOF
		}
		n, err := r.try(p)
		if n > 0 {
			r.pos += int64(n)
			r.failures = 0
			return n, nil
		}
		if len(p) == 0 {
			return 0, nil
		}
		if err := r.resume(err); err != nil {
			return 0, r.s.fail("get", r.name, err)
		}
	}
}

// try reads from the open connection, if there is one, and never past the end.
func (r *s3Reader) try(p []byte) (int, error) {
	if r.body == nil {
		return 0, nil
	}
	// A server that has gone silent would hold the reader for ever.
	watch := time.AfterFunc(r.s.stall, r.drop)
	defer watch.Stop()
	n, err := r.body.Read(p[:min(int64(len(p)), r.end-r.pos)])
	if err == io.EOF {
		err = io.ErrUnexpectedEOF // we stop before the end is said
	}
	return n, err
}

// resume opens again after a failure; err is what the last connection said.
func (r *s3Reader) resume(err error) error {
	if err == nil && r.body != nil {
		return nil // nothing came, nothing was said: read on
	}
	r.hangUp()
	for {
		if r.ctx.Err() != nil {
			return context.Cause(r.ctx)
		}
		if r.failures++; r.failures > resumesMax {
			return &Error{Op: "get", Name: r.name, Where: r.s.where, Kind: ErrBusy, Err: err, Hint: "is the endpoint reachable?"}
		}
		timer := time.NewTimer(r.s.pause << (r.failures - 1))
		select {
		case <-timer.C:
		case <-r.ctx.Done():
			timer.Stop()
			continue
		}
		if err = r.open(); err == nil {
			return nil
		}
		if _, kind := judgeS3(err); kind != ErrBusy {
			return err // it was deleted, or the credentials ended
		}
	}
}

func (r *s3Reader) hangUp() {
	if r.body != nil {
		r.drop()
		_ = r.body.Close()
		r.body = nil
	}
}

func (r *s3Reader) Close() error {
	r.hangUp()
	r.cancel()
	return nil
}
