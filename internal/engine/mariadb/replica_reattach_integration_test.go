//go:build integration

package mariadb

import (
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/enginetest"
)

// link is the way from a follower to its writer, on which what the follower says can get lost.
type link struct {
	port   int
	writer string
	loses  atomic.Bool

	mu    sync.Mutex // guards the rest
	conns []net.Conn
}

func newLink(t *testing.T, writer *enginetest.Bed) *link {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(writer.Want.Address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	k := &link{port: l.Addr().(*net.TCPAddr).Port, writer: net.JoinHostPort(writer.Want.Address, strconv.Itoa(writer.Want.Port))}
	t.Cleanup(k.cut)
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			go k.carry(from)
		}
	}()
	return k
}

func (k *link) carry(follower net.Conn) {
	writer, err := net.Dial("tcp", k.writer)
	if err != nil {
		follower.Close()
		return
	}
	k.mu.Lock()
	k.conns = append(k.conns, follower, writer)
	k.mu.Unlock()
	go func() {
		_, _ = io.Copy(follower, writer) // the end of either side ends both
		follower.Close()
	}()
	_, _ = io.Copy(lossy{writer, k}, follower) // likewise
	writer.Close()
}

// lossy loses what is written while its link does.
type lossy struct {
	to net.Conn
	k  *link
}

func (l lossy) Write(b []byte) (int, error) {
	if l.k.loses.Load() {
		return len(b), nil
	}
	return l.to.Write(b)
}

// cut ends the connections, and with them what was lost; later ones lose nothing.
func (k *link) cut() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.conns {
		c.Close()
	}
	k.conns = nil
	k.loses.Store(false)
}

// A follower that has a commit, and whose answer for it was lost, answers for it when it comes
// again, without another commit: its connection ended, or it died. And one that has nothing to
// do answers for what it has from time to time.
func TestGroupAnswersAgain(t *testing.T) {
	enginetest.OnceIsEnough(t)
	p := newPair(t)
	k := newLink(t, p.writer)
	p.follower.Want.Generation++
	role := *p.follower.Want.Role
	role.Source = &kurabe.Source{ID: role.Source.ID, Address: role.Source.Address, Port: k.port}
	p.follower.Want.Role = &role
	p.follower.Satisfy(t)
	p.awaitFollowing(t)
	p.waitForFollower(t)
	for n, ends := range []func(){k.cut, func() {
		k.cut()
		p.follower.Crash(t)
		p.follower.Satisfy(t)
	}} {
		p.writer.MustQuery(t, "INSERT INTO t VALUES (1"+strconv.Itoa(n)+", 'answered')")
		k.loses.Store(true)
		lost := insert(t, p.writer, "INSERT INTO t VALUES (2"+strconv.Itoa(n)+", 'answered, and the answer is lost')")
		awaitRow(t, p.follower, 20+n)
		lost.waits(t, "for the answer that was lost")
		ends()
		if err := lost.end(t); err != nil {
			t.Error(err)
		}
	}
	answers := func() string {
		return inside(t, p.follower, "SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_slave_send_ack'")[0][1]
	}
	p.awaitFollowing(t)
	before := answers()
	await(t, p.follower, "an answer of one that receives nothing", func(engine.RoleView) bool { return answers() != before })
}
