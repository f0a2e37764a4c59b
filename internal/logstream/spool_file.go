package logstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"kurabe"
	"kurabe/internal/volume"
)

// reserveBytes of zeros are written ahead of the frames, so that a second in which
// little happens overwrites what the file has already: then fdatasync need not wait
// for the file system's journal.
const reserveBytes = 64 << 10

// header is the first frame of a spool file.
type header struct {
	Version  int               `json:"version"`
	Instance kurabe.InstanceID `json:"instance"`
	Run      string            `json:"run"`
	File     string            `json:"file"`
	Start    int64             `json:"start"`
	After    *span             `json:"after,omitempty"`
	From     kurabe.LogMark    `json:"from,omitzero"`
	Server   kurabe.InstanceID `json:"server,omitempty"`
	Joins    *joint            `json:"joins,omitempty"`
}

// head is that of a file in which nothing counts yet.
func (h header) head() head {
	return head{span: span{h.File, h.Start, h.Start}, Next: kurabe.LogPosition{File: h.File, Offset: h.Start}, After: h.After, From: h.From,
		Server: h.Server, Joins: h.Joins}
}

const headerVersion = 1

// spoolFile is written by one goroutine.
type spoolFile struct {
	file   *os.File
	path   string
	place  int64 // of the next frame
	size   int64 // of the file, zeros included
	buf    []byte
	toDisk syncFunc
}

// syncFunc makes what was written into a file durable; path is its name by now.
type syncFunc func(file *os.File, path string) error

func fdatasync(file *os.File, path string) error {
	for {
		err := syscall.Fdatasync(int(file.Fd()))
		if err == nil {
			return nil
		}
		if err != syscall.EINTR {
			return fmt.Errorf("sync %s: %w", filepath.Base(path), err)
		}
	}
}

// createSpoolFile makes a file whose name and header are durable when it returns.
// One that is there (of a stretch that held marks only) is replaced.
func createSpoolFile(path string, h header, marks []kurabe.LogMark, toDisk syncFunc) (_ *spoolFile, err error) {
	text, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	temp := path + ".tmp"
	file, err := os.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	f := &spoolFile{file: file, path: temp, toDisk: toDisk}
	defer func() {
		if err != nil {
			_ = errors.Join(file.Close(), os.Remove(temp))
		}
	}()
	if err := f.write(frameHead, text); err != nil {
		return nil, err
	}
	for _, m := range marks {
		if err := f.write(frameMark, appendMark(nil, m)); err != nil {
			return nil, err
		}
	}
	if err := f.sync(); err != nil {
		return nil, err
	}
	if err := os.Rename(temp, path); err != nil {
		return nil, err
	}
	f.path = path
	return f, volume.SyncDir(filepath.Dir(path))
}

// openSpoolFile goes on after the last good frame; what follows it is cut off.
func openSpoolFile(path string, place int64, toDisk syncFunc) (*spoolFile, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	f := &spoolFile{file: file, path: path, place: place, size: place, toDisk: toDisk}
	if err := file.Truncate(place); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return f, nil
}

func (f *spoolFile) write(kind byte, payload []byte) error {
	f.buf = appendFrame(f.buf[:0], kind, f.place, payload)
	n, err := f.file.WriteAt(f.buf, f.place)
	if err != nil {
		return err
	}
	f.place += int64(n)
	f.size = max(f.size, f.place)
	return nil
}

// sync makes all frames durable.
func (f *spoolFile) sync() error {
	// Space for a few marks at least; a header alone is followed by zeros too.
	if f.size-f.place < 1024 {
		if _, err := f.file.WriteAt(zeros[:], f.size); err != nil {
			return err
		}
		f.size += reserveBytes
	}
	return f.toDisk(f.file, f.path)
}

var zeros [reserveBytes]byte

// scanned is what a spool file holds up to its last good place: the end of the
// header, a mark, or the end frame. Data after it is not counted.
type scanned struct {
	header header
	head   head
	marks  []kurabe.LogMark
	place  int64 // of the next frame after the last good one
	closed bool
	frames int // marks in the file, before merging
	torn   error
}

// scanSpoolFile reads a spool file; data may be nil and gets each data frame as it
// comes, also beyond the last good place. An error is one of the disk or of data, or
// says that not even the header can be read.
func scanSpoolFile(path string, data func([]byte) error) (scanned, error) {
	file, err := os.Open(path)
	if err != nil {
		return scanned{}, err
	}
	defer file.Close()
	frames := newFrameReader(file)
	kind, payload, err := frames.next()
	var s scanned
	if err == nil && (kind != frameHead || json.Unmarshal(payload, &s.header) != nil || s.header.Version != headerVersion) ||
		err == io.EOF {
		err = errTorn
	}
	if err != nil {
		return scanned{}, fmt.Errorf("header of the spool file: %w", err)
	}
	s.head = s.header.head()
	s.place = frames.place
	err = s.frameLoop(frames, data)
	if errors.Is(err, errTorn) {
		s.torn, err = err, nil
	}
	return s, err
}

func (s *scanned) frameLoop(frames *frameReader, data func([]byte) error) error {
	seen := s.head
	for !s.closed {
		kind, payload, err := frames.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		switch kind {
		case frameData:
			seen.End += int64(len(payload))
			seen.Sum = crcUpdate(seen.Sum, payload)
			if data != nil {
				if err := data(payload); err != nil {
					return err
				}
			}
			continue
		case frameMark:
			m, err := parseMark(string(payload))
			if err != nil {
				return errTorn
			}
			s.marks = addMark(s.marks, m)
			s.frames++
			seen.Next = seen.to()
		case frameEnd:
			if json.Unmarshal(payload, &seen.Next) != nil {
				return errTorn
			}
			s.closed = true
		default:
			return errTorn
		}
		s.head, s.place = seen, frames.place
	}
	return nil
}

// contentReader gives the bytes of a piece out of the frames of its spool file. At the
// end of a file that is not complete it says io.EOF too: who reads knows the length.
type contentReader struct {
	file   *os.File
	frames *frameReader
	rest   []byte
	ended  bool
}

func openContent(path string) (*contentReader, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return &contentReader{file: file, frames: newFrameReader(file)}, nil
}

func (c *contentReader) Close() error { return c.file.Close() }

func (c *contentReader) Read(b []byte) (int, error) {
	for len(c.rest) == 0 {
		if c.ended {
			return 0, io.EOF
		}
		kind, payload, err := c.frames.next()
		if err != nil {
			return 0, err
		}
		switch kind {
		case frameData:
			c.rest = payload
		case frameEnd:
			c.ended = true
		}
	}
	n := copy(b, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}
