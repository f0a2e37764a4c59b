package load

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// recover makes the minutes of the hours that a stop or a crash cut off again from their
// seconds, and cuts off what a crash left half written.
func (s *server) recover() error {
	files, err := s.files()
	if err != nil {
		return err
	}
	done := map[int64]bool{} // hours that have their minutes
	for _, f := range files {
		switch {
		case strings.HasPrefix(f.Name(), "minutes-"):
			err = s.read(f.Name(), true, func(c *chunk) { done[c.start] = true })
		case strings.HasPrefix(f.Name(), "texts-"), strings.HasPrefix(f.Name(), "counts-"):
			err = s.frames(f.Name(), true, func([]byte) {})
		}
		if err != nil {
			return err
		}
	}
	for _, f := range files {
		if !strings.HasPrefix(f.Name(), "seconds-") {
			continue
		}
		if s.hour != nil {
			if err := s.writeHour(); err != nil {
				return err
			}
		}
		if err := s.read(f.Name(), true, func(c *chunk) { s.again(c, done) }); err != nil {
			return err
		}
		if s.minute != nil {
			s.endMinute()
		}
	}
	return nil
}

// files are those of the server's folder by name, so by time. A folder that is not there has none.
func (s *server) files() ([]fs.DirEntry, error) {
	files, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return files, err
}

// again counts the seconds of a chunk for the minute and the hour.
func (s *server) again(c *chunk, done map[int64]bool) {
	const minute, hour = 60, 3600
	start := c.start - c.start%hour
	if done[start] {
		return
	}
	if s.hour == nil {
		s.hour = newBuilder(start, minute, hour/minute)
	}
	if s.minute != nil && s.minute.start != c.start-c.start%minute {
		s.endMinute()
	}
	if s.minute == nil {
		s.minute = newBuilder(c.start-c.start%minute, minute, 1)
	}
	for n, slot := range c.slots {
		s.minute.sampled[0] += slot.sampled
		for _, r := range slot.rows {
			s.minute.add(c.start+int64(n), c.key(r.key), r.count)
		}
	}
}

// read calls have for each chunk of a file; mend as of frames.
func (s *server) read(file string, mend bool, have func(*chunk)) error {
	return s.frames(file, mend, func(body []byte) {
		if c, bad := decodeChunk(body); bad == nil {
			have(c)
		}
	})
}

// frames calls have for each frame of a file. One that cannot be read ends it; mend cuts it off
// then, with all that follows. A file that is not there has none.
func (s *server) frames(file string, mend bool, have func(body []byte)) error {
	path := filepath.Join(s.dir, file)
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed meanwhile: it was too old
	}
	whole := len(raw)
	for err == nil && len(raw) > 0 {
		body, rest, broken := unframe(raw)
		if broken != nil {
			if mend {
				s.lost = errors.Join(s.lost, fmt.Errorf("%s is damaged, and its last %d bytes were cut off", file, len(raw)))
				return os.Truncate(path, int64(whole-len(raw)))
			}
			return nil
		}
		raw = rest
		have(body)
	}
	return err
}
