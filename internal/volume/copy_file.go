package volume

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// copyFile clones, or copies what is not holes.
func copyFile(ctx context.Context, src, dst string, opts CopyOptions) (err error) {
	in, err := Open(src)
	if err != nil {
		return opts.vanished(err)
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := Create(dst)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if err := unix.IoctlFileClone(int(out.Fd()), int(in.Fd())); err != nil {
		// Not here, not between these, or not for this file: any reason means copy.
		if err := copyExtents(ctx, in, out); err != nil {
			return &fs.PathError{Op: "copy", Path: src, Err: err}
		}
	}
	// The owner first, as that clears bits of the mode.
	return errors.Join(opts.owner(info).Own(out), out.Chmod(info.Mode()))
}

// chunkBytes bounds one system call, so that cancelling does not wait for a file of
// a gigabyte.
const chunkBytes = 8 << 20

// copyExtents keeps holes: a file that MariaDB compressed by punching them would
// otherwise grow to its full size.
func copyExtents(ctx context.Context, in, out *os.File) error {
	from, to := int(in.Fd()), int(out.Fd())
	for pos := int64(0); ; {
		// The size comes first: what is appended after it is left out, where the
		// other order would keep room for it and leave zeros.
		info, err := in.Stat()
		if err != nil {
			return err
		}
		data, err := unix.Seek(from, pos, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) { // Nothing but a hole is left.
			return out.Truncate(info.Size())
		}
		if err != nil {
			return err
		}
		hole, err := unix.Seek(from, data, unix.SEEK_HOLE)
		if errors.Is(err, unix.ENXIO) {
			continue // It was cut meanwhile; look again.
		}
		if err != nil {
			return err
		}
		if err := copyRange(ctx, from, to, data, hole); err != nil {
			return err
		}
		pos = hole
	}
}

func copyRange(ctx context.Context, from, to int, pos, end int64) error {
	for pos < end {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		want := int(min(end-pos, chunkBytes))
		inPos, outPos := pos, pos
		n, err := unix.CopyFileRange(from, &inPos, to, &outPos, want, 0)
		if errors.Is(err, unix.EXDEV) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP) {
			n, err = copyPlain(from, to, pos, want)
		}
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		if n == 0 {
			return nil // The file was cut meanwhile.
		}
		pos += int64(n)
	}
	return nil
}

const plainBytes = 256 << 10

// copyPlain serves pairs of file systems that the kernel does not copy between.
func copyPlain(from, to int, pos int64, want int) (int, error) {
	buf := make([]byte, min(want, plainBytes))
	n, err := unix.Pread(from, buf, pos)
	if err != nil {
		return 0, err
	}
	for done := 0; done < n; {
		m, err := unix.Pwrite(to, buf[done:n], pos+int64(done))
		if err != nil {
			return 0, err
		}
		done += m
	}
	return n, nil
}
