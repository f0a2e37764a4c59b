package eventloop

import (
	"errors"
	"fmt"
	"io"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// FullBytes is how much may wait to be written before a connection is Full.
const FullBytes = 64 << 10

// keptBytesMax bounds what a handler leaves for later: the largest buffer, which holds a message
// of 64 KiB that it must see whole, and a reading. A handler that needs more has to stream.
const keptBytesMax = 128 << 10

// ErrKept ends a connection whose handler left more than can be kept.
var ErrKept = errors.New("a message is larger than what may be gathered")

// ErrHungUp says that the other end sends no more while reading was paused.
var ErrHungUp = errors.New("the other end has hung up")

// Handler is what a connection's bytes mean. All its methods are called on the loop's thread.
type Handler interface {
	// Data is given the bytes that arrived, after those that an earlier call left, and says
	// how many are done. It may not keep data. What it leaves is given again with the next
	// arrival, or after Resume.
	Data(c *Conn, data []byte) int

	// Drained says that all that was written has left, after Full was true.
	Drained(c *Conn)

	// Closed says that the connection has ended: with io.EOF by the other end, with nil by
	// Close, otherwise with the reason.
	Closed(c *Conn, err error)
}

// Conn is a connection of a loop.
type Conn struct {
	// Handler may be changed at any time.
	Handler Handler

	loop    *Loop
	fd      int
	watched uint32 // events that epoll reports
	kept    []byte // left by the handler, before what comes next
	out     []byte // waits to be written, encrypted if there is TLS
	sent    int    // of out
	tls     *tlsSide
	accepts *Listener // a listening socket
	reason  error

	dirty, queued    bool // in the loop's lists
	paused, hangsUp  bool // not read; closed when the other end hangs up meanwhile
	full, closed     bool // Full was seen; Close was called or the end was met
	detached, parked bool // left the loop; not in epoll, because it would report an end for ever
}

// Adopt takes over a connected socket, which must not block, and owns its descriptor from
// then on, also if it fails.
func (l *Loop) Adopt(fd int, h Handler) (*Conn, error) {
	c := &Conn{Handler: h, loop: l, fd: fd}
	if err := l.register(c); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return c, nil
}

// Loop is where c lives.
func (c *Conn) Loop() *Loop { return c.loop }

// Kept is the number of bytes that the handler has left for later.
func (c *Conn) Kept() int { return len(c.kept) }

// Now is the time of the loop's turn.
func (c *Conn) Now() time.Time { return c.loop.now }

// Closed says whether the connection has ended or is about to.
func (c *Conn) Closed() bool { return c.closed }

// Paused says whether nothing is read.
func (c *Conn) Paused() bool { return c.paused }

// Pause stops reading until Resume. With hangUp the connection ends when the other end stops
// sending meanwhile: a client that waits for its turn may go away.
func (c *Conn) Pause(hangUp bool) {
	c.paused, c.hangsUp = true, hangUp
	c.watch()
}

// Resume reads on, and first gives the handler what it has left.
func (c *Conn) Resume() {
	if !c.paused || c.closed {
		return
	}
	c.paused = false
	if !c.queued && (len(c.kept) > 0 || c.parked || c.tls != nil) {
		c.queued = true
		c.loop.resumed = append(c.loop.resumed, c)
	}
	c.watch()
}

// Write sends p, now or as soon as the other end takes it. It keeps no reference to p.
func (c *Conn) Write(p []byte) {
	if c.closed || len(p) == 0 {
		return
	}
	if c.tls != nil && c.tls.ready {
		_, _ = c.tls.conn.Write(p) // into out; an error shows at the next reading
	} else {
		c.out = c.loop.buffers.add(c.out, p)
	}
	c.soil()
}

func (c *Conn) soil() {
	if !c.dirty {
		c.dirty = true
		c.loop.dirty = append(c.loop.dirty, c)
	}
}

// Flush sends at once what the kernel takes.
func (c *Conn) Flush() { c.flush() }

// Full says whether so much waits to be written that nothing should be added. It asks for
// Drained.
func (c *Conn) Full() bool {
	if c.waiting() < FullBytes {
		return false
	}
	c.flush()
	if c.waiting() < FullBytes {
		return false
	}
	c.full = true
	return true
}

func (c *Conn) waiting() int { return len(c.out) - c.sent }

// Close ends the connection after what the kernel takes at once. Closed follows.
func (c *Conn) Close() { c.end(nil) }

// Reset ends the connection so that the other end is told at once, whatever is on its way.
func (c *Conn) Reset() {
	if !c.closed {
		_ = unix.SetsockoptLinger(c.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	}
	c.end(nil)
}

func (c *Conn) end(reason error) {
	if c.closed {
		return
	}
	if reason == nil {
		if c.tls != nil && c.tls.ready {
			_ = c.tls.conn.CloseWrite()
		}
		c.flush()
		if c.closed {
			return
		}
	}
	c.closed, c.reason = true, reason
	c.loop.conns[c.fd] = nil
	c.loop.ended = append(c.loop.ended, c)
	if c.tls != nil {
		c.tls.abandon()
	}
}

// finish closes the descriptor, which takes it out of epoll, and tells the handler.
func (c *Conn) finish() {
	_ = unix.Close(c.fd)
	c.fd = -1
	c.release()
	c.Handler.Closed(c, c.reason)
}

func (c *Conn) release() {
	if c.kept != nil {
		c.loop.buffers.give(c.kept)
	}
	if c.out != nil {
		c.loop.buffers.give(c.out)
	}
	c.kept, c.out, c.sent = nil, nil, 0
}

// watch tells epoll what to report.
func (c *Conn) watch() {
	if c.closed {
		return
	}
	var events uint32
	if !c.paused {
		events |= unix.EPOLLIN
	}
	if !c.paused || c.hangsUp {
		events |= unix.EPOLLRDHUP
	}
	if c.waiting() > 0 {
		events |= unix.EPOLLOUT
	}
	if events == c.watched && !c.parked {
		return
	}
	op := unix.EPOLL_CTL_MOD
	if c.parked {
		op, c.parked = unix.EPOLL_CTL_ADD, false
	}
	c.watched = events
	if err := unix.EpollCtl(c.loop.poll, op, c.fd, &unix.EpollEvent{Events: events, Fd: int32(c.fd)}); err != nil {
		c.end(fmt.Errorf("watch a connection: %w", err))
	}
}

// event handles what epoll reports.
func (c *Conn) event(events uint32) {
	if events&unix.EPOLLOUT != 0 {
		c.flush()
	}
	switch {
	case c.closed:
	case !c.paused && events&(unix.EPOLLIN|unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0:
		c.read()
	case c.paused && c.hangsUp && events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0:
		c.end(ErrHungUp)
	case c.paused && events&(unix.EPOLLHUP|unix.EPOLLERR) != 0:
		// Reported until it is read, and it cannot be read now.
		c.parked = true
		_ = unix.EpollCtl(c.loop.poll, unix.EPOLL_CTL_DEL, c.fd, nil)
	}
}

// read takes one reading and gives it to the handler.
func (c *Conn) read() {
	l := c.loop
	switch {
	case c.accepts != nil:
		c.accepts.accept()
		return
	case c.tls != nil:
		c.readTLS()
		return
	}
	if len(c.kept) == 0 {
		n := c.receive(l.in)
		if n > 0 {
			c.give(l.in[:n])
		}
		return
	}
	c.kept = l.buffers.room(c.kept, readBytes/2)
	n := c.receive(c.kept[len(c.kept):min(cap(c.kept), len(c.kept)+readBytes/2)])
	if n > 0 {
		c.kept = c.kept[:len(c.kept)+n]
		c.give(c.kept)
	}
}

// receive reads once. It ends the connection at its end, and gives 0 when there is nothing.
func (c *Conn) receive(into []byte) int {
	n, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(c.fd), uintptr(unsafe.Pointer(&into[0])), uintptr(len(into)))
	switch {
	case errno == unix.EAGAIN, errno == unix.EINTR:
		return 0
	case errno != 0:
		c.end(fmt.Errorf("read: %w", errno))
		return 0
	case n == 0:
		c.end(io.EOF)
		return 0
	}
	return int(n)
}

// give has the handler look at data, which is what is kept or a reading of the loop, and
// keeps what it leaves.
func (c *Conn) give(data []byte) {
	used := c.Handler.Data(c, data)
	if c.closed {
		return
	}
	rest := data[used:]
	switch {
	case len(rest) == 0:
		if c.kept != nil {
			c.loop.buffers.give(c.kept)
			c.kept = nil
		}
	case len(rest) > keptBytesMax:
		c.end(ErrKept)
	case len(c.kept) == 0:
		c.kept = c.loop.buffers.add(nil, rest)
	default:
		c.kept = c.kept[:copy(c.kept, rest)]
	}
}

// continued gives what is kept to the handler again, after Resume.
func (c *Conn) continued() {
	c.queued = false
	if c.closed || c.paused {
		return
	}
	if len(c.kept) > 0 {
		c.give(c.kept)
	}
	if c.tls != nil && !c.closed && !c.paused {
		c.decrypt()
	}
}

// flush writes what waits, as far as the kernel takes it.
func (c *Conn) flush() {
	if c.closed {
		return
	}
	for c.waiting() > 0 {
		n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(c.fd), uintptr(unsafe.Pointer(&c.out[c.sent])), uintptr(c.waiting()), unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT, 0, 0)
		if errno == unix.EINTR {
			continue
		}
		if errno == unix.EAGAIN {
			c.compact()
			c.watch()
			return
		}
		if errno != 0 {
			c.end(fmt.Errorf("write: %w", errno))
			return
		}
		c.sent += int(n)
	}
	if c.out == nil {
		return
	}
	c.loop.buffers.give(c.out)
	c.out, c.sent = nil, 0
	if c.watched&unix.EPOLLOUT != 0 {
		c.watch()
	}
	if c.full {
		c.full = false
		c.Handler.Drained(c)
	}
}

// compact moves what waits to the front once it is the smaller part, so that a slow reader
// does not make the buffer grow.
func (c *Conn) compact() {
	if c.sent > len(c.out)/2 {
		c.out = c.out[:copy(c.out, c.out[c.sent:])]
		c.sent = 0
	}
}

// Detach takes the connection out of the loop and gives its descriptor and what its handler
// has left, for another loop or a goroutine. Only of a connection without TLS that has
// nothing to write. Closed is not called.
func (c *Conn) Detach() (fd int, kept []byte, err error) {
	if c.closed || c.tls != nil || c.waiting() > 0 {
		return -1, nil, errors.New("a connection that is closed, encrypted or being written cannot change its loop")
	}
	kept = append([]byte(nil), c.kept...)
	if !c.parked {
		_ = unix.EpollCtl(c.loop.poll, unix.EPOLL_CTL_DEL, c.fd, nil)
	}
	c.loop.conns[c.fd] = nil
	c.closed, c.detached = true, true
	c.release()
	return c.fd, kept, nil
}
