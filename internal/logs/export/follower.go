package export

import (
	"cmp"
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/logevents"
)

const (
	// chunkBytes are read and stored at once: room for what Split leaves, twice.
	chunkBytes = 4 * EventMax
	// passBytes bounds a pass, so that a log that grows without an end holds no other one up.
	passBytes = 8 * chunkBytes
	// restTime is after which time an event has no more lines, and a file that is followed by
	// another one no more events. Engines write an event with one call or a few, and close a file as
	// soon as they have opened the next one.
	restTime = time.Second / 2
)

// Place is how far a file is dealt with.
type Place struct {
	Inode  uint64 `json:"inode"`
	Name   string `json:"name"`
	Offset int64  `json:"offset"`
	State
}

// Turn is a place from which on the log is exported, or not.
type Turn struct {
	Inode  uint64 `json:"inode"` // 0: there was no file
	Offset int64  `json:"offset"`
	On     bool   `json:"on"`
}

// Mark is how far a log is dealt with: what stands before the first place is, and what stands in
// later files is not. It is stored with the events before it.
type Mark struct {
	On     bool      `json:"on"` // what follows is exported
	At     time.Time `json:"at"` // when it was made
	Places []Place   `json:"places,omitempty"`
	Turns  []Turn    `json:"turns,omitempty"` // to come, in order
}

// Store keeps events, whose messages it copies, and the mark behind them, both or neither.
type Store func(events []logevents.Event, mark Mark) error

// Config is what a Follower needs.
type Config struct {
	Engine kurabe.EngineName
	Log    string // one of the engine's LogTypes
	Dir    string // the server's log folder
	// Load returns the stored mark; nil: there is none, and the export begins with the first turn.
	Load func() (*Mark, error)
	Now  func() time.Time
	// Lost is told of bytes that were removed before they were exported, 0 for an unknown number.
	Lost func(bytes int64)
}

// Follower exports one log of a server. Turn and Unread may be called at any time, the rest by one
// goroutine.
type Follower struct {
	Config
	folder folder
	format Format

	loaded bool // mark is the stored one, or what follows from it
	mark   Mark
	seen   time.Time // when the files were looked at
	// newest is the file after all others, and since when it is.
	newest struct {
		inode uint64
		since time.Time
	}
	begun bool
	dirty bool // the stored mark lacks something that cannot be found again
	open  map[uint64]*openFile
	// ended are the sizes of files that are dealt with. One that grows after that is written by a
	// server whose clock went back.
	ended map[uint64]int64

	mu     sync.Mutex // guards what follows
	turns  []Turn     // that Pass has not taken over
	unread map[string]bool
	known  bool // unread is
}

// openFile is a file of which there is a place.
type openFile struct {
	*os.File
	size    int64     // at the newest pass
	since   time.Time // that it has that size
	settled End       // what it has was dealt with, up to that size, as what a file of this end has
}

// NewFollower returns a Follower that has read nothing yet.
func NewFollower(c Config) *Follower {
	format := formats[c.Engine][c.Log]
	return &Follower{Config: c, format: format, folder: folder{dir: c.Dir, base: format.file}, open: map[uint64]*openFile{}, ended: map[uint64]int64{}}
}

// Turn says whether what the server writes from now on is exported.
func (f *Follower) Turn(on bool) error {
	files, err := f.folder.list()
	if err != nil {
		return err
	}
	turn := Turn{On: on}
	if len(files) > 0 {
		newest := files[len(files)-1]
		turn.Inode, turn.Offset = newest.inode, newest.size
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.turns = append(f.turns, turn)
	return nil
}

// Over says that nothing more is exported without another turn.
func (f *Follower) Over() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.loaded && !f.mark.On && len(f.mark.Turns)+len(f.turns) == 0
}

// Unread says whether a file may have events that are not exported yet.
func (f *Follower) Unread(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.unread[name] || !f.known && f.folder.has(name)
}

// Close closes the files that are read.
func (f *Follower) Close() {
	for inode := range f.open {
		f.closeFile(inode)
	}
}

func (f *Follower) closeFile(inode uint64) {
	if o := f.open[inode]; o != nil {
		_ = o.Close()
		delete(f.open, inode)
	}
}

// Pass exports what has been added, and says whether there is more. last says that nothing will be
// added.
func (f *Follower) Pass(store Store, last bool) (more bool, err error) {
	if !f.loaded {
		mark, err := f.Load()
		if err != nil {
			return false, err
		}
		if f.loaded = true; mark != nil {
			f.mark, f.begun = *mark, true
		}
	}
	if err := f.look(last); err != nil || !f.begun {
		return false, err
	}
	defer f.tellUnread()
	budget := int64(passBytes)
	for len(f.mark.Places) > 0 && f.open[f.mark.Places[0].Inode] != nil {
		inode := f.mark.Places[0].Inode
		over := inode != f.newest.inode && (last || f.Now().Sub(f.newest.since) >= restTime)
		if err := f.follow(over || last, &budget, store); err != nil || budget <= 0 {
			return err == nil, err
		}
		if !over || len(f.mark.Places) == 1 {
			break
		}
		done := f.mark.Places[0]
		f.closeFile(done.Inode)
		f.ended[done.Inode] = done.Offset
		if f.mark.Places = slices.Clone(f.mark.Places[1:]); f.mark.Places[0].Offset == 0 {
			f.mark.Places[0].State = done.State
			f.mark.Places[0].InLine = false
		}
	}
	if !f.dirty {
		return false, nil
	}
	return false, f.store(store, nil, f.mark.Places)
}

func (f *Follower) store(store Store, events []logevents.Event, places []Place) error {
	mark := f.mark
	mark.At = f.seen
	mark.Places = slices.DeleteFunc(slices.Clone(places), func(p Place) bool { return p.Offset == 0 && p.Inode != places[0].Inode })
	if err := store(events, mark); err != nil {
		return err
	}
	mark.Places = places
	f.mark, f.dirty = mark, false
	return nil
}

// follow deals with what the file of the first place has.
func (f *Follower) follow(over bool, budget *int64, store Store) error {
	o := f.open[f.mark.Places[0].Inode]
	info, err := o.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	if size != o.size {
		o.size, o.since, o.settled = size, f.Now(), unsettled
	}
	if p := &f.mark.Places[0]; size < p.Offset { // the server has begun it anew
		p.Offset, p.State = 0, State{Last: p.Last}
	}
	for len(f.mark.Turns) > 0 && f.mark.Turns[0].Inode == f.mark.Places[0].Inode {
		turn := f.mark.Turns[0]
		if f.mark.On {
			if err := f.export(min(turn.Offset, size), Over, budget, store); err != nil || *budget <= 0 {
				return err
			}
		}
		p := &f.mark.Places[0]
		if p.State = (State{Last: p.Last}); turn.On {
			p.Offset = min(turn.Offset, size)
			p.InLine = inLine(o, p.Offset)
			p.Last = f.lastTime(o, p.Offset)
		}
		f.mark.On, f.mark.Turns, f.dirty, o.settled = turn.On, f.mark.Turns[1:], true, unsettled
	}
	if !f.mark.On {
		f.mark.Places[0].Offset = size
		return nil
	}
	end := More
	switch {
	case over:
		end = Over
	case f.Now().Sub(o.since) >= restTime:
		end = Rests
	}
	if o.settled >= end {
		return nil
	}
	err = f.export(size, end, budget, store)
	if err == nil && *budget > 0 {
		o.settled = end
	}
	return err
}

// inLine says whether an offset is within a line.
func inLine(file io.ReaderAt, offset int64) bool {
	var before [1]byte
	if offset == 0 {
		return false
	}
	_, err := file.ReadAt(before[:], offset-1)
	return err != nil || before[0] != '\n'
}

// lastTime is the newest time that a file tells before an offset, 0 where it tells none nearby: events behind
// the offset may name no time, because it is that one.
func (f *Follower) lastTime(file io.ReaderAt, offset int64) int64 {
	data := make([]byte, min(offset, chunkBytes))
	n, _ := file.ReadAt(data, offset-int64(len(data))) // what cannot be read tells nothing
	state := State{InLine: offset > int64(len(data))}
	f.format.Split(data[:n], Over, &state, func(int64, []byte) {})
	return state.Last
}

// export makes events of the file of the first place, up to a limit, which has that end.
func (f *Follower) export(limit int64, end End, budget *int64, store Store) error {
	p := f.mark.Places[0]
	data := make([]byte, max(0, min(limit-p.Offset, chunkBytes)))
	var events []logevents.Event
	for p.Offset < limit && *budget > 0 {
		data = data[:min(limit-p.Offset, chunkBytes)]
		n, err := f.open[p.Inode].ReadAt(data, p.Offset)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		here := More
		if p.Offset+int64(n) == limit {
			here = end
		}
		events = events[:0]
		now := f.Now().UnixMilli()
		done := f.format.Split(data[:n], here, &p.State, func(at int64, message []byte) {
			events = append(events, logevents.Event{Time: cmp.Or(at, now), Ingested: now, Message: message})
		})
		if done == 0 {
			return nil
		}
		p.Offset += int64(done)
		places := slices.Clone(f.mark.Places)
		places[0] = p
		if err := f.store(store, events, places); err != nil {
			return err
		}
		*budget -= int64(done)
	}
	return nil
}

// look takes over the turns and gives every file that is not dealt with a place.
func (f *Follower) look(last bool) error {
	f.mu.Lock()
	turns := f.turns
	f.mu.Unlock()
	seen := f.Now().UTC()
	listed, err := f.folder.look(last || len(turns) > 0)
	if err != nil {
		return err
	}
	if listed {
		f.seen = seen
	}
	f.mu.Lock()
	f.turns = f.turns[len(turns):]
	f.mu.Unlock()
	for _, t := range turns {
		f.take(t)
	}
	if !f.begun || !listed {
		return nil
	}
	files := f.folder.files
	if err := f.adopt(files); err != nil {
		return err
	}
	if n := len(files); n > 0 && files[n-1].inode != f.newest.inode {
		f.newest.inode, f.newest.since = files[n-1].inode, f.Now()
	}
	// Turns in files that are gone.
	for len(f.mark.Turns) > 0 && f.open[f.mark.Turns[0].Inode] == nil {
		f.mark.On, f.mark.Turns, f.dirty = f.mark.Turns[0].On, f.mark.Turns[1:], true
	}
	return nil
}

// take takes over a turn; the first one of all is where the export begins.
func (f *Follower) take(t Turn) {
	on := f.mark.On
	if n := len(f.mark.Turns); n > 0 {
		on = f.mark.Turns[n-1].On
	}
	switch {
	case !f.begun:
		f.begun, f.dirty = true, true
		if t.Inode != 0 {
			f.mark.Places = []Place{{Inode: t.Inode, Offset: t.Offset}}
		}
		if t.On {
			f.mark.Turns = []Turn{t}
		}
	case on != t.On:
		f.mark.Turns, f.dirty = append(f.mark.Turns, t), true
	}
}

// adopt makes the places those of the files from the first one on that is not dealt with, and opens
// these.
func (f *Follower) adopt(files []file) error {
	first := f.firstUnread(files)
	// A file before it that grows is written by a server whose clock went back.
	ended := map[uint64]int64{}
	for n := first - 1; n >= 0; n-- {
		size, known := f.ended[files[n].inode]
		if known && files[n].size > size {
			first = n
		}
		if !known {
			size = files[n].size
		}
		ended[files[n].inode] = size
	}
	f.ended = ended
	have := map[uint64]Place{}
	for _, p := range f.mark.Places {
		have[p.Inode] = p
	}
	var places []Place
	for _, l := range files[first:] {
		p, placed := have[l.inode]
		if !placed {
			p = Place{Inode: l.inode, Offset: ended[l.inode]}
		}
		p.Name = l.name
		if f.open[l.inode] == nil {
			o, err := f.folder.open(l)
			if err != nil {
				return err
			}
			if o == nil {
				continue
			}
			f.open[l.inode] = o
		}
		delete(have, l.inode)
		delete(ended, l.inode)
		places = append(places, p)
	}
	for inode, p := range have {
		if n, missed := f.missed(p); missed && f.mark.On {
			f.Lost(n)
		}
		f.closeFile(inode)
	}
	if n := len(f.mark.Places); len(places) == 0 && n > 0 {
		places = []Place{{Name: f.mark.Places[n-1].Name}} // what follows is after it
	}
	f.mark.Places = places
	return nil
}

// firstUnread is the index of the first file that is not dealt with.
func (f *Follower) firstUnread(files []file) int {
	if len(f.mark.Places) == 0 {
		return 0
	}
	for n, l := range files {
		if slices.ContainsFunc(f.mark.Places, func(p Place) bool { return p.Inode == l.inode }) {
			return n
		}
	}
	// All are removed. The one that was written may have had another name since.
	newest := f.mark.Places[len(f.mark.Places)-1].Name
	for n, l := range files {
		if newest != f.folder.base && f.folder.less(newest, l.name) || newest == f.folder.base && l.at.After(f.mark.At) {
			return n
		}
	}
	return len(files)
}

// missed says whether a file that was removed was not exported to its end, and how many bytes are
// missed, 0 if that is not known.
func (f *Follower) missed(p Place) (bytes int64, missed bool) {
	if o := f.open[p.Inode]; o != nil {
		if info, err := o.Stat(); err == nil {
			return info.Size() - p.Offset, info.Size() > p.Offset
		}
	}
	return 0, p.Inode != 0
}

func (f *Follower) tellUnread() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unread, f.known = map[string]bool{}, true
	for _, p := range f.mark.Places {
		f.unread[p.Name] = f.mark.On || len(f.mark.Turns) > 0
	}
}
