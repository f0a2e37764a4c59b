package volume

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	uringChild  = "KURABE_TEST_URING" // the file that the child writes
	uringWrites = 64
	uringBytes  = 1 << 20
)

// The writes of a process that was killed go on, and AwaitClosed waits for them.
func TestAwaitClosedAfterAKill(t *testing.T) {
	if path := os.Getenv(uringChild); path != "" {
		uringWrite(path)
	}
	path := filepath.Join(t.TempDir(), "pages")
	if err := os.WriteFile(path, bytes.Repeat([]byte{'a'}, uringWrites*uringBytes), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syncOpened(path, os.O_RDONLY); err != nil {
		t.Fatal(err)
	}
	child := exec.Command(os.Args[0], "-test.run=^TestAwaitClosedAfterAKill$")
	child.Env = append(os.Environ(), uringChild+"="+path)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var said string
	_, err = fmt.Fscanln(out, &said)
	_ = child.Process.Kill()
	_ = child.Wait() // it was killed
	if err != nil || said != "submitted" {
		t.Skipf("no io_uring with direct I/O here: %s, %v", said, err)
	}
	if err := AwaitClosed(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	then := lastPage(t, path)
	if err := awaitDirect(path); err != nil { // the other way to wait
		t.Fatal(err)
	}
	if !bytes.Equal(then, lastPage(t, path)) {
		t.Error("what the dead process had begun to write was written after the wait")
	}
}

// lastPage is what the kernel writes last.
func lastPage(t *testing.T, path string) []byte {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	page := make([]byte, 4096)
	if _, err := file.ReadAt(page, uringWrites*uringBytes-int64(len(page))); err != nil {
		t.Fatal(err)
	}
	return page
}

// The structures of io_uring_setup(2), as far as they are needed.
type (
	uringOffsets struct{ head, tail, mask, entries, flags, dropped, array, reserved uint32 }
	uringParams  struct {
		sqEntries, cqEntries, flags, cpu, idle, features, wq uint32
		_                                                    [3]uint32
		sq                                                   uringOffsets
		_                                                    [2]uint32
		cq                                                   [10]uint32
	}
	uringEntry struct {
		op, flags uint8
		priority  uint16
		fd        int32
		offset    uint64
		address   uint64
		length    uint32
		_         [28]byte
	}
)

// uringWrite has the kernel write the file, says so and waits for its death.
func uringWrite(path string) {
	err := func() error {
		fd, err := unix.Open(path, unix.O_RDWR|unix.O_DIRECT, 0)
		if err != nil {
			return err
		}
		pages, err := unix.Mmap(-1, 0, uringBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			return err
		}
		copy(pages, bytes.Repeat([]byte{'b'}, uringBytes))
		var p uringParams
		ring, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, uringWrites, uintptr(unsafe.Pointer(&p)), 0)
		if errno != 0 {
			return errno
		}
		const ringOffset, entriesOffset = 0, 0x10000000
		queue, err := unix.Mmap(int(ring), ringOffset, int(p.sq.array+4*p.sqEntries), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			return err
		}
		raw, err := unix.Mmap(int(ring), entriesOffset, int(p.sqEntries)*64, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			return err
		}
		for n := range uringWrites {
			const write = 23 // IORING_OP_WRITE
			(*uringEntry)(unsafe.Pointer(&raw[64*n])).set(write, fd, n, pages)
			*(*uint32)(unsafe.Pointer(&queue[int(p.sq.array)+4*n])) = uint32(n)
		}
		atomic.StoreUint32((*uint32)(unsafe.Pointer(&queue[p.sq.tail])), uringWrites)
		done, _, errno := unix.Syscall6(unix.SYS_IO_URING_ENTER, ring, uringWrites, 0, 0, 0, 0)
		if errno != 0 || done != uringWrites {
			return errors.Join(errno, fmt.Errorf("%d of %d were taken", done, uringWrites))
		}
		return nil
	}()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("submitted")
	select {}
}

func (e *uringEntry) set(op uint8, fd, n int, pages []byte) {
	*e = uringEntry{op: op, fd: int32(fd), offset: uint64(n) * uringBytes, address: uint64(uintptr(unsafe.Pointer(&pages[0]))), length: uringBytes}
}
