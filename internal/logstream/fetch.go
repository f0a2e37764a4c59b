package logstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/blob"
	"kurabe/internal/volume"
)

// Fetched is what Fetch has written.
type Fetched struct {
	// Before is the newest mark that was complete by the moment, zero when the run began
	// later; After the first one that is not before the moment nor the snapshot.
	Before, After kurabe.LogMark
	// BeforeIn is the number of the part that has Before: 0 is the folder itself, 1 the
	// first of Joined. After is in the last one.
	BeforeIn int
	Files    []string // in the log's order; a file that would be empty is not made
	Bytes    int64
	// Joined are folders below it with the files of the servers that wrote later, each
	// from where the one before it is known to be whole, or earlier.
	Joined []string
}

const fetchers = 4 // pieces that are read at a time

// Fetch writes into dir, which must hold none of them, the engine's files that bring a
// snapshot (its position and TakenAt) to a moment: from offset 0 of the position's
// file on, without a gap, the last one cut at After. It fails with *RangeError,
// *MissingError, *DamagedError or an error of the repository; the first two come
// before anything is written, and after any error nothing of it is left.
func (s *Store) Fetch(ctx context.Context, id kurabe.InstanceID, from kurabe.LogPosition, takenAt, at time.Time, dir string) (Fetched, error) {
	got, err := s.fetch(ctx, id, from, takenAt, at, dir)
	if err != nil {
		return Fetched{}, fmt.Errorf("fetch the log of %s: %w", id, err)
	}
	return got, nil
}

// plan is a part of a run, copied so that no lock is needed.
type plan struct {
	id     kurabe.InstanceID
	folder string
	pieces []piece
	first  kurabe.LogPosition // in the first file that is needed, zero: any
	end    kurabe.LogPosition // nothing from there on is needed
	repo   *blob.Repository
	repoIs error // why repo is nil
}

func (s *Store) fetch(ctx context.Context, id kurabe.InstanceID, from kurabe.LogPosition, takenAt, at time.Time, dir string) (Fetched, error) {
	parts, err := s.choose(id, from, takenAt, at)
	if out := (*RangeError)(nil); errors.As(err, &out) && !out.To.IsZero() && at.After(out.To) {
		parts, err = s.chooseElsewhere(ctx, id, from, takenAt, at)
	}
	if err != nil {
		return Fetched{}, err
	}
	var got Fetched
	last := parts[len(parts)-1]
	if len(parts) > 1 {
		from = kurabe.LogPosition{} // any place of the last server's is behind the snapshot
	}
	if got.After, err = last.after(ctx, at, from); err != nil {
		return Fetched{}, err
	}
	for n, p := range slices.Backward(parts) {
		if got.Before, err = p.before(ctx, at); err != nil {
			return Fetched{}, err
		}
		if got.BeforeIn = n; hasMark(got.Before) {
			break
		}
	}
	for n, p := range parts {
		if n == len(parts)-1 {
			p.end = got.After.Position
		}
		if err := p.check(ctx); err != nil {
			return Fetched{}, err
		}
	}
	if err := room(parts, dir); err != nil {
		return Fetched{}, err
	}
	return got, writeParts(ctx, parts, &got, dir)
}

// sparePart of what is free stays so beside what is fetched: databases on the same disk write on.
const sparePart = 20

var freeBytes = volume.FreeBytes // a variable for the tests alone

// room refuses to write parts that would fill the disk. Their lengths are what their names in a
// repository say, and an object of a few KB can unpack to any of them.
func room(parts []*plan, dir string) error {
	if err := volume.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	free, err := freeBytes(dir)
	if err != nil {
		return err
	}
	left := free - free/sparePart
	for _, p := range parts {
		for _, x := range p.needed() { // a sum could run over
			bytes := x.cut(p.end) - x.Start
			if bytes > left {
				return fmt.Errorf("the log that is needed is longer than the %s that are free on the disk of %s", kurabe.FormatBytes(free), dir)
			}
			left -= bytes
		}
	}
	return nil
}

// writeParts writes the first part into dir and each other one into a folder in it.
func writeParts(ctx context.Context, parts []*plan, got *Fetched, dir string) (err error) {
	defer func() {
		if err != nil {
			for _, folder := range got.Joined {
				_ = volume.RemoveAll(folder)
			}
		}
	}()
	for n, p := range parts {
		to := dir
		if n > 0 {
			to = filepath.Join(dir, fmt.Sprintf("joined-%d", n))
			got.Joined = append(got.Joined, to)
		}
		if err := volume.MkdirAll(to, 0o700); err != nil {
			return err
		}
		files, bytes := p.files()
		if n == 0 {
			got.Files = files
		}
		got.Bytes += bytes
		if err := p.write(ctx, files, to); err != nil {
			if n > 0 { // the files of the first part were complete
				for _, name := range got.Files {
					_ = volume.Remove(filepath.Join(dir, name))
				}
			}
			return err
		}
	}
	return nil
}

// files are those that are written, and how long they are together.
func (p *plan) files() (names []string, bytes int64) {
	for _, x := range p.needed() {
		if !slices.Contains(names, x.File) {
			names = append(names, x.File)
		}
		bytes += x.cut(p.end) - x.Start
	}
	return names, bytes
}

// choose finds the run that holds a snapshot, and those that go on from it as far as the
// moment wants, as kurabe.InstanceLog.Reaches does.
func (s *Store) choose(id kurabe.InstanceID, from kurabe.LogPosition, takenAt, at time.Time) ([]*plan, error) {
	repo, repoIs := s.cfg.Repository()
	s.mu.Lock()
	defer s.mu.Unlock()
	inst, ok := s.instances[id]
	if !ok {
		return nil, &RangeError{Instance: id, At: at}
	}
	return inst.choose(point{from, takenAt, at}, repo, repoIs)
}

// point is a moment, and the snapshot that is brought to it.
type point struct {
	from        kurabe.LogPosition
	takenAt, at time.Time
}

// choose is what Store.choose does. Callers hold mu.
func (inst *instance) choose(x point, repo *blob.Repository, repoIs error) ([]*plan, error) {
	id, from, takenAt, at := inst.id, x.from, x.takenAt, x.at
	told, of := inst.told()
	chain := kurabe.InstanceLog{Runs: told}.Chain(takenAt, from)
	if len(chain) == 0 {
		return nil, &RangeError{Instance: id, At: at}
	}
	last := told[chain[len(chain)-1]].Last
	if at.Before(takenAt) || at.After(last.At) {
		return nil, &RangeError{id, at, takenAt, last.At}
	}
	var parts []*plan
	for n, k := range chain {
		p := &plan{id: id, folder: of[k].folder, repo: repo, repoIs: repoIs, first: from}
		if n > 0 {
			p.first = kurabe.LogPosition{}
		}
		for _, x := range of[k].pieces {
			p.pieces = append(p.pieces, *x)
		}
		p.end = of[k].end().to()
		parts = append(parts, p)
		if !told[k].Last.At.Before(at) {
			break
		}
	}
	return parts, nil
}

// needed are the pieces that bytes are needed of.
func (p *plan) needed() []piece {
	return slices.DeleteFunc(slices.Clone(p.pieces), func(x piece) bool {
		behind := kurabe.LogPosition{File: x.File}.Compare(kurabe.LogPosition{File: p.first.File}) < 0
		return behind || x.from().Compare(p.end) >= 0 || x.Start == x.End
	})
}

func (p *plan) name(x piece) string { return objectName(p.id, p.folder, x.span) }

// marks are those of a piece that count.
func (p *plan) marks(ctx context.Context, x piece) ([]kurabe.LogMark, error) {
	var marks []kurabe.LogMark
	err := fs.ErrNotExist
	if x.path != "" {
		var got scanned
		got, err = scanSpoolFile(x.path, nil)
		marks = got.marks
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, &DamagedError{x.span.String(), err}
		}
	}
	if err != nil {
		if p.repo == nil {
			return nil, p.repoIs
		}
		if _, marks, err = readMarks(ctx, p.repo, p.name(x)); err != nil {
			return nil, err
		}
	}
	// A piece that grows may have marks by now that were not there when it was chosen,
	// and one of them in the place of its last.
	marks = slices.DeleteFunc(marks, func(m kurabe.LogMark) bool { return !m.At.Before(x.Last.At) })
	return append(marks, x.Last), nil
}

func (p *plan) after(ctx context.Context, at time.Time, from kurabe.LogPosition) (kurabe.LogMark, error) {
	fits := func(m kurabe.LogMark) bool { return !m.At.Before(at) && m.Position.Compare(from) >= 0 }
	for _, x := range p.pieces {
		if !hasMark(x.Last) || !fits(x.Last) {
			continue
		}
		marks, err := p.marks(ctx, x)
		if err != nil {
			return kurabe.LogMark{}, err
		}
		if n := slices.IndexFunc(marks, fits); n >= 0 {
			return marks[n], nil
		}
		return kurabe.LogMark{}, &DamagedError{x.span.String(), errors.New("its marks differ from the stored ones")}
	}
	return kurabe.LogMark{}, &RangeError{Instance: p.id, At: at}
}

// before is the newest mark whose whole reading lies before the moment.
func (p *plan) before(ctx context.Context, at time.Time) (kurabe.LogMark, error) {
	for _, x := range slices.Backward(p.pieces) {
		if !hasMark(x.First) || x.First.Until.After(at) {
			continue
		}
		marks, err := p.marks(ctx, x)
		if err != nil {
			return kurabe.LogMark{}, err
		}
		for _, m := range slices.Backward(marks) {
			if !m.Until.After(at) {
				return m, nil
			}
		}
	}
	if from := p.pieces[0].From; hasMark(from) && !from.Until.After(at) {
		return from, nil
	}
	return kurabe.LogMark{}, nil
}

// cut is where a piece ends if the log ends at a position.
func (p *piece) cut(at kurabe.LogPosition) int64 {
	if at.File == p.File {
		return min(p.End, at.Offset)
	}
	return p.End
}

// check proves, before anything is written, that the pieces are all there and follow
// each other to the end.
func (p *plan) check(ctx context.Context) error {
	pieces, end := p.needed(), p.end
	seen := map[place]found{}
	if p.repo != nil && slices.ContainsFunc(pieces, func(x piece) bool { return x.pushed }) {
		var err error
		if seen, err = list(ctx, p.repo, p.id); err != nil {
			return err
		}
	}
	for n, x := range pieces {
		if n == 0 && x.Start != 0 || n > 0 && !x.follows(&pieces[n-1]) {
			return &MissingError{"before " + p.name(x)}
		}
		switch {
		case !x.pushed:
			if _, err := volume.Stat(x.path); errors.Is(err, fs.ErrNotExist) && p.repo != nil {
				if _, err := p.repo.Stat(ctx, p.name(x)); err != nil { // pushed meanwhile
					return judgeRead(p.name(x), err)
				}
			}
		case p.repo == nil:
			return p.repoIs
		case !seen[place{p.folder, x.span}].piece:
			return &MissingError{p.name(x)}
		}
	}
	if n := len(pieces); n > 0 && pieces[n-1].to().Compare(end) < 0 && (pieces[n-1].File == end.File || end.Offset != 0) {
		return &MissingError{"after " + p.name(pieces[n-1])}
	}
	return nil
}

// write fills the files, several pieces at a time.
func (p *plan) write(ctx context.Context, names []string, dir string) (err error) {
	files := map[string]*os.File{}
	defer func() {
		for name, file := range files {
			err = errors.Join(err, file.Close())
			if err != nil {
				_ = volume.Remove(filepath.Join(dir, name))
			}
		}
		if err != nil { // also those closed before the error
			for name := range files {
				_ = volume.Remove(filepath.Join(dir, name))
			}
		}
	}()
	for _, name := range names {
		file, err := volume.Create(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		files[name] = file
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	slots := make(chan struct{}, fetchers)
	for _, x := range p.needed() {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			to := io.NewOffsetWriter(files[x.File], x.Start)
			if err := p.copyPiece(ctx, x, x.cut(p.end)-x.Start, to); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// copyPiece writes the first bytes of a piece and checks all of it.
func (p *plan) copyPiece(ctx context.Context, x piece, keep int64, to io.Writer) error {
	r, spooled, err := p.openPiece(ctx, x)
	if err != nil {
		return err
	}
	defer r.Close()
	sum := &summer{r: io.LimitReader(r, x.End-x.Start)}
	_, err = io.CopyN(to, sum, keep)
	if err == nil {
		_, err = io.Copy(io.Discard, sum)
	}
	if err == nil && !spooled { // only the end says that a sealed object was whole
		var more [1]byte
		if n, end := io.ReadFull(r, more[:]); n > 0 {
			err = errors.New("it is longer than its name says")
		} else if end != io.EOF {
			err = end
		}
	}
	var store *blob.Error
	switch {
	case err == nil && (sum.n != x.End-x.Start || sum.sum != x.Sum), errors.Is(err, io.EOF), errors.Is(err, errTorn):
		return &DamagedError{p.name(x), fmt.Errorf("%d bytes of %d, checksum %08x instead of %08x", sum.n, x.End-x.Start, sum.sum, x.Sum)}
	case errors.As(err, &store):
		return judgeRead(p.name(x), err)
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return err
}

// openPiece prefers the spool; a piece may be pushed at any moment.
func (p *plan) openPiece(ctx context.Context, x piece) (r io.ReadCloser, spooled bool, err error) {
	if x.path != "" {
		r, err := openContent(x.path)
		if err == nil {
			return r, true, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, false, err
		}
	}
	if p.repo == nil {
		return nil, false, p.repoIs
	}
	r, err = p.repo.Get(ctx, p.name(x))
	if err != nil {
		return nil, false, judgeRead(p.name(x), err)
	}
	return r, false, nil
}

type summer struct {
	r   io.Reader
	n   int64
	sum uint32
}

func (s *summer) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	s.n += int64(n)
	s.sum = crcUpdate(s.sum, b[:n])
	return n, err
}

func isDamage(err error) bool {
	var d *DamagedError
	var m *MissingError
	return errors.As(err, &d) || errors.As(err, &m)
}

// judgeRead says what an error of the repository means for a piece.
func judgeRead(name string, err error) error {
	switch {
	case errors.Is(err, blob.ErrNotFound):
		return &MissingError{name}
	case errors.Is(err, blob.ErrDamaged):
		return &DamagedError{name, err}
	}
	return err
}
