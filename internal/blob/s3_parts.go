package blob

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// S3 takes at most 10,000 parts. Their size doubles each thousand from 8 MiB to
// 128 MiB, so that the length need not be known before: 120 GiB in the first four
// thousand, and 870 GiB in all. Memory is the parts on their way: 32 MiB until the
// object has 8 GiB, and 128 MiB at most.
const (
	partBytesFirst = 8 << 20
	partGrowth     = 1000
	partDoublings  = 4
	partsMax       = 10000
	partsInFlight  = 4
	flightBytesMax = 64 << 20 // or one part, if that is more
)

// partBytesAt is the size of a part by its number from 0.
func partBytesAt(first int64, number int) int64 {
	return first << min(number/partGrowth, partDoublings)
}

// upload is one object on its way in parts.
type upload struct {
	s    *S3
	name string
	id   *string
	hash hash.Hash

	mu   sync.Mutex // guards what follows
	done []types.CompletedPart
	err  error
}

// putParts begins with a part that has been read already.
func (s *S3) putParts(ctx context.Context, name string, first []byte, src *source) error {
	// Always a look: whoever puts a large object again should not send it for nothing.
	switch _, err := s.Stat(ctx, name); {
	case err == nil:
		return settle(ctx, s, name, &source{ctx: ctx, r: io.MultiReader(bytes.NewReader(first), src)})
	case !errors.Is(err, ErrNotFound):
		return err
	}
	made, err := within(ctx, func(ctx context.Context) (*s3.CreateMultipartUploadOutput, error) {
		return s.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &s.bucket, Key: s.key(name)})
	})
	if err != nil {
		return err
	}
	u := &upload{s: s, name: name, id: made.UploadId, hash: sha256.New()}
	sent := u.sendAll(ctx, first, src)
	if err = sent; err == nil {
		err = u.complete(ctx)
	}
	if err == nil {
		return nil
	}
	// Also when the caller has gone. If it fails, Clean finds the upload.
	_ = s.abort(context.WithoutCancel(ctx), s.key(name), u.id)
	if sent == nil {
		// Somebody may have been faster. Or it was us, and only the answer got lost.
		if settled := settleDigest(ctx, s, name, u.hash.Sum(nil)); !errors.Is(settled, ErrNotFound) {
			return settled
		}
	}
	return err
}

// sendAll reads one part after the other and sends several at a time.
func (u *upload) sendAll(ctx context.Context, part []byte, src *source) error {
	ctx, cancel := context.WithCancel(ctx)
	var senders sync.WaitGroup
	defer senders.Wait()
	defer cancel()                            // before the wait
	slots := make(chan []byte, partsInFlight) // free buffers
	for range partsInFlight {
		slots <- nil
	}
	slotBytes := u.s.partBytes
	for number := 0; ; number++ {
		if number == partsMax {
			return &Error{Op: "put", Name: u.name, Where: u.s.where, Kind: ErrTooLarge, Hint: "divide it into several objects"}
		}
		size := partBytesAt(u.s.partBytes, number)
		for ; slotBytes < size; slotBytes *= 2 {
			for n := inFlight(slotBytes); n > inFlight(2*slotBytes); n-- {
				<-slots
			}
		}
		buf := <-slots
		if number > 0 {
			var err error
			if part, err = u.s.readPart(u.name, src, sized(buf, size), size); err != nil {
				return err
			}
		}
		if err := u.failed(); err != nil {
			return err
		}
		if len(part) == 0 {
			break // the object ended with the part before
		}
		u.hash.Write(part)
		sent := part // for the next part is read meanwhile
		senders.Go(func() {
			if err := u.sendPart(ctx, int32(number+1), sent); err != nil {
				cancel() // the others need not go on
			}
			slots <- sent[:0]
		})
		if int64(len(part)) < size {
			break
		}
	}
	senders.Wait()
	return u.failed()
}

func inFlight(sizeBytes int64) int { return int(min(partsInFlight, max(1, flightBytesMax/sizeBytes))) }

// sized gives a buffer that can hold a whole part: the old one, or one in its place.
func sized(buf []byte, sizeBytes int64) []byte {
	if int64(cap(buf)) < sizeBytes {
		return make([]byte, 0, sizeBytes)
	}
	return buf
}

func (u *upload) failed() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.err
}

func (u *upload) sendPart(ctx context.Context, number int32, part []byte) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout(len(part)))
	defer cancel()
	out, err := u.s.client.UploadPart(ctx, &s3.UploadPartInput{Bucket: &u.s.bucket, Key: u.s.key(u.name), UploadId: u.id,
		PartNumber: aws.Int32(number), Body: bytes.NewReader(part), ContentLength: aws.Int64(int64(len(part)))})
	u.mu.Lock()
	defer u.mu.Unlock()
	if err != nil {
		err = fmt.Errorf("part %d: %w", number, err)
		if u.err == nil {
			u.err = err
		}
		return err
	}
	u.done = append(u.done, types.CompletedPart{ETag: out.ETag, PartNumber: aws.Int32(number),
		ChecksumCRC32: out.ChecksumCRC32, ChecksumCRC64NVME: out.ChecksumCRC64NVME})
	return nil
}

// complete makes the object appear, if the name is still free.
func (u *upload) complete(ctx context.Context) error {
	slices.SortFunc(u.done, func(a, b types.CompletedPart) int { return int(*a.PartNumber - *b.PartNumber) })
	in := &s3.CompleteMultipartUploadInput{Bucket: &u.s.bucket, Key: u.s.key(u.name), UploadId: u.id,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: u.done}}
	if !u.s.blind.Load() {
		in.IfNoneMatch = aws.String("*")
	}
	send := func(ctx context.Context) (*s3.CompleteMultipartUploadOutput, error) {
		return u.s.client.CompleteMultipartUpload(ctx, in)
	}
	_, err := within(ctx, send)
	if isUnknown(err) && in.IfNoneMatch != nil {
		in.IfNoneMatch = nil // known for objects at once, and not for parts
		_, err = within(ctx, send)
	}
	return err
}
