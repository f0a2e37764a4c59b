package engine

import (
	"context"
	"errors"
	"testing"

	"kurabe"
)

// wordy is a driver whose server has written of so many waits, one at each place.
type wordy struct {
	*stub
	file    string
	written int64
	away    error
	from    LogPlace // of the newest read
}

func (w *wordy) ReadWaits(_ context.Context, _ Instance, from LogPlace) (LogPlace, kurabe.WaitCount, error) {
	w.from = from
	to := LogPlace{File: w.file, Offset: w.written}
	if from.File == "" {
		return to, kurabe.WaitCount{}, w.away
	}
	return to, kurabe.WaitCount{Cancelled: w.written - from.Offset}, w.away
}

func (w *wordy) TellsWaits(i Instance) bool { return i.Settings["log_min_messages"] == "" }

// What is written while nobody counts is counted by the next one, nothing twice; a server that is
// in no group any more begins anew.
func TestCountWaits(t *testing.T) {
	p := newPlace(t, waiting)
	w := &wordy{stub: p.stub, file: "a", written: 5}
	p.l.c.Driver = w
	var c WaitCounter
	begin := func() {
		t.Helper()
		var err error
		if c, err = p.l.CountWaits(p.a); err != nil {
			t.Fatal(err)
		}
	}
	read := func(elsewhere, want int64, alone bool) {
		t.Helper()
		n, err := c.Read(t.Context(), p.a, elsewhere)
		if err != nil || n.Cancelled != want || n.Unreplicated != alone || n.Uncounted {
			t.Errorf("%+v, %v, want %d, alone %v", n, err, want, alone)
		}
	}
	begin()
	read(0, 0, false) // what was written before
	w.written = 7
	read(0, 2, true)
	begin() // the service dies, and there is more when it is back
	w.written = 8
	read(0, 3, true)
	if w.from.Offset != 7 {
		t.Errorf("it is read again from %+v, whose file may be gone by now", w.from)
	}
	w.written = 9
	w.away = errors.New("the disk is gone")
	if _, err := c.Read(t.Context(), p.a, 0); !errors.Is(err, w.away) {
		t.Error(err)
	}
	w.away = nil
	read(3, 4, true)
	read(4, 4, false)
	begin()
	read(0, 4, false)
	p.a.Settings = map[string]string{"log_min_messages": "panic"}
	if n, err := c.Read(t.Context(), p.a, 0); err != nil || !n.Uncounted {
		t.Errorf("%+v, %v", n, err)
	}
	p.a.Settings, p.a.Role = nil, nil
	p.must(StepReload)
	begin()
	read(0, 0, false)

	p.l.c.Driver = p.stub
	if c, err := p.l.CountWaits(p.a); c != nil || err != nil {
		t.Errorf("of one that does not tell: %v, %v", c, err)
	}
}
