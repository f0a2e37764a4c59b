package transfer

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"time"

	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/door"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/role"
)

// AskWait is how long a follower waits to be brought its copy before it says that nobody
// comes. It then asks again. Tests wait less.
var AskWait = time.Minute

const (
	// AskSeconds is how long one statement asks: that much longer it may seem to ask.
	AskSeconds = 2
	// askTimeout bounds a session with a source that does not answer.
	askTimeout = 10 * time.Second

	// feedHandshake bounds one that comes, feedGuests how many are looked at at a time.
	feedHandshake = 10 * time.Second
	feedGuests    = 8
)

// awaitSource listens where the server will, asks the source for a copy, and returns the
// connection by which it comes. Whoever else comes is turned away.
func awaitSource(ctx context.Context, i engine.Instance, caFile string) (net.Conn, error) {
	source := *i.Role.Source
	at, err := netip.ParseAddr(i.Listens())
	if err != nil {
		return nil, err
	}
	where := netip.AddrPortFrom(at, uint16(i.Port))
	config, err := ownTLS(i, caFile)
	if err != nil {
		return nil, err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", where.String())
	if err != nil {
		return nil, fmt.Errorf("wait for the copy of %s: %w", source.ID, err)
	}
	waits, cancel := context.WithTimeout(ctx, AskWait)
	defer cancel()
	d := &feedDoor{listener: l, config: config, came: make(chan net.Conn, 1)}
	asked := make(chan error, 1)
	var both sync.WaitGroup
	both.Go(func() { d.serve(waits) })
	both.Go(func() { asked <- ask(waits, i, caFile, where) })
	var conn net.Conn
	select {
	case conn = <-d.came:
	case err = <-asked:
		if waits.Err() != nil {
			err = nil // it has asked to the end
		}
	case <-waits.Done():
	}
	cancel()
	l.Close() // a second time does no harm
	both.Wait()
	if conn == nil {
		select {
		case conn = <-d.came: // in this very moment
		default:
		}
	}
	switch {
	case conn != nil:
		return conn, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, fmt.Errorf("ask %s for a copy: %w", source.ID, err)
	}
	return nil, fmt.Errorf("%s was asked for a copy, and its host has not come to %s within %s%s", source.ID, where, AskWait, d.turnedAway())
}

// ownTLS is what one that comes must show: the certificate of the source.
func ownTLS(i engine.Instance, caFile string) (*tls.Config, error) {
	config, err := feedTLS("", caFile, i.Role.Source.ID)
	if err != nil {
		return nil, err
	}
	own, err := tls.LoadX509KeyPair(filepath.Join(i.Home.TLSDir(), door.CertificateFile), filepath.Join(i.Home.TLSDir(), door.KeyFile))
	if err != nil {
		return nil, fmt.Errorf("read the certificate of the server: %w", err)
	}
	config.Certificates, config.ClientAuth, config.ClientCAs = []tls.Certificate{own}, tls.RequireAndVerifyClientCert, config.RootCAs
	return config, nil
}

// feedDoor lets one in.
type feedDoor struct {
	listener net.Listener
	config   *tls.Config
	came     chan net.Conn // capacity 1

	mu      sync.Mutex // guards refused
	refused error      // the newest
}

// serve returns when ctx ends and nobody is at the door any more.
func (d *feedDoor) serve(ctx context.Context) {
	defer context.AfterFunc(ctx, func() { d.listener.Close() })()
	var guests sync.WaitGroup
	defer guests.Wait()
	places := make(chan struct{}, feedGuests)
	for {
		conn, err := d.listener.Accept()
		if err != nil {
			return
		}
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			conn.Close()
			return
		}
		guests.Go(func() {
			defer func() { <-places }()
			d.look(ctx, conn)
		})
	}
}

func (d *feedDoor) look(ctx context.Context, conn net.Conn) {
	ctx, cancel := context.WithTimeout(ctx, feedHandshake)
	defer cancel()
	guest := tls.Server(conn, d.config)
	err := guest.HandshakeContext(ctx)
	if err == nil {
		select {
		case d.came <- guest:
			return
		default: // another one was faster
		}
	}
	conn.Close()
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil && ctx.Err() == nil {
		d.refused = err
	}
}

func (d *feedDoor) turnedAway() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refused == nil {
		return ""
	}
	return fmt.Sprintf("; somebody came and was turned away: %v", d.refused)
}

// ask has the source's list of sessions show that a copy is wanted, and where. The source's
// host looks there all the time. Whoever may make accounts could ask, too; what is asked for
// goes to the follower alone, which is known by its certificate. So who needs a copy says so,
// and nothing about it is in anybody's orders.
func ask(ctx context.Context, i engine.Instance, caFile string, where netip.AddrPort) error {
	db, err := door.SourcePool(i, caFile)
	if err != nil {
		return err
	}
	defer db.Close()
	limited, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	conn, err := db.Conn(limited)
	if err != nil {
		return fmt.Errorf("connect to its server at %s: %w", net.JoinHostPort(i.Role.Source.Address, strconv.Itoa(i.Role.Source.Port)), err)
	}
	defer conn.Close()
	// A group's limit on statements, and its log of slow ones, are for users.
	if _, err := conn.ExecContext(limited, "SET SESSION max_statement_time = 0, long_query_time = 3600"); err != nil {
		return err
	}
	for {
		limited, cancel := context.WithTimeout(ctx, askTimeout)
		_, err := conn.ExecContext(limited, askSQL(where))
		cancel()
		if err != nil {
			return err
		}
	}
}

func askSQL(where netip.AddrPort) string {
	return "DO 'kurabe: copy to " + where.String() + "', SLEEP(" + strconv.Itoa(AskSeconds) + ")"
}

var askForm = regexp.MustCompile(`^DO 'kurabe: copy to ([0-9a-f.:\[\]]{3,60})', SLEEP\(`)

// Asks are those of the list of a server's sessions.
func Asks(i engine.Instance, list []guard.Thread) []engine.Ask {
	var found []engine.Ask
	for _, t := range list {
		m := askForm.FindStringSubmatch(t.Text)
		id, ours := role.FollowerOf(i, t.User)
		if m == nil || !ours {
			continue
		}
		if at, err := netip.ParseAddrPort(m[1]); err == nil && couldFollow(i, at.Addr().Unmap()) {
			found = append(found, engine.Ask{ID: id, At: at})
		}
	}
	return found
}

// couldFollow says whether a follower of a server could be at an address. A user who may make
// accounts can ask in a follower's name: nobody but that follower gets anything, since it has to
// show its certificate, but nobody is to have us connect to what is this machine's own either.
func couldFollow(i engine.Instance, at netip.Addr) bool {
	own, err := netip.ParseAddr(i.Listens())
	return !at.IsUnspecified() && !at.IsMulticast() && !at.IsLinkLocalUnicast() && (err != nil || at.IsLoopback() == own.IsLoopback())
}
