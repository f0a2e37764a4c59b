package volume

import (
	"errors"
	"io"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// passing reads and writes files once, without leaving what comes by in the page cache:
// a copy would otherwise take the memory in which the database beside keeps its own
// files. The kernel can do that since 6.14 (RWF_DONTCACHE), on ext4, XFS and btrfs; what
// was in the cache before stays there. Elsewhere it reads and writes as usual.
type passing struct {
	refused atomic.Bool // asked once, not for each part
}

// ReadAt is that of os.File.
func (p *passing) ReadAt(f *os.File, buf []byte, at int64) (int, error) {
	if p.refused.Load() {
		return f.ReadAt(buf, at)
	}
	n := 0
	for n < len(buf) {
		got, err := unix.Preadv2(int(f.Fd()), [][]byte{buf[n:]}, at+int64(n), unix.RWF_DONTCACHE)
		switch {
		case errors.Is(err, unix.EINTR):
		case p.refuse(err):
			more, err := f.ReadAt(buf[n:], at+int64(n))
			return n + more, err
		case err != nil:
			return n, &os.PathError{Op: "read", Path: f.Name(), Err: err}
		case got == 0:
			return n, io.EOF
		default:
			n += got
		}
	}
	return n, nil
}

// WriteAt is that of os.File. The kernel begins at once to write the part out.
func (p *passing) WriteAt(f *os.File, buf []byte, at int64) (int, error) {
	if p.refused.Load() {
		return f.WriteAt(buf, at)
	}
	n := 0
	for n < len(buf) {
		got, err := unix.Pwritev2(int(f.Fd()), [][]byte{buf[n:]}, at+int64(n), unix.RWF_DONTCACHE)
		switch {
		case errors.Is(err, unix.EINTR):
		case p.refuse(err):
			more, err := f.WriteAt(buf[n:], at+int64(n))
			return n + more, err
		case err != nil:
			return n, &os.PathError{Op: "write", Path: f.Name(), Err: err}
		case got == 0:
			return n, &os.PathError{Op: "write", Path: f.Name(), Err: io.ErrShortWrite}
		default:
			n += got
		}
	}
	return n, nil
}

// refuse says if the kernel or the file system does not know the request, and keeps
// that. Kernels that know preadv2 and not the flag say EOPNOTSUPP, those without ENOSYS,
// and some file systems EINVAL, which a plain call then repeats when it is another's.
func (p *passing) refuse(err error) bool {
	if !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EINVAL) {
		return false
	}
	p.refused.Store(true)
	return true
}
