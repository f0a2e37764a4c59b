package sklookup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// fileSystem is where BPF file systems are mounted, by systemd and by bpftool alike.
const fileSystem = "/sys/fs/bpf"

// layout changes when program or table do: what another layout has pinned is of no use.
const layout = "1"

// PinFolder is the folder for the table of a host, by its name.
func PinFolder(host string) string { return filepath.Join(fileSystem, "kurabe-"+host) }

// Remove ends the table that is pinned in a folder. Connections that were made stay. Who
// may not look into the file system has pinned nothing there.
func Remove(folder string) error {
	if _, err := os.Lstat(folder); err != nil {
		return nil
	}
	return os.RemoveAll(folder)
}

func (t *Table) tablePin() string { return filepath.Join(t.folder, "sockets"+layout) }
func (t *Table) linkPin() string  { return filepath.Join(t.folder, "link"+layout) }

// pin has table and program outlive the process. The link comes last, so that whoever
// finds it finds the table too.
func (t *Table) pin(sockets *ebpf.Map, attached link.Link) error {
	if err := Pinnable(); err != nil {
		return err
	}
	// What is there is half made, or of another version.
	if err := errors.Join(os.RemoveAll(t.folder), os.Mkdir(t.folder, 0o700)); err != nil {
		return err
	}
	if err := errors.Join(sockets.Pin(t.tablePin()), attached.Pin(t.linkPin())); err != nil {
		return errors.Join(err, sockets.Unpin(), attached.Unpin(), os.RemoveAll(t.folder))
	}
	return nil
}

// Pinnable mounts the BPF file system where nobody has, or says why there is none.
func Pinnable() error {
	var fs unix.Statfs_t
	if err := unix.Statfs(fileSystem, &fs); err != nil {
		return fmt.Errorf("%s: %w", fileSystem, err)
	}
	if fs.Type == unix.BPF_FS_MAGIC {
		return nil
	}
	if err := unix.Mount("bpf", fileSystem, "bpf", 0, "mode=700"); err != nil {
		return fmt.Errorf("mount a BPF file system at %s: %w", fileSystem, err)
	}
	return nil
}

// reopen takes up what is pinned. A program that was attached in another network
// namespace, or detached by somebody, is none.
func (t *Table) reopen() (failure error) {
	sockets, err := ebpf.LoadPinnedMap(t.tablePin(), nil)
	if err != nil {
		return err
	}
	defer closeAtFailure(sockets, &failure)
	attached, err := link.LoadPinnedLink(t.linkPin(), nil)
	if err != nil {
		return err
	}
	defer closeAtFailure(attached, &failure)
	if err := ours(sockets, attached); err != nil {
		return err
	}
	t.sockets, t.link = sockets, attached
	return nil
}

func ours(sockets *ebpf.Map, attached link.Link) error {
	if want := tableSpec(); sockets.Type() != want.Type || sockets.KeySize() != want.KeySize || sockets.MaxEntries() != want.MaxEntries {
		return errors.New("the table of endpoints has another layout")
	}
	info, err := attached.Info()
	if err != nil {
		return err
	}
	var here unix.Stat_t
	if err := unix.Stat("/proc/thread-self/ns/net", &here); err != nil {
		return err
	}
	of := info.NetNs()
	if of == nil || uint64(of.NetnsInode) != here.Ino {
		return errors.New("it belongs to another network namespace")
	}
	return nil
}
