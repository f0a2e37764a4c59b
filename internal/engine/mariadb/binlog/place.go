package binlog

import (
	"context"
	"errors"
	"io"

	"kurabe"
	"kurabe/internal/volume"
)

// Place follows how far a log was read: the newest transaction before that.
type Place struct {
	At     kurabe.LogPosition
	Newest GTID
	Known  bool // false before the first transaction that is known of
	groups Grouper
}

// Add takes the next event of the file that at is in.
func (p *Place) Add(e Event) {
	p.At.Offset = e.end
	if e.Kind == GTIDListEvent {
		list, err := e.gtidList()
		if g, ok := Newest(list); err == nil && ok {
			p.Newest, p.Known = g, true
		}
	}
	if g, whole := p.groups.Add(e); whole && g.gtid.domain == GroupDomain {
		p.Newest, p.Known = g.gtid, true
	}
}

// Within says whether a transaction was begun and not ended.
func (p *Place) Within() bool { return p.groups.open }

// FirstOf is the place at which a file begins.
func FirstOf(root *volume.Root, name string) (Place, error) {
	p := Place{At: kurabe.LogPosition{File: name}}
	file, size, err := Open(root, name)
	if err != nil {
		return p, err
	}
	defer file.Close()
	r := &Reader{Source: file, Until: size, CopyTo: io.Discard}
	if err = r.ReadMagic(); err == nil {
		for err == nil && !p.Known && !p.Within() {
			var e Event
			if e, err = r.Next(); err == nil {
				p.Add(e)
			}
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, ErrTorn) {
		err = nil
	}
	return p, err
}

// Contains says whether a file has a transaction.
func Contains(ctx context.Context, root *volume.Root, name string, want GTID) (bool, error) {
	file, size, err := Open(root, name)
	if err != nil {
		return false, err
	}
	defer file.Close()
	r := &Reader{Source: file, Until: size, CopyTo: io.Discard}
	p := Place{At: kurabe.LogPosition{File: name}}
	for err = r.ReadMagic(); err == nil; {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		var e Event
		if e, err = r.Next(); err != nil {
			break
		}
		p.Add(e)
		if p.Known && !p.Within() && p.Newest.Seq >= want.Seq {
			return p.Newest == want, nil
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, ErrTorn) {
		err = nil
	}
	return false, err
}
