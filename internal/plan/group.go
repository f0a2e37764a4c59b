package plan

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"kurabe"
)

// silentMost is how long a member of Sync may be silent before commits stop waiting for
// it: with the answer of the record, no commit waits for more than two seconds.
const silentMost = 1500 * time.Millisecond

// GroupWorld is everything that may influence who writes. It is read, never changed.
type GroupWorld struct {
	Now     time.Time
	Group   kurabe.Group
	Orders  map[kurabe.MemberID]kurabe.MemberOrder // the newest that are stored
	Reports map[kurabe.MemberID]kurabe.MemberReport
	Lease   kurabe.Lease
}

// GroupResult is what must be. Group is nil when it stays; Orders are those that change.
type GroupResult struct {
	Group   *kurabe.Group
	Orders  map[kurabe.MemberID]kurabe.MemberOrder
	Reasons []string
	// LookAgain is when time alone can change the plan; zero: never.
	LookAgain time.Time
}

type groupDraft struct {
	w      GroupWorld
	next   kurabe.Group
	result GroupResult
}

func (d *groupDraft) because(format string, args ...any) {
	d.result.Reasons = append(d.result.Reasons, fmt.Sprintf(format, args...))
}

func (d *groupDraft) lookAgain(t time.Time) {
	if d.result.LookAgain.IsZero() || t.Before(d.result.LookAgain) {
		d.result.LookAgain = t
	}
}

// NextGroup decides who writes, whom a commit waits for, and what each member is to be.
func NextGroup(w GroupWorld) GroupResult {
	d := &groupDraft{w: w, next: w.Group}
	d.next.Sync = slices.Clone(w.Group.Sync)
	switch {
	case w.Lease != kurabe.Lease{}:
		d.watch()
	default:
		d.succeed()
	}
	d.orders()
	if d.changed() {
		d.result.Group = &d.next
	}
	return d.result
}

func (d *groupDraft) changed() bool {
	a, b := d.w.Group, d.next
	return a.Epoch != b.Epoch || a.Writer != b.Writer || !slices.Equal(a.Sync, b.Sync) || !a.Since.Equal(b.Since)
}

// succeed gives the right to another member when nobody holds it. Only one that has all
// that was acknowledged may have it: a member of Sync, or the writer again.
func (d *groupDraft) succeed() {
	if len(d.next.Sync) == 0 {
		d.because("nobody has the right to write, and nobody but %s has all that was acknowledged", d.next.Writer)
		return
	}
	var best kurabe.MemberID
	for _, id := range d.next.Sync {
		// Whoever is chosen and does not come to write leaves nobody else to choose.
		if d.fresh(id) && (best == "" || d.w.Reports[id].Written > d.w.Reports[best].Written) {
			best = id
		}
	}
	if best == "" {
		d.because("nobody has the right to write; waiting for one of %s, %v", d.next.Writer, d.next.Sync)
		return
	}
	d.because("the right of %s to write has ended; %s has all that was acknowledged", d.next.Writer, best)
	d.next.Epoch++
	d.next.Writer = best
	// Nobody waits for the others until they follow the new writer and have caught up.
	d.setSync(nil)
}

// watch keeps Sync true while the writer writes.
func (d *groupDraft) watch() {
	r, writes := d.writer()
	if !writes {
		d.because("waiting for %s to write under epoch %d", d.next.Writer, d.next.Epoch)
		return
	}
	d.shrink(r)
	d.grow(r)
}

// writer is the report of the writer, and whether it writes under its newest order. One
// of an older order says nothing of whom its database waits for by now.
func (d *groupDraft) writer() (kurabe.MemberReport, bool) {
	r, told := d.w.Reports[d.next.Writer]
	order, ordered := d.w.Orders[d.next.Writer]
	return r, told && ordered && r.Writing && order.Writer && order.Epoch == d.next.Epoch && r.Generation == order.Generation &&
		d.w.Lease == kurabe.Lease{Member: d.next.Writer, Epoch: d.next.Epoch}
}

// shrink takes the silent from Sync.
func (d *groupDraft) shrink(r kurabe.MemberReport) {
	if d.next.Policy == kurabe.Block {
		return
	}
	var left []kurabe.MemberID
	for _, id := range d.next.Sync {
		silentAt := r.Heard[id].Add(silentMost)
		if d.w.Now.Before(silentAt) {
			left = append(left, id)
			d.lookAgain(silentAt)
			continue
		}
		d.because("%s has not answered since %s: commits go on without it", id, r.Heard[id].Format(time.RFC3339Nano))
	}
	if len(left) != len(d.next.Sync) {
		d.setSync(left)
	}
}

// grow takes into Sync whom the database waits for already, once all that was written
// before it did so has arrived there.
func (d *groupDraft) grow(r kurabe.MemberReport) {
	sync := slices.Clone(d.next.Sync)
	for _, m := range d.next.Members {
		switch {
		case m.ID == d.next.Writer || d.next.Has(m.ID) || !slices.Contains(r.WaitsFor, m.ID) || !d.heard(r, m.ID):
		case r.Flushed[m.ID] >= r.Written:
			d.because("%s has all that is written, and commits wait for it", m.ID)
			sync = append(sync, m.ID)
		}
	}
	if len(sync) != len(d.next.Sync) {
		slices.Sort(sync)
		d.setSync(sync)
	}
}

func (d *groupDraft) setSync(sync []kurabe.MemberID) {
	d.next.Sync = sync
	switch {
	case len(sync) > 0 || len(d.next.Members) < 2:
		d.next.Since = time.Time{}
	case d.next.Since.IsZero():
		d.next.Since = d.w.Now
	}
}

// fresh says whether a member's host has spoken of it just now.
func (d *groupDraft) fresh(id kurabe.MemberID) bool {
	r, told := d.w.Reports[id]
	return told && d.w.Now.Before(r.At.Add(silentMost))
}

func (d *groupDraft) heard(r kurabe.MemberReport, id kurabe.MemberID) bool {
	at, ok := r.Heard[id]
	return ok && d.w.Now.Before(at.Add(silentMost))
}

// orders follow from the group: they are stored with it, and are never ahead of it but in
// whom the database waits for.
func (d *groupDraft) orders() {
	d.result.Orders = map[kurabe.MemberID]kurabe.MemberOrder{}
	for _, m := range d.next.Members {
		order := kurabe.MemberOrder{Epoch: d.next.Epoch, Follow: d.next.Writer}
		if m.ID == d.next.Writer {
			order = kurabe.MemberOrder{Epoch: d.next.Epoch, Writer: true, WaitFor: d.waitFor()}
		}
		old, had := d.w.Orders[m.ID]
		order.Generation = old.Generation
		if !had || !sameOrder(old, order) {
			order.Generation++
			d.result.Orders[m.ID] = order
		}
	}
}

// waitFor is Sync and whoever is about to join it. Who is about to join stays here while
// it answers, so that an order does not change with each look.
func (d *groupDraft) waitFor() []kurabe.MemberID {
	wait := map[kurabe.MemberID]bool{}
	for _, id := range d.next.Sync {
		wait[id] = true
	}
	r, writes := d.writer()
	old := d.w.Orders[d.next.Writer]
	for _, m := range d.next.Members {
		joins := writes && m.ID != d.next.Writer && d.heard(r, m.ID)
		// Nothing is known of a writer that does not obey yet: its order stays.
		asks := !writes && old.Writer && old.Epoch == d.next.Epoch && slices.Contains(old.WaitFor, m.ID)
		if joins || asks {
			wait[m.ID] = true
		}
	}
	return slices.Sorted(maps.Keys(wait))
}

func sameOrder(a, b kurabe.MemberOrder) bool {
	return a.Epoch == b.Epoch && a.Writer == b.Writer && a.Follow == b.Follow && slices.Equal(a.WaitFor, b.WaitFor)
}
