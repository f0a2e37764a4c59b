package transfer

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"kurabe/internal/engine/mariadb/guard"
)

// What source and follower say to each other while a copy is brought. Each is a frame: its
// kind, the length of what follows, little-endian, and that.
const (
	feedHello   = 'H' // source: a copy can be had, and about how large it is
	feedGo      = 'G' // follower: make it
	feedCopy    = 'C' // source: it is made
	feedData    = 'D' // source: a part of the stream (stream.go)
	feedEnd     = 'E' // source: that was all, and its sum
	feedTaken   = 'T' // follower: it is all there
	feedStill   = 'S' // both: still at it
	feedRefused = 'X' // both: why nothing comes of it

	feedHead     = 1 + 4
	feedDataMax  = 256 << 10
	feedTextMax  = 4 << 10
	feedWordsMax = 1 << 10 // of a refusal

	// feedEvery is how often each end says that it is there, feedSilence after which time
	// the other one is given up: it may wait for a disk.
	feedEvery   = 5 * time.Second
	feedSilence = 30 * time.Second
	feedGoodbye = time.Second
)

// errFeed is another end that does not keep to this.
var errFeed = errors.New("the sender violated the copy protocol")

// feedRefusal is the other end's reason.
type feedRefusal struct{ words string }

func (e *feedRefusal) Error() string { return "the other end says: " + e.words }

// feedPeer is the other end of a feed.
type feedPeer struct {
	conn  net.Conn
	end   context.CancelCauseFunc
	pulse sync.WaitGroup
	freed func() bool

	sending sync.Mutex // held while a frame is written
}

// openFeed begins to tell the other end that we are there. The context ends when that fails;
// the connection ends with the caller's.
func openFeed(ctx context.Context, conn net.Conn) (context.Context, *feedPeer) {
	p := &feedPeer{conn: conn, freed: context.AfterFunc(ctx, func() { conn.Close() })}
	ctx, p.end = context.WithCancelCause(ctx)
	p.pulse.Go(func() {
		for guard.Pause(ctx, feedEvery) == nil {
			if err := p.send(feedStill, nil); err != nil {
				p.end(err)
				return
			}
		}
	})
	return ctx, p
}

// close ends the feed.
func (p *feedPeer) close() {
	p.freed()
	p.end(errors.New("the copy has ended"))
	p.conn.Close() // whatever it says, nothing more is said
	p.pulse.Wait()
}

func (p *feedPeer) send(kind byte, text []byte) error {
	return p.sendWithin(feedSilence, kind, text)
}

func (p *feedPeer) sendWithin(limit time.Duration, kind byte, text []byte) error {
	p.sending.Lock()
	defer p.sending.Unlock()
	frame := make([]byte, feedHead, feedHead+len(text))
	frame[0] = kind
	binary.LittleEndian.PutUint32(frame[1:], uint32(len(text)))
	if err := p.conn.SetWriteDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	_, err := p.conn.Write(append(frame, text...))
	return err
}

func (p *feedPeer) sendJSON(kind byte, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return p.send(kind, text)
}

// refuse says why nothing comes of it, if the other end is there to be told.
func (p *feedPeer) refuse(err error) {
	words := err.Error()
	_ = p.sendWithin(feedGoodbye, feedRefused, []byte(words[:min(len(words), feedWordsMax)]))
}

// receive returns the next frame that says something. The text is in the buffer.
func (p *feedPeer) receive(buffer []byte) (kind byte, text []byte, err error) {
	for {
		if err := p.conn.SetReadDeadline(time.Now().Add(feedSilence)); err != nil {
			return 0, nil, err
		}
		if kind, text, err = readFrame(p.conn, buffer); err != nil || kind != feedStill {
			return kind, text, err
		}
	}
}

// readFrame reads one. A refusal is an error.
func readFrame(r io.Reader, buffer []byte) (kind byte, text []byte, err error) {
	head := buffer[:feedHead]
	if _, err := io.ReadFull(r, head); err != nil {
		return 0, nil, fmt.Errorf("read from the other host: %w", noEOF(err))
	}
	kind = head[0]
	length := int64(binary.LittleEndian.Uint32(head[1:]))
	if length > min(frameMax(kind), int64(len(buffer))) {
		return 0, nil, fmt.Errorf("%w: %d bytes of the kind %q", errFeed, length, kind)
	}
	text = buffer[:length]
	if _, err := io.ReadFull(r, text); err != nil {
		return 0, nil, fmt.Errorf("read from the other host: %w", noEOF(err))
	}
	if kind == feedRefused {
		return 0, nil, &feedRefusal{strings.ToValidUTF8(string(text), "?")}
	}
	return kind, text, nil
}

// frameMax is how long what follows may be, -1 of a kind that there is not.
func frameMax(kind byte) int64 {
	switch kind {
	case feedHello, feedCopy, feedEnd, feedRefused:
		return feedTextMax
	case feedData:
		return feedDataMax
	case feedGo, feedTaken, feedStill:
		return 0
	}
	return -1
}

// noEOF: an end without a word is never the end of a copy.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// feedAnswers are what a follower says while its copy is made and sent.
type feedAnswers struct{ kinds chan byte }

// answers begins to hear. When the follower goes, the context of the feed ends: nothing is
// copied for nobody.
func (p *feedPeer) answers() feedAnswers {
	a := feedAnswers{make(chan byte, 2)} // go and taken
	p.pulse.Go(func() {
		buffer := make([]byte, feedTextMax)
		for range cap(a.kinds) {
			kind, _, err := p.receive(buffer)
			if err != nil {
				p.end(err)
				return
			}
			a.kinds <- kind
		}
	})
	return a
}

func (a feedAnswers) await(ctx context.Context, want byte) error {
	select {
	case kind := <-a.kinds:
		if kind != want {
			return fmt.Errorf("%w: it says %q for %q", errFeed, kind, want)
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
