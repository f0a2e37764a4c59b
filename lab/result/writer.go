package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// ErrInUse means that another run has the file open for writing.
var ErrInUse = errors.New("another run is writing this file")

// Writer appends records to a file that it has locked. It may be used by several
// goroutines.
type Writer struct {
	mu sync.Mutex // guards all below
	f  *os.File
	d  *decoder // the state that the next line depends on; it keeps no trials
	// broken is set once a write or sync was in doubt: what the file holds is then only
	// known after reading it again, which is what Resume does.
	broken error
}

// Create begins a file with its study. It refuses a path that exists.
func Create(path string, s Study) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("create results: %s exists: resume it, or choose another name: %w", path, err)
	}
	if err != nil {
		return nil, fmt.Errorf("create results: %w", err)
	}
	w := &Writer{f: f, d: newDecoder()}
	s.Format = Format
	if err := w.begin(path, &s); err != nil {
		// Nothing is in it, and an empty file could be neither created nor resumed.
		return nil, errors.Join(fmt.Errorf("create results in %s: %w", path, err), f.Close(), os.Remove(path))
	}
	return w, nil
}

func (w *Writer) begin(path string, s *Study) error {
	if err := lock(w.f); err != nil {
		return err
	}
	if err := w.append(s); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// Resume opens a file to go on after its last record. A last line that a crash cut
// off is removed from the file.
func Resume(path string) (*Writer, *File, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("resume results: %w", err)
	}
	w := &Writer{f: f, d: newDecoder()}
	file, err := w.reopen()
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("resume results of %s: %w", path, err), f.Close())
	}
	return w, file, nil
}

func (w *Writer) reopen() (*File, error) {
	// Before the reading, or a line could be appended between reading and locking.
	if err := lock(w.f); err != nil {
		return nil, err
	}
	if err := w.d.read(w.f); err != nil {
		return nil, err
	}
	if w.d.file.Torn > 0 {
		if err := w.f.Truncate(w.d.good); err != nil {
			return nil, fmt.Errorf("cut off the torn last line: %w", err)
		}
	}
	if _, err := w.f.Seek(w.d.good, io.SeekStart); err != nil {
		return nil, err
	}
	if w.d.open {
		if _, err := w.f.Write([]byte{'\n'}); err != nil {
			return nil, fmt.Errorf("end the last line: %w", err)
		}
		w.d.good, w.d.open = w.d.good+1, false
	}
	if err := w.f.Sync(); err != nil {
		return nil, err
	}
	file := w.d.file
	w.d.file = &File{Study: file.Study, Settings: map[string]map[string]string{}}
	return file, nil
}

// Append adds a record (Env, Settings, Trial, Event or End, or a pointer to one). When
// it returns nil the record is on the disk.
func (w *Writer) Append(record any) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	record = pointer(record)
	if record == nil {
		return errors.New("append to results: this is no record of a file that has begun")
	}
	if err := w.append(record); err != nil {
		return fmt.Errorf("append %s to results: %w", kindOf(record), err)
	}
	return nil
}

// pointer returns what a line can be made of, nil for anything else.
func pointer(record any) any {
	switch x := record.(type) {
	case Env:
		return &x
	case Settings:
		return &x
	case Trial:
		return &x
	case Event:
		return &x
	case End:
		return &x
	}
	if kind := kindOf(record); kind == "" || kind == KindStudy {
		return nil
	}
	return record
}

func kindOf(record any) string {
	switch record.(type) {
	case *Study:
		return KindStudy
	case *Env:
		return KindEnv
	case *Settings:
		return KindSettings
	case *Trial:
		return KindTrial
	case *Event:
		return KindEvent
	case *End:
		return KindEnd
	}
	return ""
}

func (w *Writer) append(record any) error {
	if w.broken != nil {
		return fmt.Errorf("an earlier write was in doubt: %w", w.broken)
	}
	if w.f == nil {
		return os.ErrClosed
	}
	if err := w.d.accept(record); err != nil {
		return err
	}
	line, err := encodeLine(record, w.d.prev)
	if err != nil {
		return err
	}
	back, err := w.readBack(line)
	if err != nil {
		return err
	}
	if _, err := w.f.Write(append(line, '\n')); err != nil {
		w.broken = err
		return err
	}
	if err := w.f.Sync(); err != nil {
		w.broken = err
		return err
	}
	if s, ok := back.(*Study); ok {
		w.d.add(s)
	}
	w.d.advance(line, true)
	return nil
}

// readBack demands of a line what a reader will: that it fits in the file, and that
// it says what was meant.
func (w *Writer) readBack(line []byte) (any, error) {
	switch {
	case len(line) >= maxLineBytes:
		return nil, fmt.Errorf("its line of %d bytes is longer than %d", len(line), maxLineBytes)
	case w.d.line >= maxLines:
		return nil, fmt.Errorf("a file has at most %d lines", maxLines)
	case w.d.good+int64(len(line)) >= maxFileBytes:
		return nil, fmt.Errorf("a file has at most %d bytes", int64(maxFileBytes))
	}
	var h head
	if err := json.Unmarshal(line, &h); err != nil {
		return nil, clearJSON(err)
	}
	record, err := decodeRecord(h.Kind, line)
	if err != nil {
		return nil, err
	}
	return record, w.d.accept(record)
}

// encodeLine makes a line without its end.
func encodeLine(record any, prev string) ([]byte, error) {
	first, err := json.Marshal(head{Kind: kindOf(record), Prev: prev})
	if err != nil {
		return nil, err
	}
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false) // people read it
	if err := enc.Encode(record); err != nil {
		return nil, err
	}
	line := append(first[:len(first)-1], ',')
	return append(line, bytes.TrimSuffix(body.Bytes()[1:], []byte("\n"))...), nil
}

// Close releases the file. What was appended is safe without it.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.f == nil {
		return nil
	}
	err := w.f.Close() // and with it the lock
	w.f = nil
	return err
}

// lock is released by the kernel when the process ends, however it ends.
func lock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrInUse
	}
	if err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	return nil
}

// syncDir makes the name of a new file as safe as its content.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
