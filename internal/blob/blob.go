package blob

import (
	"context"
	"io"
	"iter"
	"time"
)

// Store keeps immutable objects under names (see CheckName). All methods may be
// called at the same time, also by several processes on one repository.
type Store interface {
	// Put keeps what r gives until EOF. When it returns nil the object is whole,
	// visible and durable. When r fails, or the process dies, nothing is visible
	// under the name. After any other error the object is either absent or whole:
	// put it again to find out.
	//
	// A name is written once. Putting the same bytes again is no error, for after a
	// crash the writer cannot know whether its last Put arrived; other bytes are
	// refused with ErrExists and change nothing.
	Put(ctx context.Context, name string, r io.Reader) error

	// Get reads an object from its beginning. A reader that ends with io.EOF has
	// given all of it. The context holds for the reading too.
	Get(ctx context.Context, name string) (io.ReadCloser, error)

	// GetRange reads length bytes from offset, fewer where the object ends before,
	// none if it ends before offset.
	GetRange(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error)

	// Stat tells of one object without reading it.
	Stat(ctx context.Context, name string) (Info, error)

	// List goes through the objects whose name begins with prefix, which need not
	// end at a slash, in the order of the names' bytes and in bounded memory. An
	// error ends it. Objects that come or go meanwhile may be seen or not.
	List(ctx context.Context, prefix string) iter.Seq2[Info, error]

	// Delete removes an object for good. One that is not there is no error.
	Delete(ctx context.Context, name string) error

	// Clean removes what unfinished Puts have left and nobody has touched for
	// olderThan, and counts it. Such leftovers are never visible as objects.
	Clean(ctx context.Context, olderThan time.Duration) (removed int, err error)

	// String is the location, for people; it holds no secret.
	String() string
}

// Info describes an object.
type Info struct {
	Name      string
	SizeBytes int64     // as stored: of a sealed object not the size of its content
	Modified  time.Time // when it was put, by the clock of who stores it
}

// Cloner is a Store that can add a local file without copying its bytes, because
// both lie on one file system with reflink. What Put promises holds here too. It
// fails with ErrUnsupported where that cannot be, and then nothing is written: put
// the file instead. The object is the file as it is, without a checksum of ours;
// whoever clones keeps one.
type Cloner interface {
	Clone(ctx context.Context, name, path string) error
}
