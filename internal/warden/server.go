package warden

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"kurabe/internal/proc"
)

// server answers the agent.
type server struct {
	config   Config
	lease    *lease
	tree     *proc.Tree
	listener *net.UnixListener
	kick     chan struct{} // it is time to look again, holds one

	disarmOnce sync.Once
	disarmed   chan struct{}
}

// connectionsMax bounds who may talk at once: the agent, its successor, a person.
const connectionsMax = 8

// dialPath names a socket by its folder's descriptor: the whole path may be longer than the
// 107 bytes of a socket's address.
func dialPath(dir *os.File) *net.UnixAddr {
	return &net.UnixAddr{Net: "unixpacket", Name: fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), socketName)}
}

// listen takes the place of a socket that a warden left which was killed: the lock file says
// that there is no other.
func (s *server) listen() error {
	if err := os.Remove(s.config.file(socketName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dir, err := os.Open(s.config.Dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	s.listener, err = net.ListenUnix("unixpacket", dialPath(dir))
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	s.listener.SetUnlinkOnClose(false) // the name means another folder by then
	return os.Chmod(s.config.file(socketName), 0o600)
}

func (s *server) close() { _ = os.Remove(s.config.file(socketName)) }

func (s *server) serve() {
	slots := make(chan struct{}, connectionsMax)
	for {
		slots <- struct{}{}
		conn, err := s.listener.AcceptUnix()
		if err != nil {
			// Nobody can renew any more, and the lease does what it is for.
			return
		}
		go func() {
			defer func() { <-slots }()
			defer conn.Close()
			s.talk(conn)
		}()
	}
}

// talk ends at the first message that is not understood.
func (s *server) talk(conn *net.UnixConn) {
	peer, err := peerOf(conn)
	if err != nil || int(peer.Uid) != os.Geteuid() {
		return
	}
	for buf := make([]byte, messageBytesMax+1); ; {
		n, err := conn.Read(buf)
		if err != nil || n == 0 {
			return
		}
		r, err := parseRequest(buf[:n])
		var a answer
		if err != nil {
			a = answer{Code: codeBad, Message: err.Error()}
		} else {
			a = s.obey(r, int(peer.Pid))
		}
		a.Version, a.PID = protocol, os.Getpid()
		writeErr := write(conn, a)
		if err == nil && r.Op == opDisarm && a.Code == "" {
			s.disarmOnce.Do(func() { close(s.disarmed) }) // whether or not somebody heard it
		}
		if err != nil || writeErr != nil {
			return
		}
	}
}

func write(conn *net.UnixConn, a answer) error {
	raw, err := json.Marshal(a)
	if err == nil {
		_, err = conn.Write(raw)
	}
	return err
}

func (s *server) obey(r request, peer int) answer {
	var err error
	switch r.Op {
	case opExtend:
		if err = s.lease.extend(r.Until, r.Addresses); err == nil {
			select {
			case s.kick <- struct{}{}:
			default:
			}
		}
	case opDisarm:
		err = s.lease.disarm()
	case opSucceed:
		err = s.lease.succeed(*r.Config, peer)
	case opHello:
	}
	until, ended := s.lease.state()
	a := answer{Until: until, Ended: ended}
	if r.Op == opHello {
		a.Config = &s.config
	}
	switch {
	case errors.Is(err, ErrEnded):
		a.Code = codeEnded
	case errors.Is(err, ErrBackwards):
		a.Code = codeBackwards
	case err != nil:
		a.Code = codeBad
	}
	if err != nil {
		a.Message = err.Error()
	}
	return a
}

// succeed becomes the program of the process at the other end, with the lease as it is. Pid,
// record and lock stay, so there is no moment without a warden that has the lease: the next
// one sets its timer first. It returns only when it fails, and then all is as before.
func (l *lease) succeed(c Config, peer int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.endedLocked() {
		return ErrEnded
	}
	env, err := order{c, l.until, l.addresses}.env()
	if err != nil {
		return err
	}
	return fmt.Errorf("become the warden of process %d: %w", peer, proc.Become(fmt.Sprintf("/proc/%d/exe", peer), argv(c), env))
}

func peerOf(conn *net.UnixConn) (*unix.Ucred, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	var cred *unix.Ucred
	var inner error
	err = raw.Control(func(fd uintptr) { cred, inner = unix.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, unix.SO_PEERCRED) })
	return cred, errors.Join(err, inner)
}
