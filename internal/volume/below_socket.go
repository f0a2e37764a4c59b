package volume

import (
	"context"
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// DialSocket connects to a socket by its path, which may be longer than an address can
// hold. What is dialled is the socket that bears the name, so a link in its place does
// not lead us to one of somebody else.
func DialSocket(ctx context.Context, path string) (net.Conn, error) {
	fd, err := anywhere.open(path, unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, anywhere.failed("dial", path, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, anywhere.failed("dial", path, err)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFSOCK:
	case unix.S_IFLNK:
		return nil, anywhere.failed("dial", path, ErrLink)
	default:
		return nil, anywhere.failed("dial", path, errors.New("is not a socket"))
	}
	var dialer net.Dialer
	return dialer.DialContext(ctx, "unix", procFD(fd))
}
