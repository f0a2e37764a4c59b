package osmetrics

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/hostread"
)

const (
	bytesMax   = 28 << 20 // of a server, beside the file that is written
	fileMax    = 2 << 20
	keptTime   = 24 * time.Hour
	answerMax  = 512 << 10 // bytes of an answer, which has one picture at least
	pictureMax = 1 << 20
)

// Store keeps the pictures of a host's servers, in files of their own, each a line of JSON. A file
// is named by its time in milliseconds.
type Store struct {
	dir string

	mu   sync.Mutex // guards open
	open map[kurabe.InstanceID]*file
}

type file struct {
	path  string
	began int64
	bytes int
}

// New returns the store in a folder.
func New(dir string) *Store { return &Store{dir: dir, open: map[kurabe.InstanceID]*file{}} }

// Add keeps a picture of a server.
func (s *Store) Add(id kurabe.InstanceID, at time.Time, picture any) error {
	line, err := json.Marshal(picture)
	if err != nil || len(line) > pictureMax {
		return errors.Join(err, fmt.Errorf("a picture of %d bytes is not kept", len(line)))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.open[id]
	if f == nil || f.bytes+len(line) > fileMax || at.UnixMilli()-f.began > time.Hour.Milliseconds() {
		if f, err = s.next(id, at); err != nil {
			return err
		}
		s.open[id] = f
	}
	out, err := os.OpenFile(f.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	n, err := out.Write(append(line, '\n'))
	if f.bytes += n; err != nil {
		delete(s.open, id) // the rest of the line is in no file: readers skip it
	}
	return errors.Join(err, out.Close())
}

// next is a new file, after all that are there, of which the old ones go.
func (s *Store) next(id kurabe.InstanceID, at time.Time) (*file, error) {
	dir := filepath.Join(s.dir, string(id))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	times, err := s.files(id)
	if err != nil {
		return nil, err
	}
	began, left := at.UnixMilli(), bytesMax
	if len(times) > 0 {
		began = max(began, times[len(times)-1]+1)
	}
	for n := len(times) - 1; n >= 0; n-- {
		path := s.path(id, times[n])
		if info, err := os.Stat(path); err == nil {
			left -= int(info.Size())
		}
		if left < 0 || began-times[n] > (keptTime+time.Hour).Milliseconds() {
			err = errors.Join(err, os.Remove(path))
		}
	}
	return &file{path: s.path(id, began), began: began}, err
}

func (s *Store) path(id kurabe.InstanceID, began int64) string {
	return filepath.Join(s.dir, string(id), fmt.Sprintf("%014d", began))
}

// files are the times of a server's files, in order.
func (s *Store) files(id kurabe.InstanceID) (list []int64, err error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, string(id)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if began, bad := strconv.ParseInt(e.Name(), 10, 64); bad == nil {
			list = append(list, began)
		}
	}
	return list, err
}

// sweepEvery is how often what is too old is removed.
const sweepEvery = 5 * time.Minute

// Run removes what is too old until ctx ends. A fault that fault is told of keeps nothing from
// its work.
func (s *Store) Run(ctx context.Context, now func() time.Time, fault func(error)) error {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		if err := s.Sweep(now()); err != nil {
			fault(err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Sweep removes what is too old, of all servers.
func (s *Store) Sweep(now time.Time) error {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		id := kurabe.InstanceID(e.Name())
		times, bad := s.files(id)
		err = errors.Join(err, bad)
		for n, began := range times {
			// The next file began when this one ended.
			if n+1 < len(times) {
				began = times[n+1]
			}
			if now.UnixMilli()-began > (keptTime + time.Hour).Milliseconds() {
				err = errors.Join(err, os.Remove(s.path(id, times[n])))
			}
		}
		if len(times) == 0 {
			_ = os.Remove(filepath.Join(s.dir, e.Name())) // not what somebody has put there
		}
	}
	return err
}

// Query asks for pictures of a server from a cursor on, "0" for the oldest; "" asks for the newest.
type Query struct {
	Instance kurabe.InstanceID
	From     string
	Limit    int
}

// Answer has pictures in order, each JSON; From is the cursor of the next one.
type Answer struct {
	Pictures []string
	From     string
}

// ReadKind is the question for Read.
var ReadKind = hostread.Kind[Query, Answer]{Name: "os-metrics", Class: hostread.Logs}

// Read returns what is there, which may be nothing.
func (s *Store) Read(_ context.Context, q Query) (a Answer, err error) {
	times, err := s.files(q.Instance)
	if err != nil {
		return a, err
	}
	var began, offset int64
	if first, second, two := strings.Cut(q.From, "-"); q.From != "" {
		began, err = strconv.ParseInt(first, 10, 64)
		if two && err == nil {
			offset, err = strconv.ParseInt(second, 10, 64)
		}
		if err != nil || began < 0 || offset < 0 {
			return a, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "From %.40q is no place among the pictures", q.From)
		}
	} else if len(times) > 0 {
		began = times[len(times)-1]
	}
	a.From = fmt.Sprintf("%d-%d", began, offset)
	size := 0
	for _, t := range times {
		if t < began {
			continue
		}
		raw, err := os.ReadFile(s.path(q.Instance, t))
		if err != nil {
			continue // removed meanwhile
		}
		if t != began {
			offset = 0
		}
		for offset < int64(len(raw)) {
			line, _, whole := bytes.Cut(raw[offset:], []byte{'\n'})
			if !whole {
				break // being written, or cut off by a crash, after which there is another file
			}
			if q.From != "" && (len(a.Pictures) >= q.Limit || len(a.Pictures) > 0 && size+len(line) > answerMax) {
				return a, nil
			}
			offset += int64(len(line)) + 1
			a.From = fmt.Sprintf("%d-%d", t, offset)
			if q.From == "" {
				a.Pictures = nil
			}
			if json.Valid(line) {
				a.Pictures = append(a.Pictures, string(line))
				size += len(line)
			}
		}
	}
	return a, nil
}
