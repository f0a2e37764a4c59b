package blob

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Put implements Store. What fits one part is sent at once; more goes in parts.
func (s *S3) Put(ctx context.Context, name string, r io.Reader) error {
	if err := CheckName(name); err != nil {
		return s.fail("put", name, err)
	}
	src := &source{ctx: ctx, r: r}
	first, err := s.readPart(name, src, nil, s.partBytes)
	if err != nil {
		return s.fail("put", name, err)
	}
	if int64(len(first)) == s.partBytes {
		return s.fail("put", name, s.putParts(ctx, name, first, src))
	}
	if s.blind.Load() {
		switch _, err := s.Stat(ctx, name); {
		case err == nil:
			return settle(ctx, s, name, &source{ctx: ctx, r: bytes.NewReader(first)})
		case !errors.Is(err, ErrNotFound):
			return err
		}
	}
	err = s.send(ctx, name, first, !s.blind.Load())
	if isTaken(err) {
		return settle(ctx, s, name, &source{ctx: ctx, r: bytes.NewReader(first)})
	}
	return s.fail("put", name, err)
}

// send is one PutObject.
func (s *S3) send(ctx context.Context, name string, data []byte, ifNew bool) error {
	in := &s3.PutObjectInput{Bucket: &s.bucket, Key: s.key(name), Body: bytes.NewReader(data), ContentLength: aws.Int64(int64(len(data)))}
	if ifNew {
		in.IfNoneMatch = aws.String("*")
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout(len(data)))
	defer cancel()
	_, err := s.client.PutObject(ctx, in)
	return err
}

// readPart fills a part; less than it asks for is the end of the source.
func (s *S3) readPart(name string, src *source, buf []byte, sizeBytes int64) ([]byte, error) {
	if int64(cap(buf)) < sizeBytes {
		// Small objects are many: grow to what there is.
		var b bytes.Buffer
		_, err := io.CopyN(&b, src, sizeBytes)
		if err != nil && src.failed() != nil {
			return nil, &Error{Op: "put", Name: name, Where: s.where, Err: src.failed()}
		}
		return b.Bytes(), nil
	}
	n, err := io.ReadFull(src, buf[:sizeBytes])
	if err != nil && src.failed() != nil {
		return nil, &Error{Op: "put", Name: name, Where: s.where, Err: src.failed()}
	}
	return buf[:n], nil
}

func isUnknown(err error) bool {
	return errorCode(err) == "NotImplemented" || errorStatus(err) == http.StatusNotImplemented
}
