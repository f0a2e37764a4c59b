package warden

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The page is one of memory; the words in it are 64 bits and read and written whole.
const (
	pageBytes = 4096
	pageMagic = 0x6b757261_77617264 // "kuraward": no other file is taken for one

	wordMagic    = 0
	wordDeadline = 1 // nanoseconds of CLOCK_BOOTTIME, or one of the two below
	wordEpoch    = 2 // of the right; for people who look at a page
)

// What stands for a deadline where there is none: one word, so that of an agent that
// extends and a warden that fires exactly one wins.
const (
	released = 0              // no server may run under the page
	fired    = math.MaxUint64 // the deadline has passed, and the server is killed
)

// ErrFired is the error of a page whose deadline has passed: the right is lost, and a new
// one needs a page that is armed anew.
var ErrFired = errors.New("the deadline has passed")

// Boottime is the clock of deadlines.
func Boottime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		panic(err) // there is no Linux without it
	}
	return time.Duration(now.Nano())
}

// Page is the deadline that an agent and a warden share.
type Page struct {
	file *os.File
	mem  []byte
}

// Create makes the page of a member, released, or maps the one that is there.
func Create(path string) (*Page, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := file.Truncate(pageBytes); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	p, err := mapped(file)
	if err != nil {
		return nil, err
	}
	if p.word(wordMagic).CompareAndSwap(0, pageMagic) || p.word(wordMagic).Load() == pageMagic {
		return p, nil
	}
	return nil, errors.Join(fmt.Errorf("%s is no page of a warden", path), p.Close())
}

// Open maps a page that is there.
func Open(path string) (*Page, error) {
	file, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || info.Size() != pageBytes {
		return nil, errors.Join(fmt.Errorf("%s is no page of a warden", path), err, file.Close())
	}
	p, err := mapped(file)
	if err != nil {
		return nil, err
	}
	if p.word(wordMagic).Load() != pageMagic {
		return nil, errors.Join(fmt.Errorf("%s is no page of a warden", path), p.Close())
	}
	return p, nil
}

func mapped(file *os.File) (*Page, error) {
	mem, err := unix.Mmap(int(file.Fd()), 0, pageBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("map %s: %w", file.Name(), err), file.Close())
	}
	return &Page{file: file, mem: mem}, nil
}

// word is one of the page, which begins at a page of memory and is aligned therefore.
func (p *Page) word(n int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&p.mem[n*8]))
}

// Close unmaps it. The deadline stands.
func (p *Page) Close() error {
	err := unix.Munmap(p.mem)
	p.mem = nil
	return errors.Join(err, p.file.Close())
}

// Arm gives a right until a deadline. No server may run, and no warden watch.
func (p *Page) Arm(epoch int64, deadline time.Duration) error {
	if held, err := p.Watched(); err != nil || held {
		return errors.Join(errors.New("a warden watches the page already"), err)
	}
	p.word(wordEpoch).Store(uint64(epoch))
	p.word(wordDeadline).Store(uint64(deadline))
	return nil
}

// Extend moves the deadline. It fails once the deadline has passed: the warden may be
// killing already.
func (p *Page) Extend(deadline time.Duration) error {
	for {
		old := p.word(wordDeadline).Load()
		switch {
		case old == released || old == fired || Boottime() >= time.Duration(old):
			return ErrFired
		case uint64(deadline) <= old:
			return nil // an answer that came late
		}
		if p.word(wordDeadline).CompareAndSwap(old, uint64(deadline)) {
			return nil
		}
	}
}

// Release ends the right, and the warden. No server may run.
func (p *Page) Release() {
	for old := p.word(wordDeadline).Load(); old != fired; old = p.word(wordDeadline).Load() {
		if p.word(wordDeadline).CompareAndSwap(old, released) {
			return
		}
	}
}

// Fired says whether a warden has killed, or is about to.
func (p *Page) Fired() bool { return p.word(wordDeadline).Load() == fired }

// Watched says whether a warden lives: it holds the lock of the file.
func (p *Page) Watched() (bool, error) {
	lock := unix.Flock_t{Type: unix.F_WRLCK, Len: 1}
	if err := unix.FcntlFlock(p.file.Fd(), unix.F_OFD_GETLK, &lock); err != nil {
		return false, fmt.Errorf("ask for the lock of %s: %w", p.file.Name(), err)
	}
	return lock.Type != unix.F_UNLCK, nil
}

// lock makes the caller the warden.
func (p *Page) lock() error {
	err := unix.FcntlFlock(p.file.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Len: 1})
	if err != nil {
		return fmt.Errorf("another warden watches %s: %w", p.file.Name(), err)
	}
	return nil
}
