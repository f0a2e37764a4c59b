package eventloop

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// handshakeTime bounds a TLS handshake.
const handshakeTime = 30 * time.Second

// encryptedBytesMax bounds what has arrived and is not decrypted yet, during a handshake.
const encryptedBytesMax = 256 << 10

// tlsSide is the TLS of a connection. The handshake runs in a goroutine that waits for what
// the loop reads; afterwards the loop decrypts by itself. For that crypto/tls reads from
// memory: when nothing is there, memory answers with an error that is temporary, after which
// crypto/tls keeps its state (Conn.readRecordOrCCS) and reads on the next time.
type tlsSide struct {
	conn  *tls.Conn
	ready bool // the loop decrypts

	mutex     sync.Mutex
	arrived   sync.Cond // of mutex
	encrypted []byte    // guarded until ready: read from the socket, not by crypto/tls yet
	taken     int       // guarded until ready: of encrypted
	waits     bool      // guarded: Read waits for more, which it does during the handshake
	ended     bool      // guarded
	write     func(p []byte)
}

// errNothingYet is what memory answers when everything is read.
var errNothingYet net.Error = nothingYet{}

type nothingYet struct{}

func (nothingYet) Error() string   { return "nothing has arrived" }
func (nothingYet) Timeout() bool   { return true }
func (nothingYet) Temporary() bool { return true }

func newTLSSide() *tlsSide {
	s := &tlsSide{waits: true}
	s.arrived.L = &s.mutex
	return s
}

// Read is crypto/tls's.
func (s *tlsSide) Read(p []byte) (int, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for s.taken == len(s.encrypted) {
		switch {
		case s.ended:
			return 0, io.ErrUnexpectedEOF
		case !s.waits:
			return 0, errNothingYet
		}
		s.arrived.Wait()
	}
	n := copy(p, s.encrypted[s.taken:])
	s.taken += n
	return n, nil
}

// Write is crypto/tls's.
func (s *tlsSide) Write(p []byte) (int, error) {
	s.write(p)
	return len(p), nil
}

func (s *tlsSide) abandon() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.ended = true
	s.arrived.Broadcast()
}

// Close and the rest of net.Conn: the loop owns the socket.
func (s *tlsSide) Close() error                     { return nil }
func (s *tlsSide) LocalAddr() net.Addr              { return memoryAddr{} }
func (s *tlsSide) RemoteAddr() net.Addr             { return memoryAddr{} }
func (s *tlsSide) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (s *tlsSide) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (s *tlsSide) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }

type memoryAddr struct{}

func (memoryAddr) Network() string { return "memory" }
func (memoryAddr) String() string  { return "memory" }

// StartTLS makes c the server of a TLS connection. done is called on the loop's thread when
// the handshake has succeeded; when it fails the connection ends with the reason. Nothing may
// be kept: bytes of before the handshake are not the other end's word.
func (c *Conn) StartTLS(config *tls.Config, done func(tls.ConnectionState)) {
	c.StartTLSAfter(nil, config, done)
}

// StartTLSAfter is StartTLS where the other end begins unasked: begun is what has arrived of
// its handshake, which the handler counts as done.
func (c *Conn) StartTLSAfter(begun []byte, config *tls.Config, done func(tls.ConnectionState)) {
	if c.closed || c.tls != nil {
		return
	}
	c.flush()
	s := newTLSSide()
	s.encrypted = append(s.encrypted, begun...)
	c.tls = s
	l := c.loop
	// During the handshake crypto/tls writes in its goroutine.
	s.write = func(p []byte) {
		p = append([]byte(nil), p...)
		l.Do(func() { c.writeRaw(p) })
	}
	s.conn = tls.Server(s, config)
	deadline := time.AfterFunc(handshakeTime, func() {
		l.Do(func() {
			if !s.ready {
				c.end(errors.New("the TLS handshake took too long"))
			}
		})
	})
	go func() {
		err := s.conn.Handshake()
		deadline.Stop()
		l.Do(func() { c.shookHands(err, done) })
	}()
}

func (c *Conn) shookHands(err error, done func(tls.ConnectionState)) {
	if c.closed {
		return
	}
	if err != nil {
		c.flush() // the alert
		c.end(fmt.Errorf("TLS handshake: %w", err))
		return
	}
	c.tls.driven(c)
	done(c.tls.conn.ConnectionState())
	if !c.closed && !c.paused {
		c.decrypt()
	}
}

// driven leaves reading and writing to the loop.
func (s *tlsSide) driven(c *Conn) {
	s.mutex.Lock()
	s.waits = false
	s.mutex.Unlock()
	s.write = c.writeRaw
	s.ready = true
}

// writeRaw adds what is encrypted already.
func (c *Conn) writeRaw(p []byte) {
	if c.closed {
		return
	}
	c.out = c.loop.buffers.add(c.out, p)
	c.soil()
}

// readTLS takes one reading of encrypted bytes.
func (c *Conn) readTLS() {
	l, s := c.loop, c.tls
	n := c.receive(l.in)
	if n == 0 {
		return
	}
	s.mutex.Lock()
	if s.taken == len(s.encrypted) && s.encrypted != nil {
		s.encrypted, s.taken = s.encrypted[:0], 0
	}
	s.encrypted = l.buffers.add(s.encrypted, l.in[:n])
	tooMuch := len(s.encrypted) > encryptedBytesMax
	s.arrived.Broadcast()
	s.mutex.Unlock()
	switch {
	case tooMuch:
		c.end(errors.New("more arrived than TLS can take"))
	case s.ready:
		c.decrypt()
	}
}

// decrypt gives the handler what can be decrypted, until it pauses.
func (c *Conn) decrypt() {
	l, s := c.loop, c.tls
	if !s.ready {
		return
	}
	if l.plain == nil {
		l.plain = make([]byte, readBytes)
	}
	for !c.closed && !c.paused {
		n, err := s.conn.Read(l.plain)
		if n > 0 {
			if len(c.kept) == 0 {
				c.give(l.plain[:n])
			} else {
				c.kept = l.buffers.add(c.kept, l.plain[:n])
				c.give(c.kept)
			}
		}
		if errors.Is(err, errNothingYet) {
			break
		}
		if err != nil {
			c.end(err)
		}
	}
	if s.taken == len(s.encrypted) && s.encrypted != nil {
		l.buffers.give(s.encrypted)
		s.encrypted, s.taken = nil, 0
	}
}
