package gateway

import (
	"errors"
	"io"
	"net"
	"sync"

	"golang.org/x/sys/unix"
)

// session joins a client with a server.
type session struct {
	client, server *net.TCPConn
}

// bufferBytes is what is read at once. A buffer is taken when there is something to read,
// so that an idle session has none.
const bufferBytes = 32 << 10

var buffers = sync.Pool{New: func() any { return new([bufferBytes]byte) }}

// forward copies in both directions until both have ended, or one failed.
func (s *session) forward() {
	var up sync.WaitGroup
	up.Go(func() { s.copy(s.server, s.client) })
	s.copy(s.client, s.server)
	up.Wait()
	s.client.Close()
	s.server.Close()
}

// copy ends with its source: an end is passed on alone, since the other direction may
// still have something to say; a failure ends both.
func (s *session) copy(to, from *net.TCPConn) {
	if err := pump(to, from); err != nil {
		s.cut()
		return
	}
	if err := to.CloseWrite(); err != nil {
		s.cut()
	}
}

// cut ends both sides at once; whoever copies finds them closed.
func (s *session) cut() {
	reset(s.client)
	reset(s.server)
}

// reset closes so that the other end is told of it without delay, whatever it has not
// read yet.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0) // closed already
	_ = c.Close()
}

// pump copies until the source has ended.
func pump(to, from *net.TCPConn) error {
	raw, err := from.SyscallConn()
	if err != nil {
		return err
	}
	for {
		buffer, n, err := readWhenReady(raw)
		if n > 0 && err == nil {
			_, err = to.Write(buffer[:n])
		}
		if buffer != nil {
			buffers.Put(buffer)
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// readWhenReady takes a buffer for as long as there is something to put into it.
func readWhenReady(raw interface {
	Read(func(fd uintptr) bool) error
}) (buffer *[bufferBytes]byte, n int, err error) {
	failure := raw.Read(func(fd uintptr) bool {
		buffer = buffers.Get().(*[bufferBytes]byte)
		for {
			n, err = unix.Read(int(fd), buffer[:])
			if err != unix.EINTR {
				break
			}
		}
		if err == unix.EAGAIN {
			buffers.Put(buffer)
			buffer, n, err = nil, 0, nil
			return false
		}
		return true
	})
	switch {
	case failure != nil:
		return buffer, 0, failure
	case err != nil:
		return buffer, 0, err
	case n == 0:
		return buffer, 0, io.EOF
	}
	return buffer, n, nil
}
