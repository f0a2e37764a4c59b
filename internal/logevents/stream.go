package logevents

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"kurabe/internal/volume"
)

// tailMax bounds a tail that cannot be made a block, as where the disk is full.
const tailMax = 64 << 20

// stream is one stream with its files.
type stream struct {
	name
	dir string
	c   *Config

	mu      sync.Mutex // guards what follows
	tail    tail
	blocks  []blockRef // in the order of their numbers
	lastSeg string     // the newest segment, "" for none
	segSize int64      // of that
	gone    bool
	calm    bool // nothing was added since the sweep before

	sync syncing
}

// syncing has callers that wait for the same file share a sync.
type syncing struct {
	mu     sync.Mutex // held for a sync
	synced int64      // how many appends are durable
	wrote  int64      // how many there were; this and failed are guarded by stream.mu
	failed int64      // of how many nobody knows, unless they are durable: a sync, or a write, failed
}

// load reads the files of a stream.
func (s *stream) load() error {
	t, lost, why, err := openTail(filepath.Join(s.dir, tailFile))
	if err != nil {
		return err
	}
	if lost > 0 && !errors.Is(why, io.ErrUnexpectedEOF) { // a frame that is not whole was never acknowledged
		s.c.Lost(s.Group, s.Stream, lost, "the newest events: "+why.Error())
	}
	hasTail := t.size > 0
	segments, err := filepath.Glob(filepath.Join(s.dir, "*.seg"))
	if err != nil {
		return err
	}
	slices.Sort(segments)
	s.blocks, s.lastSeg, s.segSize = nil, "", 0
	for n, path := range segments {
		refs, good, lost, err := listBlocks(path)
		if err != nil {
			return err
		}
		newest := n == len(segments)-1
		if hasTail { // a block that a crash left beside the tail that it is made of
			refs = slices.DeleteFunc(refs, func(r blockRef) bool {
				if r.first >= t.first {
					good = min(good, r.offset)
					return true
				}
				return false
			})
		}
		s.blocks = append(s.blocks, refs...)
		// What a crash left of a block that was being written is in the tail still.
		torn := newest && hasTail && s.end() == t.first
		if lost > 0 && !torn {
			s.c.Lost(s.Group, s.Stream, lost, "a part of "+filepath.Base(path)+" is damaged")
		}
		if newest {
			if err := os.Truncate(path, good); err != nil {
				return err
			}
		}
		s.lastSeg, s.segSize = path, good
	}
	if !hasTail { // it is lost as a whole, or there was none yet
		t.first = s.end()
	}
	s.tail = t
	return nil
}

var errUnknown = errors.New("it is not known whether the disk has the log events")

// end is the number behind the last event in blocks.
func (s *stream) end() int64 {
	if len(s.blocks) == 0 {
		return 1
	}
	last := s.blocks[len(s.blocks)-1]
	return last.first + last.sum.count
}

// append adds events and waits until they are durable.
func (s *stream) append(events []Event, mark []byte) error {
	frame := eventsFrame(events, mark)
	if int64(len(frame)) > frameMax {
		return fmt.Errorf("%d bytes of log events at once; %d is the most", len(frame), frameMax)
	}
	s.mu.Lock()
	number, err := s.add(frame, events, mark)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return s.durable(number)
}

// add writes a frame, and returns which append it was.
func (s *stream) add(frame []byte, events []Event, mark []byte) (int64, error) {
	if s.gone {
		return 0, ErrNoStream
	}
	if s.tail.broken {
		s.tail.close()
		s.sync.failed = s.sync.wrote
		if err := s.load(); err != nil {
			return 0, err
		}
	}
	if s.tail.sum.bytes >= blockBytes {
		if err := s.toBlocks(); err != nil && s.tail.size+int64(len(frame)) > tailMax {
			return 0, err
		}
	}
	if s.tail.size == 0 {
		if err := s.newTail(s.tail.first, s.tail.mark); err != nil {
			return 0, err
		}
	}
	if err := s.tail.write(frame); err != nil {
		return 0, err
	}
	for _, e := range events {
		s.tail.sum.add(e)
	}
	if mark != nil {
		s.tail.mark = slices.Clone(mark)
	}
	s.calm = false
	s.sync.wrote++
	return s.sync.wrote, nil
}

// durable waits until an append is synced. One sync does for all that were written before it.
func (s *stream) durable(number int64) error {
	s.sync.mu.Lock()
	defer s.sync.mu.Unlock()
	if s.sync.synced >= number {
		return nil
	}
	s.mu.Lock()
	wrote, failed, file := s.sync.wrote, s.sync.failed, s.tail.file
	s.mu.Unlock()
	if number <= failed {
		return errUnknown
	}
	if file == nil {
		return nil // it has become blocks, which are synced
	}
	if err := datasync(file); err != nil && !errors.Is(err, os.ErrClosed) {
		s.mu.Lock()
		s.tail.broken = true
		s.sync.failed = s.sync.wrote
		s.mu.Unlock()
		return err
	}
	s.sync.synced = wrote
	return nil
}

// newTail replaces the tail by one without events.
func (s *stream) newTail(first int64, mark []byte) error {
	path := filepath.Join(s.dir, tailFile)
	frame := headerFrame(first, mark)
	if err := volume.AtomicWrite(path, frame, 0o600); err != nil {
		return err
	}
	s.tail.close()
	s.tail = tail{path: path, first: first, mark: mark, size: int64(len(frame))}
	return nil
}

// toBlocks makes blocks of the tail and begins a new one.
func (s *stream) toBlocks() (err error) {
	var all Block
	if err := s.tail.events(&all); err != nil {
		s.tail.broken = true
		return err
	}
	// Which segment is written does not change before all is in it: a failure is cut off again.
	path, size := s.lastSeg, s.segSize
	if path == "" || size >= segmentBytes {
		path, size = s.nextSegment(), 0
	}
	var refs []blockRef
	var data []byte
	for _, part := range parts(&all) {
		encoded, ref := encode(&part)
		ref.segment, ref.offset = path, size+int64(len(data))
		refs, data = append(refs, ref), append(data, encoded...)
	}
	if err := writeSegment(path, size, data); err != nil {
		return err
	}
	next := s.tail.first + s.tail.sum.count
	if err := s.newTail(next, s.tail.mark); err != nil {
		return errors.Join(err, cutSegment(path, size))
	}
	s.blocks = append(s.blocks, refs...)
	s.lastSeg, s.segSize = path, size+int64(len(data))
	return nil
}

// parts cuts events into blocks of some blockBytes.
func parts(all *Block) (list []Block) {
	begin := 0
	for n, e := range all.Events {
		size := e.End - all.Events[begin].Start
		if size < blockBytes && n < len(all.Events)-1 {
			continue
		}
		from := all.Events[begin].Start
		part := Block{First: all.First + int64(begin), Text: all.Text[from:e.End]}
		for _, one := range all.Events[begin : n+1] {
			part.Events = append(part.Events, Entry{one.Time, one.Ingested, one.Start - from, one.End - from})
		}
		list, begin = append(list, part), n+1
	}
	return list
}

func (s *stream) nextSegment() string {
	var number int
	if s.lastSeg != "" {
		_, _ = fmt.Sscanf(filepath.Base(s.lastSeg), "%d.seg", &number)
	}
	return filepath.Join(s.dir, fmt.Sprintf("%08d.seg", number+1))
}

// writeSegment writes at the end of a segment, durably.
func writeSegment(path string, at int64, data []byte) (err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(data, at)
	if err == nil {
		err = datasync(file)
	}
	err = errors.Join(err, file.Close())
	if err != nil {
		return errors.Join(err, cutSegment(path, at))
	}
	if at == 0 {
		return volume.SyncDir(filepath.Dir(path))
	}
	return nil
}

// cutSegment takes back what was written from at on.
func cutSegment(path string, at int64) error {
	if at == 0 {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return os.Truncate(path, at)
}

func (s *stream) describe() Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum, stored := s.tail.sum, s.tail.size
	for _, r := range s.blocks {
		one := r.sum
		one.bytes = r.raw // with its times, which are little
		sum.merge(one)
		stored += r.stored
	}
	return Stream{
		Name: s.Stream, Created: s.Created, First: sum.min, Last: sum.max, LastIngested: sum.ingested,
		Events: sum.count, Bytes: sum.bytes, StoredBytes: stored,
	}
}

// remove removes the stream. What a crash leaves of it has no name, and is removed at the start.
func (s *stream) remove() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = true
	s.tail.close()
	if err := os.Remove(filepath.Join(s.dir, nameFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.gone = false
		return err
	}
	if err := volume.SyncDir(s.dir); err != nil {
		return err
	}
	return os.RemoveAll(s.dir)
}

// rest closes the file of a stream to which nothing was added for two sweeps.
func (s *stream) rest() {
	s.sync.mu.Lock() // nobody waits for a sync of the file
	defer s.sync.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calm && max(s.sync.synced, s.sync.failed) == s.sync.wrote {
		s.tail.close()
	}
	s.calm = true
}

// oldest is how many bytes a stream takes, the time of the newest event of its oldest segment, and
// whether that can be dropped: it is not the newest one.
func (s *stream) oldest() (bytes, at int64, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	bytes = s.tail.size
	for _, r := range s.blocks {
		bytes += r.stored
		if r.segment == s.blocks[0].segment {
			at = max(at, r.sum.max)
		}
	}
	return bytes, at, len(s.blocks) > 0 && s.blocks[0].segment != s.lastSeg
}

// dropOldest drops the oldest segment, for newer events, and tells it.
func (s *stream) dropOldest() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.blocks) == 0 || s.blocks[0].segment == s.lastSeg {
		return nil
	}
	bytes, err := s.dropSegment(s.blocks[0].segment)
	if err == nil {
		s.c.Lost(s.Group, s.Stream, bytes, "the oldest events made room for newer ones")
	}
	return err
}

// dropSegment removes a segment. Readers that have it open read on; others pass over it.
func (s *stream) dropSegment(path string) (bytes int64, err error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	s.blocks = slices.DeleteFunc(s.blocks, func(r blockRef) bool {
		if r.segment == path {
			bytes += r.stored
			return true
		}
		return false
	})
	if path == s.lastSeg {
		// The name stays taken: a reader may have the old file by it.
		s.segSize = segmentBytes
	}
	return bytes, nil
}

// dropBefore drops the segments, and the tail, all of whose events are older than a time.
func (s *stream) dropBefore(at int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	newest := map[string]int64{}
	var order []string
	for _, r := range s.blocks {
		if _, ok := newest[r.segment]; !ok {
			order, newest[r.segment] = append(order, r.segment), r.sum.max
		}
		newest[r.segment] = max(newest[r.segment], r.sum.max)
	}
	for _, path := range order {
		if newest[path] < at {
			if _, err := s.dropSegment(path); err != nil {
				return err
			}
		}
	}
	if s.tail.sum.count > 0 && s.tail.sum.max < at && !s.tail.broken {
		return s.newTail(s.tail.first+s.tail.sum.count, s.tail.mark)
	}
	return nil
}
