//go:build fault

package fault

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// clock sets the clock of every process of these tests, and nobody else's: service,
// servers and the test itself. A process asks for the time in code that the kernel
// maps into it (the vDSO); there a few instructions are put that add seconds to the
// wall clock. Clocks that cannot be set are left alone, as they are by settimeofday.
// What it cannot set is the time that the kernel itself writes (of files, say) and
// that of a program in the first moments after its exec.
type clock struct {
	mu      sync.Mutex // guards the next three
	seconds int64
	hosts   map[string]int64 // of those that have a clock of their own, by network namespace
	places  map[int]int64    // where the seconds of each process are
	stop    chan struct{}
	done    chan struct{}
}

// clockEvery is how often new programs are looked for.
const clockEvery = 50 * time.Millisecond

// newClock needs the namespace of root's tests: all processes in it are theirs.
func newClock(t *testing.T) *clock {
	t.Helper()
	needRoot(t)
	c, err := openClock(t)
	if err != nil {
		t.Skip(err)
	}
	return c
}

// openClock says why no clock can be set here.
func openClock(t *testing.T) (*clock, error) {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		return nil, fmt.Errorf("no instructions for %s are here", runtime.GOARCH)
	}
	c := &clock{hosts: map[string]int64{}, places: map[int]int64{}, stop: make(chan struct{}), done: make(chan struct{})}
	if os.Getppid() != 1 {
		return nil, errors.New("the clock of a process can be set in a namespace of these tests only")
	}
	if _, err := setProcess(os.Getpid(), 0); err != nil {
		return nil, fmt.Errorf("this kernel does not let the clock of a process be set: %w", err)
	}
	go c.keep()
	t.Cleanup(func() {
		close(c.stop)
		<-c.done
		c.mu.Lock()
		clear(c.hosts)
		c.mu.Unlock()
		c.set(t, 0)
	})
	return c, nil
}

// keep sets the clock of programs that have just begun.
func (c *clock) keep() {
	defer close(c.done)
	tick := time.NewTicker(clockEvery)
	defer tick.Stop()
	for {
		select {
		case <-c.stop:
			return
		case <-tick.C:
			c.mu.Lock()
			if c.seconds != 0 || len(c.hosts) > 0 {
				_ = c.setAllLocked() // who began just now is tried again
			}
			c.mu.Unlock()
		}
	}
}

// set sets all clocks by so much beside the true time.
func (c *clock) set(t *testing.T, by time.Duration) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seconds = int64(by / time.Second)
	if err := c.setAllLocked(); err != nil {
		t.Fatal(err)
	}
}

// clockTries bounds the tries at one process: it may begin another program, or end, in
// the middle of each.
const clockTries = 100

func (c *clock) setAllLocked() error {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		var pid int
		if _, bad := fmt.Sscan(filepath.Base(dir), &pid); bad != nil {
			continue
		}
		seconds, can := c.secondsLocked(pid)
		if !can || c.isSetLocked(pid) {
			continue
		}
		delete(c.places, pid)
		var place int64
		var e error
		for range clockTries {
			if place, e = setProcess(pid, seconds); e == nil {
				break
			}
		}
		if errors.Is(e, fs.ErrNotExist) || errors.Is(e, syscall.ESRCH) {
			continue // it has ended
		}
		// Without an image it has ended and waits for its parent, or is about to begin
		// another program: the next look tells.
		if e == nil && place != 0 {
			c.places[pid] = place
		}
		err = errors.Join(err, e)
	}
	return err
}

// isSetLocked says if a process has the right seconds where they were put.
func (c *clock) isSetLocked(pid int) bool {
	place, known := c.places[pid]
	seconds, can := c.secondsLocked(pid)
	if !known || !can {
		return false
	}
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return false
	}
	defer mem.Close()
	have := make([]byte, clockCode)
	_, err = mem.ReadAt(have, place) // another program may have another place
	return err == nil && bytes.Equal(have, clockWords(seconds))
}

// The end of the image is zeros: there go the seconds, and behind them what is called
// in place of the kernel's functions.
const (
	clockRoom = 256
	clockCode = 16 // behind the seconds
)

// clockWords are the seconds and what says that the code is there.
func clockWords(seconds int64) []byte {
	return append(binary.LittleEndian.AppendUint64(nil, uint64(seconds)), clockMark...)
}

// setProcess sets the clock of one process and returns where. The seconds are one
// aligned word; the code goes there once, an entry at a time, which a thread within
// those five bytes at that very moment would not survive.
func setProcess(pid int, seconds int64) (place int64, err error) {
	from, size, err := findImage(pid)
	if err != nil || size == 0 {
		return 0, err
	}
	mem, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer mem.Close()
	image := make([]byte, size)
	if _, err := mem.ReadAt(image, from); err != nil {
		return 0, err
	}
	at := size - clockRoom
	words := clockWords(seconds)
	if bytes.Equal(image[at+8:at+clockCode], clockMark) {
		_, err := mem.WriteAt(words[:8], from+at)
		return from + at, err
	}
	code, entries, err := clockText(image, at)
	if err != nil {
		return 0, fmt.Errorf("process %d: %w", pid, err)
	}
	// Who was forked off while its parent got the code has a part of it, without the mark.
	if have := image[at+8:]; len(bytes.Trim(have, "\x00")) > 0 && !bytes.Equal(have[8:8+len(code)], code) {
		return 0, fmt.Errorf("process %d: the vDSO has no room", pid)
	}
	for _, w := range append([]clockWrite{{at, words[:8]}, {at + clockCode, code}}, entries...) {
		if _, err := mem.WriteAt(w.text, from+w.at); err != nil {
			return 0, err
		}
	}
	_, err = mem.WriteAt(words, from+at)
	return from + at, err
}

// clockWrite is what goes somewhere in the image.
type clockWrite struct {
	at   int64
	text []byte
}

// clockText is the code behind the seconds, and the jump to it that each entry gets.
func clockText(image []byte, at int64) (code []byte, entries []clockWrite, err error) {
	symbols, err := imageSymbols(image)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(clockFunctions)) {
		parts, place := clockFunctions[name], at+clockCode+int64(len(code))
		entry, ok := symbols[name]
		if !ok {
			return nil, nil, fmt.Errorf("the vDSO has no %s", name)
		}
		text := parts[0]
		code = append(append(code, relative(text[:len(text):len(text)], place, at)...), parts[1]...)
		entries = append(entries, clockWrite{entry, relative([]byte{0xe9}, entry, place)}) // jmp
	}
	return code, entries, nil
}

// clockMark says that the code is there.
var clockMark = []byte("kurabe\x00\x01")

// relative appends the distance from the end of an instruction, which is that of the
// text, to a place. from is where the text goes.
func relative(text []byte, from, to int64) []byte {
	return binary.LittleEndian.AppendUint32(text, uint32(int32(to-from-int64(len(text))-4)))
}

// clockFunctions are the calls of x86-64 themselves with the seconds added: before and
// after their distance.
var clockFunctions = map[string][2][]byte{
	"__vdso_clock_gettime": {{
		0xb8, 228, 0, 0, 0, 0x0f, 0x05, // mov eax, clock_gettime; syscall
		0x85, 0xff, 0x74, 5, // test edi, edi; jz: CLOCK_REALTIME
		0x83, 0xff, 5, 0x75, 10, // cmp edi, CLOCK_REALTIME_COARSE; jne to the end
		0x48, 0x8b, 0x0d, // mov rcx, seconds
	}, {
		0x48, 0x01, 0x0e, 0xc3, // add [rsi], rcx; ret
	}},
	"__vdso_gettimeofday": {{
		0xb8, 96, 0, 0, 0, 0x0f, 0x05, // mov eax, gettimeofday; syscall
		0x48, 0x85, 0xff, 0x74, 10, // test rdi, rdi; jz to the end
		0x48, 0x8b, 0x0d, // mov rcx, seconds
	}, {
		0x48, 0x01, 0x0f, 0xc3, // add [rdi], rcx; ret
	}},
	"__vdso_time": {{
		0xb8, 201, 0, 0, 0, 0x0f, 0x05, // mov eax, time; syscall
		0x48, 0x03, 0x05, // add rax, seconds
	}, {
		0x48, 0x85, 0xff, 0x74, 3, // test rdi, rdi; jz to the end
		0x48, 0x89, 0x07, 0xc3, // mov [rdi], rax; ret
	}},
}

// findImage finds the vDSO of a process, size 0 if it has none.
func findImage(pid int) (from, size int64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(line, "[vdso]\n") {
			continue
		}
		var to int64
		if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err != nil {
			return 0, 0, err
		}
		return from, to - from, nil
	}
	return 0, 0, nil
}

func imageSymbols(image []byte) (map[string]int64, error) {
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return nil, err
	}
	list, err := f.DynamicSymbols()
	places := map[string]int64{}
	for _, s := range list {
		places[s.Name] = int64(s.Value)
	}
	return places, err
}
