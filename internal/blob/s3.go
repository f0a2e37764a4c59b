package blob

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// S3 is a Store in a bucket of any S3-compatible service. Keys are prefix/name.
type S3 struct {
	client *s3.Client
	bucket string
	prefix string // "" or ends in "/"
	where  string

	// blind is set once the service has shown that it does not know, or does not
	// obey, If-None-Match. Then a Put looks first, and of two that put different
	// bytes under one name at the same instant the later wins.
	blind atomic.Bool

	// Tests make these small.
	partBytes int64         // the size of the first parts
	stall     time.Duration // how long a read may give nothing
	pause     time.Duration // before the first resumption of a read
}

const (
	dialTimeout   = 10 * time.Second
	headerTimeout = time.Minute // from the end of a request to the answer's first byte
	stallTimeout  = time.Minute // between two bytes of an answer
	callTimeout   = 3 * time.Minute
	sendRateMin   = 64 << 10 // bytes/s below which sending a part is given up
	sendAttempts  = 5        // of one request
)

// sendPauseMax bounds the pause between them; a variable for the tests alone.
var sendPauseMax = 2 * time.Second

// newRetryer repeats as the SDK does, with jitter, and without its budget: that one
// is for fleets of clients, and would let one bad hour forbid later repetitions. A
// conflict is repeated too: AWS answers so to a condition while another request for the
// name is under way, and stores in folders (versitygw) while a folder comes or goes.
func newRetryer() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts, o.MaxBackoff, o.RateLimiter = sendAttempts, sendPauseMax, ratelimit.None
		o.Retryables = append(o.Retryables, retry.RetryableHTTPStatusCode{Codes: map[int]struct{}{http.StatusConflict: {}}})
	})
}

// newS3 reads the credentials from where every AWS tool finds them. Where to go is
// said by the location alone: AWS_ENDPOINT_URL in the environment of a service that
// speaks AWS's protocols itself means something else.
func newS3(ctx context.Context, loc location) (*S3, error) {
	client := awshttp.NewBuildableClient().
		WithDialerOptions(func(d *net.Dialer) { d.Timeout = dialTimeout }).
		WithTransportOptions(func(t *http.Transport) { t.ResponseHeaderTimeout = headerTimeout })
	options := []func(*config.LoadOptions) error{config.WithHTTPClient(client), config.WithRetryer(newRetryer)}
	if loc.region != "" {
		options = append(options, config.WithRegion(loc.region))
	}
	if loc.profile != "" {
		options = append(options, config.WithSharedConfigProfile(loc.profile))
	}
	if loc.endpoint != "" {
		// Other stores than AWS's do not all understand the newer checksums; the
		// signature covers the bytes, or TLS does.
		options = append(options, config.WithRequestChecksumCalculation(aws.RequestChecksumCalculationWhenRequired),
			config.WithResponseChecksumValidation(aws.ResponseChecksumValidationWhenRequired))
	}
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, &LocationError{loc.String(), "AWS settings", err.Error()}
	}
	if cfg.Region == "" {
		return nil, &LocationError{loc.String(), "parameter region", "say which one: …?region=eu-west-1, or set AWS_REGION"}
	}
	cfg.HTTPClient = boundedClient{cfg.HTTPClient}
	s := &S3{bucket: loc.bucket, where: loc.String(), partBytes: partBytesFirst, stall: stallTimeout, pause: resumePause}
	if loc.prefix != "" {
		s.prefix = loc.prefix + "/"
	}
	s.client = s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.BaseEndpoint = nil
		if loc.endpoint != "" {
			o.BaseEndpoint = aws.String(loc.endpoint)
			o.UsePathStyle = !loc.virtual
		}
	})
	return s, nil
}

func (s *S3) String() string { return s.where }

func (s *S3) key(name string) *string { return aws.String(s.prefix + name) }

// Stat implements Store.
func (s *S3) Stat(ctx context.Context, name string) (Info, error) {
	if err := CheckName(name); err != nil {
		return Info{}, s.fail("stat", name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.bucket, Key: s.key(name)})
	if err != nil {
		return Info{}, s.fail("stat", name, err)
	}
	return Info{name, aws.ToInt64(out.ContentLength), aws.ToTime(out.LastModified)}, nil
}

// Delete implements Store. In a bucket with versions an old version stays, and a
// rule of the bucket has to end it.
func (s *S3) Delete(ctx context.Context, name string) error {
	if err := CheckName(name); err != nil {
		return s.fail("delete", name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.bucket, Key: s.key(name)})
	if isMissing(err) {
		return nil
	}
	return s.fail("delete", name, err)
}

// Clean implements Store: it aborts uploads in parts that have begun long ago and
// not ended. They cost money and no listing of objects shows them.
func (s *S3) Clean(ctx context.Context, olderThan time.Duration) (int, error) {
	before, removed, pages := time.Now().Add(-olderThan), 0, pager{}
	in := &s3.ListMultipartUploadsInput{Bucket: &s.bucket, Prefix: &s.prefix}
	for {
		page, err := within(ctx, func(ctx context.Context) (*s3.ListMultipartUploadsOutput, error) {
			return s.client.ListMultipartUploads(ctx, in)
		})
		if errorCode(err) == "NoSuchUpload" {
			return removed, nil // how some say that there is none
		}
		if err != nil {
			return removed, s.fail("clean", "", err)
		}
		for _, upload := range page.Uploads {
			key := aws.ToString(upload.Key)
			if upload.Initiated == nil || upload.Initiated.After(before) || !strings.HasPrefix(key, s.prefix) || !listed(key[len(s.prefix):]) {
				continue
			}
			if err := s.abort(ctx, upload.Key, upload.UploadId); err != nil {
				return removed, s.fail("clean", key[len(s.prefix):], err)
			}
			removed++
		}
		if !aws.ToBool(page.IsTruncated) || page.NextKeyMarker == nil {
			return removed, nil
		}
		if err := pages.turn(aws.ToString(page.NextKeyMarker)+" "+aws.ToString(page.NextUploadIdMarker), len(page.Uploads)); err != nil {
			return removed, s.fail("clean", "", err)
		}
		in.KeyMarker, in.UploadIdMarker = page.NextKeyMarker, page.NextUploadIdMarker
	}
}

func (s *S3) abort(ctx context.Context, key, id *string) error {
	_, err := within(ctx, func(ctx context.Context) (*s3.AbortMultipartUploadOutput, error) {
		return s.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &s.bucket, Key: key, UploadId: id})
	})
	if isMissing(err) {
		return nil // ended meanwhile
	}
	return err
}

// within bounds one small call.
func within[T any](ctx context.Context, call func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return call(ctx)
}

// sendTimeout bounds one request with a body, its repetitions included.
func sendTimeout(sizeBytes int) time.Duration {
	return callTimeout + time.Duration(sizeBytes/sendRateMin)*time.Second
}
