package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Bounds of what a store answers, whoever runs it. A page has 1,000 keys of at most 1,024
// bytes, which XML may write six times as long.
const (
	answerBytesMax = 16 << 20
	emptyPagesMax  = 10000 // in a row: what was deleted may take pages that show nothing
	listedMax      = 1 << 24
)

// List implements Store. S3 gives keys in the order of their bytes, 1,000 a page. A service
// that gives others, or goes round in circles, is not believed.
func (s *S3) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		fail := func(err error) { yield(Info{}, s.fail("list", prefix, err)) }
		if err := checkPrefix(prefix); err != nil {
			fail(err)
			return
		}
		in := &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: s.key(prefix)}
		keys, pages := listing{prefix: *in.Prefix}, pager{}
		for {
			page, err := within(ctx, func(ctx context.Context) (*s3.ListObjectsV2Output, error) {
				return s.client.ListObjectsV2(ctx, in)
			})
			if err != nil {
				fail(err)
				return
			}
			for _, object := range page.Contents {
				key := aws.ToString(object.Key)
				if err := keys.next(key); err != nil {
					fail(err)
					return
				}
				name := key[len(s.prefix):]
				if listed(name) && !yield(Info{name, aws.ToInt64(object.Size), aws.ToTime(object.LastModified)}, nil) {
					return
				}
			}
			if !aws.ToBool(page.IsTruncated) || page.NextContinuationToken == nil {
				return
			}
			if err := pages.turn(*page.NextContinuationToken, len(page.Contents)); err != nil {
				fail(err)
				return
			}
			in.ContinuationToken = page.NextContinuationToken
		}
	}
}

// listing watches over the keys of one listing.
type listing struct {
	prefix, last string
	count        int
}

func (l *listing) next(key string) error {
	l.count++
	switch {
	case !strings.HasPrefix(key, l.prefix):
		return fmt.Errorf("%w: key %.*q lies outside the requested prefix", errListing, nameBytesMax, key)
	case l.count > 1 && key <= l.last:
		return fmt.Errorf("%w: key %.*q comes after %.*q", errListing, nameBytesMax, key, nameBytesMax, l.last)
	case l.count > listedMax:
		return fmt.Errorf("%w: it has more than %d keys", errListing, listedMax)
	}
	l.last = key
	return nil
}

// errListing is a listing that no store gives which does as S3 does.
var errListing = errors.New("the object store returned an invalid list")

// pager watches over the pages of one listing.
type pager struct {
	token string
	empty int
}

// turn goes to the page of a token, after one with so many entries.
func (p *pager) turn(token string, entries int) error {
	if p.empty++; entries > 0 {
		p.empty = 0
	}
	if token == p.token || p.empty > emptyPagesMax {
		return fmt.Errorf("%w: it does not end", errListing)
	}
	p.token = token
	return nil
}

// boundedClient reads at most answerBytesMax of each answer but an object's, which its
// reader bounds.
type boundedClient struct{ aws.HTTPClient }

func (c boundedClient) Do(r *http.Request) (*http.Response, error) {
	answer, err := c.HTTPClient.Do(r)
	if err == nil && (answer.StatusCode >= http.StatusMultipleChoices || r.URL.Query().Get("x-id") != "GetObject") {
		answer.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(answer.Body, answerBytesMax), answer.Body}
	}
	return answer, err
}
