package mariadb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"kurabe"
	"kurabe/internal/engine"
)

// Two servers of an instance number their files for themselves; what they have in common are
// the numbers of transactions. The newest one before a place is therefore noted with each
// mark, and tells another server's log where it goes on.

// place follows how far a log was read: the newest transaction before that.
type place struct {
	at     kurabe.LogPosition
	newest gtid
	known  bool // false before the first transaction that is known of
	groups grouper
}

// add takes the next event of the file that at is in.
func (p *place) add(e event) {
	p.at.Offset = e.end
	if e.kind == gtidListEvent {
		list, err := e.gtidList()
		if g, ok := newest(list); err == nil && ok {
			p.newest, p.known = g, true
		}
	}
	if g, whole := p.groups.add(e); whole && g.gtid.domain == groupDomain {
		p.newest, p.known = g.gtid, true
	}
}

// within says whether a transaction was begun and not ended.
func (p *place) within() bool { return p.groups.open }

// State implements engine.Log.
func (l *binaryLog) State(at kurabe.LogPosition) string {
	ended := at.Offset == 0 && at.File == binlogFile(binlogNumber(l.read.at.File)+1)
	if !l.read.known || l.read.within() || l.read.at != at && !ended {
		return ""
	}
	return l.read.newest.String()
}

// Continue implements engine.Log. Who has the same number from the same writer has the same
// history up to it.
func (l *binaryLog) Continue(ctx context.Context, after kurabe.LogMark) (kurabe.LogPosition, error) {
	from, err := l.goOn(ctx, after.State)
	if err != nil {
		return kurabe.LogPosition{}, fmt.Errorf("continue the binary log after %q: %w", after.State, err)
	}
	return from, nil
}

func (l *binaryLog) goOn(ctx context.Context, state string) (from kurabe.LogPosition, err error) {
	list, err := parseGTIDs(state)
	if err != nil {
		return from, err
	}
	want, ok := newest(list)
	if !ok {
		return from, fmt.Errorf("%w: nothing is known of the place", engine.ErrElsewhere)
	}
	names, err := binlogs(l.dir)
	if err != nil {
		return from, err
	}
	for _, name := range slices.Backward(names) {
		first, err := l.firstOf(name)
		switch {
		case errors.Is(err, engine.ErrLogGone), err == nil && first.at.Offset == 0:
			continue // purged meanwhile, or it took a number only
		case err != nil:
			return from, err
		case first.newest.seq > want.seq:
			continue
		case first.newest == want:
			return kurabe.LogPosition{File: name}, nil
		}
		has, err := l.has(ctx, name, want)
		if err == nil && !has {
			err = fmt.Errorf("%w: %s does not have transaction %s", engine.ErrElsewhere, name, want)
		}
		return kurabe.LogPosition{File: name}, err
	}
	return from, fmt.Errorf("%w: the oldest file begins after transaction %s", engine.ErrLogGone, want)
}

// firstOf is the place at which a file begins.
func (l *binaryLog) firstOf(name string) (place, error) {
	p := place{at: kurabe.LogPosition{File: name}}
	file, size, err := openBinlog(l.root, name)
	if err != nil {
		return p, err
	}
	defer file.Close()
	r := &eventReader{source: file, until: size, copyTo: io.Discard}
	if err = r.readMagic(); err == nil {
		for err == nil && !p.known && !p.within() {
			var e event
			if e, err = r.next(); err == nil {
				p.add(e)
			}
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, errTorn) {
		err = nil
	}
	return p, err
}

// has says whether a file has a transaction.
func (l *binaryLog) has(ctx context.Context, name string, want gtid) (bool, error) {
	file, size, err := openBinlog(l.root, name)
	if err != nil {
		return false, err
	}
	defer file.Close()
	r := &eventReader{source: file, until: size, copyTo: io.Discard}
	p := place{at: kurabe.LogPosition{File: name}}
	for err = r.readMagic(); err == nil; {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		var e event
		if e, err = r.next(); err != nil {
			break
		}
		p.add(e)
		if p.known && !p.within() && p.newest.seq >= want.seq {
			return p.newest == want, nil
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, errTorn) {
		err = nil
	}
	return false, err
}
