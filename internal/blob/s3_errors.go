package blob

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// errorCode and errorStatus are what the service answered, zero if it did not.
func errorCode(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

func errorStatus(err error) int {
	var answer *smithyhttp.ResponseError
	if errors.As(err, &answer) {
		return answer.HTTPStatusCode()
	}
	return 0
}

func isMissing(err error) bool {
	switch errorCode(err) {
	case "NoSuchKey", "NotFound", "NoSuchUpload":
		return true
	case "NoSuchBucket":
		return false
	}
	return errorStatus(err) == http.StatusNotFound
}

// isTaken is a failed If-None-Match.
func isTaken(err error) bool {
	return errorCode(err) == "PreconditionFailed" || errorStatus(err) == http.StatusPreconditionFailed
}

func (s *S3) fail(op, name string, err error) error {
	if err == nil {
		return nil
	}
	var ours *Error
	if errors.As(err, &ours) {
		return err
	}
	e := &Error{Op: op, Name: name, Where: s.where, Err: err}
	e.Hint, e.Kind = judgeS3(err)
	return e
}

// judgeS3 gives hint and kind of an answer, or of none.
func judgeS3(err error) (hint string, kind error) {
	code, status := errorCode(err), errorStatus(err)
	switch code {
	case "NoSuchBucket":
		return "make the bucket, or correct its name", ErrNoRepository
	case "SlowDown", "Throttling", "ThrottlingException", "RequestTimeout", "ConditionalRequestConflict", "OperationAborted", "InternalError", "ServiceUnavailable":
		return "", ErrBusy
	case "RequestTimeTooSkewed":
		return "set the clock of this host", ErrDenied
	case "XMinioStorageFull", "QuotaExceeded":
		return "free space there, or keep backups for fewer days", ErrFull
	case "EntityTooLarge":
		return "", ErrTooLarge
	case "PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException":
		return "the bucket is in another region: name it with region=…", ErrDenied
	}
	switch {
	case isMissing(err):
		return "", ErrNotFound
	case status == http.StatusInsufficientStorage:
		return "free space there, or keep backups for fewer days", ErrFull
	case status == http.StatusForbidden || status == http.StatusUnauthorized:
		return "check the credentials, and that they may get, put, list and delete there", ErrDenied
	case status >= 500 || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout || status == http.StatusConflict:
		return "", ErrBusy
	case status >= 300 || errors.Is(err, context.Canceled):
		return "", nil
	}
	var untrusted *tls.CertificateVerificationError
	var network net.Error
	var sent *smithyhttp.RequestSendError
	switch {
	case errors.As(err, &untrusted):
		return "name the authority of the endpoint's certificate in AWS_CA_BUNDLE", ErrDenied
	case errors.As(err, &network), errors.As(err, &sent), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, context.DeadlineExceeded):
		return "is the endpoint reachable?", ErrBusy
	}
	// What is left has not been sent: as a rule there are no credentials.
	return "credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, the AWS files, or the host's role", ErrDenied
}

func (s *S3) ReadMark(ctx context.Context) ([]byte, error) {
	r, err := s.read(ctx, markName, 0, markBytesMax+1)
	if errors.Is(err, ErrNotFound) {
		return nil, &Error{Op: "open", Where: s.where, Kind: ErrNoRepository, Hint: "is it the right bucket and prefix?"}
	}
	if err != nil {
		return nil, err
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	return text, s.probe(ctx, text)
}

// probe finds out if If-None-Match is obeyed, by putting what is there once more.
func (s *S3) probe(ctx context.Context, text []byte) error {
	err := s.send(ctx, markName, text, true)
	if !isTaken(err) {
		s.blind.Store(true) // also if we may only read, or cannot know
	}
	return ctx.Err()
}

// WriteMark refuses a prefix that holds anything: it is somebody's.
func (s *S3) WriteMark(ctx context.Context, text []byte) error {
	page, err := within(ctx, func(ctx context.Context) (*s3.ListObjectsV2Output, error) {
		return s.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: &s.prefix})
	})
	if err != nil {
		return s.fail("init", "", err)
	}
	for _, object := range page.Contents {
		if key := aws.ToString(object.Key); key != s.prefix+markName && key != s.prefix {
			return &Error{Op: "init", Where: s.where, Kind: ErrOtherRepository, Err: fmt.Errorf("%.*q lies in it", nameBytesMax, key), Hint: "name an empty prefix"}
		}
	}
	err = s.send(ctx, markName, text, true)
	if isUnknown(err) {
		err = s.send(ctx, markName, text, false)
	}
	if err != nil && !isTaken(err) {
		return s.fail("init", "", err)
	}
	return nil
}
