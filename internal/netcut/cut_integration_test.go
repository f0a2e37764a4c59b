//go:build integration

package netcut_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kurabe/internal/netcut"
)

// roleKey is the variable by which the test binary is one of the processes of a test.
const roleKey = "KURABE_NETCUT_TEST"

// patience is how long what must happen is waited for.
const patience = 90 * time.Second

func TestMain(m *testing.M) {
	role, rest, _ := strings.Cut(os.Getenv(roleKey), " ")
	var err error
	switch role {
	case "client":
		err = client(rest)
	case "parent":
		err = parent(rest)
	case "holder":
		err = holder(rest)
	default:
		os.Exit(m.Run())
	}
	fmt.Fprintln(os.Stderr, role, err)
	os.Exit(1)
}

// client sends a byte every 10 ms by one connection, and says of each line that it reads
// whether another connection can be made.
func client(address string) error {
	c, err := net.Dial("tcp4", address)
	if err != nil {
		return err
	}
	go io.Copy(io.Discard, c)
	go func() {
		for range time.Tick(10 * time.Millisecond) {
			if _, err := c.Write([]byte("x")); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
	}()
	fmt.Println(os.Getpid())
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		other, err := net.DialTimeout("tcp4", address, 2*time.Second)
		if err == nil {
			other.Close()
		}
		fmt.Println(err == nil)
	}
	return io.EOF
}

// parent runs a client as its child, as PostgreSQL does.
func parent(address string) error {
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), roleKey+"=client "+address)
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	return c.Run()
}

// holder has a process cut from an address for a time.
func holder(args string) error {
	words := strings.Fields(args)
	pid, err := strconv.Atoi(words[0])
	if err != nil {
		return err
	}
	lasts, err := time.ParseDuration(words[2])
	if err != nil {
		return err
	}
	if _, err := netcut.Start([]netcut.Process{{PID: pid, Peers: []netip.Addr{netip.MustParseAddr(words[1])}}}, lasts); err != nil {
		return err
	}
	fmt.Println("holds")
	_, err = io.Copy(io.Discard, os.Stdin) // which does not end: the cut is never ended by this
	return err
}

// helper is one of those processes.
type helper struct {
	*exec.Cmd
	in  io.Writer
	out *bufio.Reader
}

func start(t *testing.T, role string) *helper {
	t.Helper()
	h := &helper{Cmd: exec.Command("/proc/self/exe")}
	h.Env, h.Stderr = append(os.Environ(), roleKey+"="+role), os.Stderr
	h.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := h.StdinPipe()
	must(t, err)
	out, err := h.StdoutPipe()
	must(t, err)
	h.in, h.out = in, bufio.NewReader(out)
	must(t, h.Start())
	t.Cleanup(func() {
		_ = h.Process.Kill()
		_ = h.Wait()
	})
	return h
}

func (h *helper) line(t *testing.T) string {
	t.Helper()
	line, err := h.out.ReadString('\n')
	must(t, err)
	return strings.TrimSpace(line)
}

// dials says whether it can make another connection.
func (h *helper) dials(t *testing.T) bool {
	t.Helper()
	_, err := io.WriteString(h.in, "dial\n")
	must(t, err)
	return h.line(t) == "true"
}

// server counts the bytes that come in, and answers each.
type server struct {
	net.Listener
	bytes atomic.Int64
}

func serve(t *testing.T, ip string) *server {
	t.Helper()
	l, err := net.Listen("tcp4", ip+":0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	s := &server{Listener: l}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				buf := make([]byte, 1024)
				for {
					n, err := c.Read(buf)
					if err != nil {
						return
					}
					s.bytes.Add(int64(n))
					_, _ = c.Write(buf[:n]) // the reader sees it
				}
			}()
		}
	}()
	return s
}

// more waits for bytes that come in from now on.
func (s *server) more(t *testing.T, what string) {
	t.Helper()
	from := s.bytes.Load()
	wait(t, what, func() bool { return s.bytes.Load() > from })
}

func wait(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func needCut(t *testing.T) {
	t.Helper()
	if err := netcut.Probe(); err != nil {
		t.Skip("this machine cannot cut: ", err)
	}
}

// TestCut: what a process and its child say to the address is lost, by connections that are
// there and by new ones; another process's is not, nor is what they say to another address.
func TestCut(t *testing.T) {
	needCut(t)
	at, elsewhere := serve(t, "127.91.1.1"), serve(t, "127.91.1.2")
	peers := []netip.Addr{netip.MustParseAddr("127.91.1.1")}
	for _, role := range []string{"client", "parent"} {
		t.Run(role, func(t *testing.T) {
			h, away := start(t, role+" "+at.Addr().String()), start(t, role+" "+elsewhere.Addr().String())
			worker, err := strconv.Atoi(h.line(t))
			must(t, err)
			awayWorker, err := strconv.Atoi(away.line(t))
			must(t, err)
			at.more(t, "bytes before the cut")
			c, err := netcut.Start([]netcut.Process{{h.Process.Pid, []int{worker}, peers}, {away.Process.Pid, []int{awayWorker}, peers}}, time.Hour)
			must(t, err)
			defer c.Close()
			lost := func() uint64 {
				n, err := c.Lost()
				must(t, err)
				return n
			}
			// Bytes come in order: behind one that is lost none comes.
			wait(t, "a packet is lost", func() bool { return lost() > 0 })
			wait(t, "what came before is read", quiet(at))
			before := at.bytes.Load()
			elsewhere.more(t, "bytes of the same process to another address")
			if h.dials(t) {
				t.Error("it makes a new connection")
			}
			if !away.dials(t) {
				t.Error("it makes none to another address")
			}
			if other, err := net.DialTimeout("tcp4", at.Addr().String(), patience); err != nil {
				t.Error("another process: ", err)
			} else {
				other.Close()
			}
			if now := at.bytes.Load(); now != before {
				t.Errorf("%d bytes came in", now-before)
			}
			must(t, c.Close())
			at.more(t, "bytes after the cut")
			if !h.dials(t) {
				t.Error("it makes no connection after the cut")
			}
		})
	}
}

// quiet says whether a server has read nothing since the last time that it was asked.
func quiet(s *server) func() bool {
	last, calm := int64(-1), 0
	return func() bool {
		now := s.bytes.Load()
		if now != last {
			last, calm = now, 0
		}
		calm++
		return calm > 40 // looks, 200 ms and more
	}
}

// TestCutEnds: the end of a cut needs nobody: not when who holds it is killed, and not when it
// is frozen for longer than the cut was to last.
func TestCutEnds(t *testing.T) {
	needCut(t)
	at := serve(t, "127.91.1.3")
	begin := func(t *testing.T, lasts string) (holds *helper) {
		h := start(t, "client "+at.Addr().String())
		h.line(t)
		at.more(t, "bytes before the cut")
		holds = start(t, fmt.Sprint("holder ", h.Process.Pid, " 127.91.1.3 ", lasts))
		if said := holds.line(t); said != "holds" {
			t.Fatal(said)
		}
		return holds
	}
	t.Run("killed", func(t *testing.T) {
		holds := begin(t, "1h")
		wait(t, "nothing comes in", quiet(at))
		must(t, holds.Process.Kill())
		at.more(t, "bytes after the holder was killed")
	})
	t.Run("frozen", func(t *testing.T) {
		const lasts = 8 * time.Second
		began := time.Now()
		holds := begin(t, lasts.String())
		must(t, holds.Process.Signal(unix.SIGSTOP))
		silent := quiet(at)
		wait(t, "nothing comes in, or the time is up", func() bool { return silent() || time.Since(began) > lasts })
		at.more(t, "bytes after the time, though the holder is frozen")
		if stat, err := os.ReadFile(fmt.Sprint("/proc/", holds.Process.Pid, "/stat")); err != nil || !strings.Contains(string(stat), ") T ") {
			t.Errorf("the holder is not frozen any more: %s, %v", stat, err)
		}
	})
}
