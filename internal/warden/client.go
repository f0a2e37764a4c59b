package warden

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"reflect"
	"sync"
	"time"

	"kurabe/internal/proc"
)

// Warden is one that runs, as the agent sees it.
type Warden struct {
	config  Config
	process proc.Process

	mu   sync.Mutex // guards conn, and is held through a request and its answer
	conn *net.UnixConn
}

// refused is a request that the warden understood and did not do.
type refused struct {
	op      op
	code    code
	message string
}

func (e *refused) Error() string { return fmt.Sprintf("warden: %s: %s", e.op, e.message) }

func (e *refused) Unwrap() error {
	switch e.code {
	case codeEnded:
		return ErrEnded
	case codeBackwards:
		return ErrBackwards
	}
	return nil
}

// Extend moves the end of the lease to until, in nanoseconds of Now, and names what goes
// with it. After nil the warden enforces exactly this. After an error that is neither
// ErrEnded nor ErrBackwards it may or may not: ask again with the same or a later end. The
// first one arms the warden. It never moves backwards.
func (w *Warden) Extend(ctx context.Context, until int64, guards Target) error {
	_, err := w.ask(ctx, request{Op: opExtend, Until: until, Addresses: guards.Addresses})
	return err
}

// Disarm ends the warden and leaves the server alone. ErrEnded says that it is too late.
func (w *Warden) Disarm(ctx context.Context) error {
	if _, err := w.ask(ctx, request{Op: opDisarm}); err != nil {
		return err
	}
	defer w.Close()
	return w.process.Wait(ctx)
}

// Until tells the end of the lease in force, 0 if none was given yet.
func (w *Warden) Until(ctx context.Context) (int64, error) {
	a, err := w.ask(ctx, request{Op: opHello})
	return a.Until, err
}

// Wait returns nil when the warden has ended, or an error that wraps the context's.
func (w *Warden) Wait(ctx context.Context) error { return w.process.Wait(ctx) }

// Close forgets the warden, which goes on.
func (w *Warden) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closeLocked()
}

func (w *Warden) closeLocked() {
	if w.conn != nil {
		_ = w.conn.Close()
		w.conn = nil
	}
}

// askTime bounds a request whose context has no end.
const askTime = 10 * time.Second

// ask sends one request and reads its answer. A connection on which that failed is given
// up: the answer may still come, and would be taken for the next one's.
func (w *Warden) ask(ctx context.Context, r request) (a answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	r.Version = protocol
	raw, err := json.Marshal(r)
	if err != nil {
		return answer{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return answer{}, fmt.Errorf("warden: %s: %w", r.Op, context.Cause(ctx))
	}
	if w.conn == nil {
		if w.conn, err = dial(w.config); err != nil {
			return answer{}, fmt.Errorf("warden: %w", err)
		}
	}
	conn := w.conn
	past := time.Unix(1, 0)
	_ = conn.SetDeadline(time.Time{})
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(past) })
	a, err = exchange(conn, raw)
	if !stop() {
		w.closeLocked() // its deadline may still be set
	}
	if err != nil {
		w.closeLocked()
		return answer{}, fmt.Errorf("warden: %s: %w", r.Op, errors.Join(err, context.Cause(ctx)))
	}
	if a.Code == codeBad {
		w.closeLocked() // the warden does so too, see talk
	}
	if a.Code != "" {
		return a, &refused{r.Op, a.Code, a.Message}
	}
	return a, nil
}

func exchange(conn *net.UnixConn, raw []byte) (answer, error) {
	if _, err := conn.Write(raw); err != nil {
		return answer{}, err
	}
	buf := make([]byte, messageBytesMax+1)
	n, err := conn.Read(buf)
	if err != nil {
		return answer{}, err
	}
	if n > messageBytesMax {
		return answer{}, fmt.Errorf("answer of more than %d bytes", messageBytesMax)
	}
	var a answer
	if err := json.Unmarshal(buf[:n], &a); err != nil {
		return answer{}, fmt.Errorf("parse answer: %w", err)
	}
	return a, nil
}

func dial(c Config) (*net.UnixConn, error) {
	dir, err := os.Open(c.Dir)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	conn, err := net.DialUnix("unixpacket", nil, dialPath(dir))
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	return conn, nil
}

// speaks says whether a warden is what we would start.
func (a answer) speaks(c Config) bool {
	return a.Version == protocol && a.Config != nil && reflect.DeepEqual(*a.Config, c)
}
