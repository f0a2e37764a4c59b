package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"kurabe"
	"kurabe/internal/volume"
)

// WaitTeller is a Replicator whose server writes into its log when a commit ends its wait for
// a follower before one has answered.
type WaitTeller interface {
	// ReadWaits counts what the server has written of them from a place on, and returns how
	// far it has read; the zero place stands for the end of what there is, of which nothing is
	// counted. It asks no server and needs none that runs.
	ReadWaits(ctx context.Context, i Instance, from LogPlace) (LogPlace, kurabe.WaitCount, error)
	// TellsWaits says whether the server's settings let it write of them.
	TellsWaits(i Instance) bool
}

// LogPlace is one in the files that a server writes for people.
type LogPlace struct {
	File   string `json:"file,omitempty"`
	Offset int64  `json:"offset,omitempty"`
}

// waitsNote is how far the log was read, and what was counted up to there: what is written
// while nobody looks is counted later, and nothing twice.
type waitsNote struct {
	kurabe.WaitCount
	Place LogPlace `json:"place"`
	// Elsewhere is how many of them another server is known to have.
	Elsewhere int64 `json:"elsewhere,omitempty"`
}

// WaitCounter counts the commits of one server that ended their wait early. One goroutine
// uses it.
type WaitCounter interface {
	// Read goes on to the end of what the server has written; elsewhere is how many of those
	// that were counted before another server is known to have by now.
	Read(ctx context.Context, a kurabe.Assignment, elsewhere int64) (kurabe.ServerWaits, error)
}

type waitCounter struct {
	teller WaitTeller
	home   Home
	as     func(kurabe.Assignment) Instance
	note   waitsNote
	saved  waitsNote
}

// CountWaits begins to count for a server of a group: from the end of what it has written, or
// from where an earlier counter was. nil of an engine that does not tell.
func (l *Lifecycle) CountWaits(a kurabe.Assignment) (WaitCounter, error) {
	d, tells := l.c.Driver.(WaitTeller)
	if !tells {
		return nil, nil
	}
	home := l.Home(a.Instance)
	n, err := readWaitsNote(home)
	if err != nil {
		return nil, err
	}
	return &waitCounter{teller: d, home: home, as: l.instance, note: n, saved: n}, nil
}

// Read implements WaitCounter.
func (c *waitCounter) Read(ctx context.Context, a kurabe.Assignment, elsewhere int64) (kurabe.ServerWaits, error) {
	i, n := c.as(a), c.note
	place, more, err := c.teller.ReadWaits(ctx, i, n.Place)
	if err != nil {
		return kurabe.ServerWaits{}, fmt.Errorf("count the waits of %s: %w", i.Instance, err)
	}
	n.Place, n.WaitCount, n.Elsewhere = place, n.Plus(more), max(n.Elsewhere, elsewhere)
	// Counted again from an earlier place in the same file the sum is the same, so a place is
	// worth no note of its own.
	if n.WaitCount != c.saved.WaitCount || n.Elsewhere != c.saved.Elsewhere || n.Place.File != c.saved.Place.File {
		if err := writeWaitsNote(c.home, n); err != nil {
			return kurabe.ServerWaits{}, err
		}
		c.saved = n
	}
	c.note = n
	return kurabe.ServerWaits{WaitCount: n.WaitCount, Unreplicated: n.Sum() > n.Elsewhere, Uncounted: !c.teller.TellsWaits(i)}, nil
}

func readWaitsNote(h Home) (n waitsNote, err error) {
	data, err := volume.ReadFile(h.WaitsFile())
	if errors.Is(err, fs.ErrNotExist) {
		return n, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &n)
	}
	if err != nil {
		return n, fmt.Errorf("read note %s: %w", h.WaitsFile(), err)
	}
	return n, nil
}

func writeWaitsNote(h Home, n waitsNote) error {
	data, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("write note %s: %w", h.WaitsFile(), err)
	}
	return volume.AtomicWrite(h.WaitsFile(), data, 0o600)
}

// forgetWaits ends the count of a server that is in no group any more. In the next one it
// begins at nothing, as the record does.
func forgetWaits(i Instance) error {
	if i.Role != nil {
		return nil
	}
	if err := volume.Remove(i.Home.WaitsFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget the waits of %s: %w", i.Instance, err)
	}
	return nil
}
