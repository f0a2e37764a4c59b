package account

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/big"
	"os"
	"slices"
	"sync"

	"kurabe/internal/proc"
	"kurabe/internal/volume"
)

// Entry is what the book says of a name.
type Entry struct {
	ID int `json:"id"` // of the user and of its group
	// Moving: files of another account are being given to this one.
	Moving bool `json:"moving,omitempty"`
}

// page is the book as it is on the disk.
type page struct {
	Span  string           `json:"span"`
	Next  int              `json:"next"` // where the search for a free id goes on
	Names map[string]Entry `json:"names"`
}

// Book is the book of one service.
type Book struct {
	path string
	span Span
	off  bool // gives no new ids
	busy func(id int) (bool, error)

	mu   sync.Mutex // guards page and its file
	page page
}

// Options say which ids a book gives.
type Options struct {
	Span Span // zero: as before, or the first free one
	Off  bool // none: those that are taken are kept until they are released
	Etc  string
}

// Open reads the book, or makes it.
func Open(path string, o Options) (*Book, error) {
	b := &Book{path: path, off: o.Off, busy: Busy}
	raw, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(raw, &b.page)
		if err != nil {
			return nil, fmt.Errorf("%s cannot be read (%w); restore it from a backup: it records which user owns each database's files", path, err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if b.page.Names == nil {
		b.page.Names = map[string]Entry{}
	}
	if o.Off {
		return b, nil
	}
	if b.span, err = b.choose(o); err != nil {
		return nil, err
	}
	return b, nil
}

// choose takes the span that was asked for, else that of before, else a free one.
func (b *Book) choose(o Options) (Span, error) {
	if o.Span == (Span{}) && b.page.Span != "" {
		return ParseSpan(b.page.Span)
	}
	s := o.Span
	if s == (Span{}) {
		var err error
		if s, err = FreeSpan(o.Etc); err != nil {
			return s, err
		}
	} else if err := s.Check(o.Etc); err != nil {
		return s, err
	}
	if b.page.Span == s.String() {
		return s, nil
	}
	// Services beside each other on one machine must not begin with the same ids.
	at, err := rand.Int(rand.Reader, big.NewInt(int64(s.size())))
	if err != nil {
		return s, err
	}
	next := page{Span: s.String(), Next: s.First + int(at.Int64()), Names: b.page.Names}
	return s, b.save(next)
}

// save makes the page the book's, on the disk first.
func (b *Book) save(p page) error {
	raw, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if err := volume.AtomicWrite(b.path, raw, 0o600); err != nil {
		return err
	}
	b.page = p
	return nil
}

// Off says that the book gives no new ids.
func (b *Book) Off() bool { return b.off }

// Find is what a name has.
func (b *Book) Find(name string) (Entry, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.page.Names[name]
	return e, ok
}

// Names are those that have an id.
func (b *Book) Names() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.page.Names))
}

// Take gives a name an id of its own, the one that it has if it has one. Moving is
// noted of a fresh id only.
func (b *Book) Take(name string, moving bool) (Entry, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e, ok := b.page.Names[name]; ok {
		return e, nil
	}
	if b.off {
		return Entry{}, fmt.Errorf("take a user id for %s: no range of user ids is configured", name)
	}
	id, err := b.free()
	if err != nil {
		return Entry{}, fmt.Errorf("take a user id for %s: %w", name, err)
	}
	next := b.copy()
	next.Names[name] = Entry{ID: id, Moving: moving}
	next.Next = id + 1
	if err := b.save(next); err != nil {
		return Entry{}, fmt.Errorf("take a user id for %s: %w", name, err)
	}
	return next.Names[name], nil
}

// free is the next id that has no name and of which nothing is left.
func (b *Book) free() (int, error) {
	used := map[int]bool{}
	for _, e := range b.page.Names {
		used[e.ID] = true
	}
	at := b.page.Next
	for range b.span.size() {
		if !b.span.holds(at) {
			at = b.span.First
		}
		if !used[at] {
			busy, err := b.busy(at)
			if err != nil {
				return 0, err
			}
			if !busy {
				return at, nil
			}
		}
		at++
	}
	return 0, fmt.Errorf("all ids of %s are in use; give a larger range", b.span)
}

func (b *Book) copy() page {
	p := b.page
	p.Names = maps.Clone(b.page.Names)
	return p
}

// Settle notes that all files of a name are its id's.
func (b *Book) Settle(name string) error {
	return b.change(name, func(p page) { p.Names[name] = Entry{ID: p.Names[name].ID} })
}

// Release takes the id from a name of which nothing exists any more.
func (b *Book) Release(name string) error {
	return b.change(name, func(p page) { delete(p.Names, name) })
}

func (b *Book) change(name string, do func(page)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.page.Names[name]; !ok {
		return nil
	}
	next := b.copy()
	do(next)
	if maps.Equal(next.Names, b.page.Names) {
		return nil
	}
	return b.save(next)
}

// Sweep releases the ids of names of which exists says that nothing is there, and ends
// what still runs as one.
func (b *Book) Sweep(ctx context.Context, exists func(name string) bool) error {
	var errs error
	for _, name := range b.Names() {
		e, ok := b.Find(name)
		if !ok || exists(name) {
			continue
		}
		err := proc.KillOwned(ctx, e.ID)
		if err == nil {
			err = b.Release(name)
		}
		errs = errors.Join(errs, err)
	}
	return errs
}
