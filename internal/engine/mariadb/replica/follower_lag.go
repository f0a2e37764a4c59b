package replica

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"path/filepath"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/binlog"
	"kurabe/internal/engine/mariadb/conf"
	"kurabe/internal/engine/mariadb/door"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/role"
	"kurabe/internal/proc"
	"kurabe/internal/volume"
)

const (
	PeerEvery = 250 * time.Millisecond
	peerLimit = time.Second
	// reachLimit bounds coming to a follower, which takes five round trips (the connection, the
	// greeting, TLS, the login): far more than an answer does.
	reachLimit = 5 * time.Second
	// behindMost is what a follower may lack of the log, in bytes, to be said to stream
	// while nobody waits for it. Once somebody does, one large transaction may be more.
	behindMost = 16 << 20
)

// address is where a follower listens.
type address struct{ host, port string }

// peer looks at one follower of a writer, over a session of its own. The writer itself does
// not know how far its followers are: in 10.11 it shows neither what it has sent nor what
// was answered for, and a follower that has nothing to answer for says nothing.
type peer struct {
	at   address
	stop context.CancelFunc // nil: it is not known where it is
	done chan struct{}

	mu    sync.Mutex // guards the rest
	known bool
	last  peerAnswer
	heard time.Time // of the newest answer
	moved time.Time // when it had all, or had more than before
	// followed is when it was asked for the newest answer by which it follows, of CLOCK_BOOTTIME.
	followed int64
}

// peerAnswer is what a follower said.
type peerAnswer struct {
	received int64
	file     string // of the writer's log, and how far it has that
	at       int64
	runs     bool // it receives and applies
}

func newPeer(now time.Time) *peer { return &peer{heard: now, moved: now} }

// lookAt begins to look, or to look elsewhere.
func (p *peer) lookAt(writer engine.Instance, at address) {
	if at == p.at || at == (address{}) {
		return
	}
	p.close()
	ctx, stop := context.WithCancel(context.Background())
	p.at, p.stop, p.done = at, stop, make(chan struct{})
	go p.run(ctx, writer)
}

func (p *peer) close() {
	if p.stop == nil {
		return
	}
	p.stop()
	<-p.done
	p.stop = nil
}

func (p *peer) run(ctx context.Context, writer engine.Instance) {
	defer close(p.done)
	var db *sql.DB
	for {
		began := time.Now()
		var err error
		if db == nil {
			db, err = LookPool(writer, p.at.host, p.at.port)
		}
		if err == nil {
			err = p.ask(ctx, writer, db)
		}
		if err != nil && db != nil {
			// The password may be another one by now.
			_ = db.Close()
			db = nil
		}
		if guard.Pause(ctx, max(0, PeerEvery-time.Since(began))) != nil {
			break
		}
	}
	if db != nil {
		_ = db.Close()
	}
}

// LookPool comes in with the account that Followers makes, and verifies the follower as a
// member of this address.
func LookPool(writer engine.Instance, host, port string) (*sql.DB, error) {
	password, err := readLookPassword(writer.Home)
	if err != nil {
		return nil, err
	}
	tlsConfig, err := door.TLSConfig(host, filepath.Join(writer.Home.TLSDir(), door.AuthorityFile))
	if err != nil {
		return nil, err
	}
	config := door.ClientConfig()
	config.User, config.Passwd = role.LookName(writer.Instance), password.Reveal()
	config.Net, config.Addr, config.TLS = "tcp", net.JoinHostPort(host, port), tlsConfig
	// TLS begins under the deadline of the greeting; an answer has a bound of its own (ask).
	config.Timeout, config.ReadTimeout, config.WriteTimeout = reachLimit, reachLimit, reachLimit
	config.MultiStatements = true // lookQuery, and nothing else
	db, err := door.OpenPool(config)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

// lookQuery is asked at once: an answer of two round trips is old when it is there. That it is
// asked is noted before it is answered (LastWord), and what was received is put on disk after it
// was looked at.
const lookQuery = askedQuery + "; SHOW SLAVE STATUS; " + SyncedQuery

func (p *peer) ask(ctx context.Context, writer engine.Instance, db *sql.DB) error {
	reaching, cancel := context.WithTimeout(ctx, reachLimit)
	defer cancel()
	conn, err := db.Conn(reaching)
	if err != nil {
		return err
	}
	defer conn.Close() // it goes back into the pool
	limited, cancel := context.WithTimeout(ctx, peerLimit)
	defer cancel()
	asked := proc.Boottime()
	all, err := door.NamedAll(limited, conn, lookQuery)
	if err != nil {
		return err
	}
	if len(all) != 3 || len(all[1]) != 1 {
		return errors.New("the follower has no source")
	}
	s, err := parseSlave(all[1][0])
	if err != nil {
		return err
	}
	// It was not asked to answer where another one was faster, and syncs when it answers.
	if marks := all[2]; len(marks) > 0 && !conf.IsOn(marks[0]["Value"]) {
		return errUnsynced
	}
	if s.receives == "Yes" && s.host == writer.Listens() && s.port == writer.Port { // a promotion ends that
		p.mu.Lock()
		p.followed = asked
		p.mu.Unlock()
	}
	p.answered(time.Now(), peerAnswer{s.received, s.sourceFile, s.sourceAt, s.receives == "Yes" && s.applies})
	return nil
}

func (p *peer) answered(now time.Time, a peerAnswer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.known || a.received != p.last.received || a.file != p.last.file || a.at != p.last.at {
		p.moved = now
	}
	p.known, p.last, p.heard = true, a, now
}

// view is what is known of it now. before is the newest transaction of a moment ago. One
// that answers and gets no further although there is more is as silent as one that does
// not answer: its disk may hang.
func (p *peer) view(now time.Time, before int64, waits bool, log logSizes) engine.FollowerView {
	p.mu.Lock()
	defer p.mu.Unlock()
	v := engine.FollowerView{Streaming: waits, HeardAgo: now.Sub(p.heard), FollowedAt: p.followed}
	if !p.known {
		return v
	}
	v.Flushed = p.last.received
	if v.Flushed >= before {
		p.moved = now
	}
	v.HeardAgo = max(v.HeardAgo, now.Sub(p.moved))
	v.Streaming = p.last.runs && (waits || log.behind(p.last.file, p.last.at) <= behindMost)
	return v
}

// logSizes are the binary logs of a folder.
type logSizes []logSize

type logSize struct {
	name  string
	bytes int64
}

func measureLog(dataDir string) (logSizes, error) {
	names, err := binlog.List(dataDir)
	var sizes logSizes
	for _, name := range names {
		if info, err := volume.Lstat(filepath.Join(dataDir, name)); err == nil { // else it was purged
			sizes = append(sizes, logSize{name, info.Size()})
		}
	}
	return sizes, err
}

// behind is how many bytes lie behind a place in the log.
func (l logSizes) behind(file string, at int64) int64 {
	sum := -at
	for _, s := range l {
		if (kurabe.LogPosition{File: s.name}).Compare(kurabe.LogPosition{File: file}) >= 0 {
			sum += s.bytes
		}
	}
	return max(sum, 0)
}
