package sklookup

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"kurabe/internal/logkey"
)

// Table leads connections to addresses to sockets, in the network namespace of the
// process. New makes one; its methods may be called at any time from anywhere.
type Table struct {
	folder string
	log    *slog.Logger

	mu      sync.Mutex // guards the rest
	sockets *ebpf.Map
	link    link.Link
	refused error // why there is no table here, for good
}

// New is the table that is pinned in a folder of a BPF file system (PinFolder), and made
// when it is first needed. With no folder it ends with the process.
func New(folder string, log *slog.Logger) *Table {
	t := &Table{folder: folder, log: log}
	if folder == "" {
		return t
	}
	if _, err := os.Stat(folder); err == nil {
		_ = t.open() // Set says why not
	}
	return t
}

// Set leads connections to an address to the socket by which a process listens at
// another. Connections that were made before are not touched.
func (t *Table) Set(address, server netip.AddrPort, pid int) error {
	key, err := keyOf(address)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.opened(); err != nil {
		return err
	}
	socket, err := listener(pid, server)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	if err := t.sockets.Update(key[:], uint64(socket), ebpf.UpdateAny); err != nil {
		return fmt.Errorf("socket lookup at %s: %w", address, err)
	}
	return nil
}

// Clear has connections to an address go where they went without the table. Those that
// were made before stay.
func (t *Table) Clear(address netip.AddrPort) error {
	key, err := keyOf(address)
	if err != nil {
		return nil // it cannot be in the table
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sockets == nil {
		return nil
	}
	if err := t.sockets.Delete(key[:]); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("socket lookup at %s: %w", address, err)
	}
	return nil
}

// Has says whether connections to an address are led to a socket: one that still listens.
func (t *Table) Has(address netip.AddrPort) bool {
	key, err := keyOf(address)
	if err != nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sockets != nil && t.has(key)
}

func (t *Table) has(key [keyBytes]byte) bool {
	var cookie uint64
	return t.sockets.Lookup(key[:], &cookie) == nil
}

// empty says whether no address is led anywhere.
func (t *Table) empty() bool {
	var key [keyBytes]byte
	return errors.Is(t.sockets.NextKey(nil, &key), ebpf.ErrKeyNotExist)
}

// Close ends the use of the table. A pinned one goes on leading connections to the
// sockets in it; one without any is removed.
func (t *Table) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sockets == nil {
		return nil
	}
	var err error
	if t.folder != "" && t.empty() {
		err = os.RemoveAll(t.folder)
	}
	err = errors.Join(err, t.link.Close(), t.sockets.Close())
	t.sockets, t.link, t.refused = nil, nil, os.ErrClosed
	return err
}

// Available says why this process cannot have a table on this kernel, nil when it can.
func Available() error {
	if err := features.HaveProgramType(ebpf.SkLookup); err != nil {
		return fmt.Errorf("BPF programs for socket lookup (Linux 5.9, CAP_BPF and CAP_NET_ADMIN): %w", err)
	}
	return nil
}

// opened makes the table at the first use. Where it cannot be had it is not tried again:
// each client would pay for it.
func (t *Table) opened() error {
	if t.sockets != nil || t.refused != nil {
		return t.refused
	}
	err := Available()
	if err == nil {
		err = t.open()
	}
	if err != nil {
		t.refused = fmt.Errorf("cannot pass connections to servers by socket lookup: %w", err)
		t.log.Warn("endpoints forward their bytes through the service", logkey.Error, err)
	}
	return t.refused
}

func (t *Table) open() (failure error) {
	if t.folder != "" && t.reopen() == nil {
		return nil
	}
	sockets, err := ebpf.NewMap(tableSpec())
	if err != nil {
		return err
	}
	defer closeAtFailure(sockets, &failure)
	program, err := ebpf.NewProgram(programSpec(sockets))
	if err != nil {
		return err
	}
	defer program.Close() // the link has it
	namespace, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	defer namespace.Close()
	attached, err := link.AttachNetNs(int(namespace.Fd()), program)
	if err != nil {
		return err
	}
	defer closeAtFailure(attached, &failure)
	if t.folder != "" {
		if err := t.pin(sockets, attached); err != nil {
			t.log.Warn("forwarding endpoints end with the service", logkey.Error, err)
		}
	}
	t.sockets, t.link = sockets, attached
	return nil
}

func closeAtFailure(c interface{ Close() error }, failure *error) {
	if *failure != nil {
		_ = c.Close()
	}
}
