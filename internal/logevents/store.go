package logevents

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"kurabe/internal/volume"
)

const (
	// MessageMax bounds the bytes of a message (CloudWatch Logs quotas: 1 MB an event).
	MessageMax = 1 << 20
	// MarkMax bounds the bytes of a mark.
	MarkMax = 16 << 10

	nameFile = "name"
	tailFile = "tail"
)

// Event is a line, or several, of a log. Times are Unix milliseconds.
type Event struct {
	Time, Ingested int64
	Message        []byte
}

// Config is what a Store needs.
type Config struct {
	Dir string
	// GroupBytes and TotalBytes bound the files of a group and of all. The oldest events go first.
	GroupBytes, TotalBytes int64
	Now                    func() time.Time
	// Lost is told of damage, which costs so many bytes of files, and of events that made room
	// for newer ones. It must not call the Store.
	Lost func(group, stream string, bytes int64, why string)
	// Made is told of the group of each new stream, and may be nil. It must not call the Store.
	Made func(group string)
}

// Store keeps the events of a host. Its methods may be called at any time.
type Store struct {
	c Config

	mu     sync.RWMutex // guards groups
	groups map[string]map[string]*stream
}

// ErrNoStream is of a stream that has no events here.
var ErrNoStream = errors.New("no such log stream")

// Open reads what is in the folder, which it makes when it is not there.
func Open(c Config) (*Store, error) {
	s := &Store{c: c, groups: map[string]map[string]*stream{}}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, err
	}
	groups, err := os.ReadDir(c.Dir)
	if err != nil {
		return nil, err
	}
	for _, g := range groups {
		streams, err := os.ReadDir(filepath.Join(c.Dir, g.Name()))
		if err != nil {
			return nil, err
		}
		for _, one := range streams {
			if err := s.openStream(filepath.Join(c.Dir, g.Name(), one.Name())); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// openStream takes in the folder of a stream. One without a name was being made or removed.
func (s *Store) openStream(dir string) error {
	data, err := os.ReadFile(filepath.Join(dir, nameFile))
	var n name
	if errors.Is(err, fs.ErrNotExist) || err == nil && json.Unmarshal(data, &n) != nil {
		bytes, _ := volume.UsedBytes(dir)
		if err == nil {
			s.c.Lost("", filepath.Base(dir), bytes, "the name of the stream cannot be read")
		}
		return os.RemoveAll(dir)
	}
	if err != nil {
		return err
	}
	one := &stream{name: n, dir: dir, c: &s.c}
	if err := one.load(); err != nil {
		return fmt.Errorf("read log stream %s of %s: %w", n.Stream, n.Group, err)
	}
	s.put(one)
	return nil
}

func (s *Store) put(one *stream) {
	if s.groups[one.Group] == nil {
		s.groups[one.Group] = map[string]*stream{}
	}
	s.groups[one.Group][one.Stream] = one
}

// name is the content of the file of that name.
type name struct {
	Group   string `json:"group"`
	Stream  string `json:"stream"`
	Created int64  `json:"created"` // Unix milliseconds
}

// folder is where a stream lies: names may be longer than those of files, and have slashes.
func (s *Store) folder(group, streamName string) string {
	hash := func(text string) string { sum := sha256.Sum256([]byte(text)); return hex.EncodeToString(sum[:16]) }
	return filepath.Join(s.c.Dir, hash(group), hash(streamName))
}

func (s *Store) find(group, streamName string) *stream {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.groups[group][streamName]
}

// Create makes a stream without events, or does nothing when it is there.
func (s *Store) Create(group, streamName string) error {
	_, err := s.ensure(group, streamName)
	return err
}

func (s *Store) ensure(group, streamName string) (*stream, error) {
	if one := s.find(group, streamName); one != nil {
		return one, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.groups[group][streamName]; one != nil {
		return one, nil
	}
	one := &stream{name: name{group, streamName, s.c.Now().UnixMilli()}, dir: s.folder(group, streamName), c: &s.c}
	data, err := json.Marshal(one.name)
	if err == nil {
		err = os.MkdirAll(one.dir, 0o700)
	}
	if err == nil {
		err = volume.AtomicWrite(filepath.Join(one.dir, nameFile), data, 0o600)
	}
	if err == nil {
		err = errors.Join(volume.SyncDir(filepath.Dir(one.dir)), volume.SyncDir(s.c.Dir))
	}
	if err == nil {
		err = one.load()
	}
	if err != nil {
		return nil, err
	}
	s.put(one)
	if s.c.Made != nil {
		s.c.Made(group)
	}
	return one, nil
}

// Append adds events to a stream, which is made when it is not there, with the mark behind them.
// They are durable, and the mark with them, when it returns nil; an error may leave both or neither.
// A nil mark leaves the one that is there.
func (s *Store) Append(group, streamName string, events []Event, mark []byte) error {
	for _, e := range events {
		if len(e.Message) > MessageMax {
			return fmt.Errorf("a log event has %d bytes; %d is the most", len(e.Message), MessageMax)
		}
	}
	if len(mark) > MarkMax {
		return fmt.Errorf("the mark has %d bytes; %d is the most", len(mark), MarkMax)
	}
	one, err := s.ensure(group, streamName)
	if err != nil {
		return err
	}
	return one.append(events, mark)
}

// Mark is the newest mark of a stream, nil for none.
func (s *Store) Mark(group, streamName string) []byte {
	one := s.find(group, streamName)
	if one == nil {
		return nil
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	return slices.Clone(one.tail.mark)
}

// Stream is what is known of a stream. Times are Unix milliseconds, 0 without events.
type Stream struct {
	Name                       string
	Created                    int64
	First, Last, LastIngested  int64 // times of events
	Events, Bytes, StoredBytes int64 // that are kept; Bytes are of messages, StoredBytes of files
}

// Groups are the names of the groups that have streams here, in order.
func (s *Store) Groups() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var names []string
	for group := range s.groups {
		names = append(names, group)
	}
	slices.Sort(names)
	return names
}

// Streams are those of a group in the order of their names, or the one of a name.
func (s *Store) Streams(group, name string) []Stream {
	var names []string
	if name != "" {
		names = []string{name}
	}
	var list []Stream
	for _, one := range s.of(group, names) {
		list = append(list, one.describe())
	}
	return list
}

// of returns streams of a group in the order of their names: those of some names, nil for all.
func (s *Store) of(group string, names []string) []*stream {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var list []*stream
	for _, name := range names {
		if one := s.groups[group][name]; one != nil && !slices.Contains(list, one) {
			list = append(list, one)
		}
	}
	for _, one := range s.groups[group] {
		if names == nil {
			list = append(list, one)
		}
	}
	slices.SortFunc(list, func(a, b *stream) int { return strings.Compare(a.Stream, b.Stream) })
	return list
}

// DeleteStream removes a stream with its events and its mark.
func (s *Store) DeleteStream(group, streamName string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.groups[group][streamName]
	if one == nil {
		return nil
	}
	if err := one.remove(); err != nil {
		return err
	}
	delete(s.groups[group], streamName)
	if len(s.groups[group]) == 0 {
		delete(s.groups, group)
	}
	return nil
}

// DeleteGroup removes all streams of a group.
func (s *Store) DeleteGroup(group string) error {
	for _, one := range s.of(group, nil) {
		if err := s.DeleteStream(group, one.Stream); err != nil {
			return err
		}
	}
	return nil
}

// Sweep removes what is older than a group's retention, which days says (0: for ever), and then
// the oldest of a group, and of all, that take more than their bound. It closes the files of streams
// that nobody writes to.
func (s *Store) Sweep(ctx context.Context, days func(group string) int) error {
	var all []*stream
	for _, group := range s.Groups() {
		list := s.of(group, nil)
		if keep := days(group); keep > 0 {
			before := s.c.Now().AddDate(0, 0, -keep).UnixMilli()
			for _, one := range list {
				if err := one.dropBefore(before); err != nil {
					return err
				}
			}
		}
		if err := shrinkTo(ctx, list, s.c.GroupBytes); err != nil {
			return err
		}
		all = append(all, list...)
	}
	for _, one := range all {
		one.rest()
	}
	return shrinkTo(ctx, all, s.c.TotalBytes)
}

// shrinkTo drops the oldest segments of streams until they take no more than limit. The newest of
// a stream stays, and its tail.
func shrinkTo(ctx context.Context, list []*stream, limit int64) error {
	for ctx.Err() == nil {
		var total, oldest int64
		var of *stream
		for _, one := range list {
			bytes, at, more := one.oldest()
			total += bytes
			if more && (of == nil || at < oldest) {
				of, oldest = one, at
			}
		}
		if total <= limit || of == nil {
			return nil
		}
		if err := of.dropOldest(); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// Close closes the files. What was appended is durable already.
func (s *Store) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, group := range s.groups {
		for _, one := range group {
			one.mu.Lock()
			one.tail.close()
			one.mu.Unlock()
		}
	}
}
