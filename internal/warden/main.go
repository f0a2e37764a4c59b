package warden

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"

	"kurabe/internal/netaddr"
	"kurabe/internal/proc"
)

const subcommand = "warden"

// IsWarden says if this process was started as a warden.
func IsWarden() bool {
	return len(os.Args) > 1 && os.Args[1] == subcommand && os.Getenv(configEnv) != ""
}

// Main is the warden. It never returns. Call it before anything else in main, after
// proc.ShimMain.
func Main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, time.Now().UTC().Format(time.RFC3339), "warden:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func run() error {
	var o order
	if err := json.Unmarshal([]byte(os.Getenv(configEnv)), &o); err != nil {
		return fmt.Errorf("parse order: %w", err)
	}
	if err := o.Config.check(); err != nil {
		return err
	}
	// First of all, for a successor has the lease of its predecessor.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGPIPE, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM)
	l, err := newLease()
	if err != nil {
		return err
	}
	if o.Until != 0 {
		if err := l.restore(o.Until, o.Addresses); err != nil {
			return err
		}
	}
	go l.watch()
	tree := proc.NewTree(o.Config.marks())
	s := &server{config: o.Config, lease: l, tree: tree, kick: make(chan struct{}, 1), disarmed: make(chan struct{})}
	if err := s.listen(); err != nil {
		return err
	}
	go s.look()
	go s.serve()
	return s.await(signals)
}

// lookPause: a server is restarted seldom, and its folder changes when it is made anew.
const lookPause = 10 * time.Second

// look reads from the disk what tells the server's processes, while the disk answers: at
// first and then, if the lease is extended, now and then. It may hang; nothing waits for it.
func (s *server) look() {
	_ = s.tree.Look() // what cannot be seen now may be seen later
	rehearse()
	for range s.kick {
		_ = s.tree.Look()
		time.Sleep(lookPause)
	}
}

// rehearse goes the way of a fence that has nothing to do, and keeps in memory what that
// needed: a disk that hangs must not delay us by a page of our own. What was never used is
// not kept, for the program as a whole is large.
func rehearse() {
	_, _ = proc.NewTree(proc.Marks{}).Kill(context.Background())
	_ = netaddr.Drop(netip.AddrFrom4([4]byte{192, 0, 2, 1})) // is nobody's: RFC 5737
	debug.FreeOSMemory()
	if mayLock() {
		_ = unix.Mlockall(unix.MCL_CURRENT | unix.MCL_FUTURE | unix.MCL_ONFAULT)
	}
}

// mayLock: without the capability there is a limit, address space counts against it, and
// Go's is large. A later allocation would fail, and the warden with it.
func mayLock() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData // 32 capabilities each
	return unix.Capget(&header, &data[0]) == nil && data[0].Effective&(1<<unix.CAP_IPC_LOCK) != 0
}

// await returns when the warden has nothing to do any more.
func (s *server) await(signals <-chan os.Signal) error {
	for {
		select {
		case <-s.disarmed:
			s.close()
			return nil
		case <-s.lease.over:
			return s.end()
		case sig := <-signals:
			// Whoever ends a warden by accident would leave a server without one.
			if until, _ := s.lease.state(); until == 0 && (sig == unix.SIGTERM || sig == unix.SIGINT) {
				s.close()
				return nil
			}
		}
	}
}

// noteTime bounds writing the note: the disk may be what has gone wrong.
const noteTime = 10 * time.Second

// end does what the warden is for: kill first, note last.
func (s *server) end() error {
	reason, until, addresses := s.lease.verdict()
	boottime, at := Now(), time.Now()
	note := fence(s.tree, addresses)
	note.Reason, note.Until, note.Boottime, note.At = reason, until, boottime, at.UTC()
	note.BootID, _ = proc.BootID() // for people; the moment on the wall is there too
	written := make(chan error, 1)
	go func() {
		err := note.write(s.config)
		raw, _ := json.Marshal(note)
		fmt.Fprintln(os.Stderr, at.UTC().Format(time.RFC3339), "warden: server ended:", string(raw))
		s.close()
		written <- err
	}()
	select {
	case err := <-written:
		return err
	case <-time.After(noteTime):
		return fmt.Errorf("could not write the note within %v", noteTime)
	}
}
