package backup

import (
	"slices"
	"time"

	"kurabe"
)

// History is the automated snapshots of one instance, and what is known of its log. It
// is the one place that says which of them is the newest and which lets another go.
type History struct {
	Now     time.Time
	Log     kurabe.InstanceLog
	Backups []Backup
}

// Backup is an automated snapshot, as far as plans need it.
type Backup struct {
	ID        kurabe.SnapshotID
	Name      string
	CreatedAt time.Time          // when it was asked for
	TakenAt   time.Time          // zero until it was taken
	UsableAt  time.Time          // from when on the log brings it to any moment
	Position  kurabe.LogPosition // in the log, zero of one that does not know its own
	Host      kurabe.HostID      // that has it, and the log from there on
	State     kurabe.SnapshotState
	Untrusted bool // its newest verification, or a restore, found damage
	Moved     bool // it failed because another host writes now
}

func (b Backup) facts() kurabe.SnapshotFacts {
	return kurabe.SnapshotFacts{TakenAt: b.TakenAt, UsableAt: b.UsableAt, Position: b.Position, Host: b.Host}
}

// live says whether a backup is there, or is being made.
func (b Backup) live() bool {
	return b.State != kurabe.SnapshotDeleting && b.State != kurabe.SnapshotFailed
}

// sound says whether moments can be restored from a backup, as far as anybody knows.
func (b Backup) sound() bool {
	return b.State == kurabe.SnapshotAvailable && !b.TakenAt.IsZero() && !b.Untrusted
}

// logged says whether the log can bring a backup to a moment at all.
func (b Backup) logged() bool { return b.Position.File != "" && !b.UsableAt.IsZero() }

// Live lists those that are there or in the making, oldest first.
func (h History) Live() []Backup {
	var list []Backup
	for _, b := range h.Backups {
		if b.live() {
			list = append(list, b)
		}
	}
	slices.SortStableFunc(list, func(a, b Backup) int {
		switch made, other := !a.TakenAt.IsZero(), !b.TakenAt.IsZero(); {
		case made && other:
			return h.Log.CompareTaken(a.facts(), b.facts())
		case made:
			return -1
		case other:
			return 1
		}
		return a.CreatedAt.Compare(b.CreatedAt)
	})
	return list
}

// NewestID is the newest that is available, "" without one.
func (h History) NewestID() kurabe.SnapshotID {
	var newest kurabe.SnapshotID
	for _, b := range h.Live() {
		if b.State == kurabe.SnapshotAvailable && !b.TakenAt.IsZero() {
			newest = b.ID
		}
	}
	return newest
}

// Succeeded is from when on moments can be restored without a snapshot: since a newer
// one could be restored from, that is sound and of which nobody doubts that it is the
// newer. Zero while there is none. For one that was never taken it is when another was.
func (h History) Succeeded(id kurabe.SnapshotID) time.Time {
	b := h.find(id)
	var first time.Time
	for _, next := range h.Backups {
		if next.ID == id || !next.sound() || !h.replaces(next, b) {
			continue
		}
		from := next.UsableAt // until then, moments need the one before it
		if from.IsZero() {
			from = next.TakenAt
		}
		if first.IsZero() || from.Before(first) {
			first = from
		}
	}
	return first
}

// Overdue is how old the newest automated snapshot may be before another is made outside the
// window: the service or the database was down when it was open.
const Overdue = 36 * time.Hour

// logUnknown is how far the log may reach beyond a snapshot as long as no host has told
// of it: one that has just started may not have found it yet. Another snapshot would
// have been made by then.
const logUnknown = Overdue

// NeededSince is when the oldest snapshot was taken that moments may be restored from, where
// several hosts have some; zero where one has all, and counts for itself.
func (h History) NeededSince() (oldest time.Time) {
	hosts := map[kurabe.HostID]bool{}
	for _, b := range h.Live() {
		if b.TakenAt.IsZero() {
			continue
		}
		hosts[b.Host] = true
		if oldest.IsZero() || b.TakenAt.Before(oldest) {
			oldest = b.TakenAt
		}
	}
	if len(hosts) < 2 {
		return time.Time{}
	}
	return oldest
}

// Until is the last moment that can be restored from a snapshot whose instance is gone,
// zero of one that was never taken.
func (h History) Until(id kurabe.SnapshotID) time.Time {
	taken := h.find(id).TakenAt
	switch last := h.Log.Last().At; {
	case taken.IsZero():
		return taken
	case len(h.Log.Runs) == 0:
		return taken.Add(logUnknown)
	case last.After(taken):
		return last
	}
	return taken
}

func (h History) find(id kurabe.SnapshotID) Backup {
	for _, b := range h.Backups {
		if b.ID == id {
			return b
		}
	}
	return Backup{}
}

// replaces says whether a backup does what another does from some moment on.
func (h History) replaces(next, b Backup) bool {
	if b.TakenAt.IsZero() { // only the clock tells; one that went back tells of the other nothing
		return kurabe.AfterNow(b.CreatedAt, h.Now) || next.CreatedAt.After(b.CreatedAt) && !kurabe.AfterNow(next.CreatedAt, h.Now)
	}
	return (next.logged() || !b.logged()) && h.Log.SurelyFollows(next.facts(), b.facts())
}

// LastMade is when the last of them was asked for that is there or in the making; those
// that were so before the clock went back say nothing.
func (h History) LastMade() time.Time {
	var last time.Time
	for _, b := range h.Backups {
		if b.live() && b.CreatedAt.After(last) && !kurabe.AfterNow(b.CreatedAt, h.Now) {
			last = b.CreatedAt
		}
	}
	return last
}

// LastFailed is when the last of them was asked for that failed, if none was made since. One
// that was overtaken by a failover is tried again at once.
func (h History) LastFailed() time.Time {
	var last time.Time
	for _, b := range h.Backups {
		if b.State == kurabe.SnapshotFailed && !b.Moved && b.CreatedAt.After(last) && !kurabe.AfterNow(b.CreatedAt, h.Now) {
			last = b.CreatedAt
		}
	}
	if last.Before(h.LastMade()) {
		return time.Time{}
	}
	return last
}

// Covered says whether one is there or in the making from which the log that is being
// followed can go on.
func (h History) Covered() bool {
	return slices.ContainsFunc(h.Backups, func(b Backup) bool {
		return b.live() && (b.TakenAt.IsZero() || b.State == kurabe.SnapshotAvailable && h.Log.Holds(b.facts(), h.Now))
	})
}

// Untrusted says whether a fresh snapshot is to stand in for the newest one, whose
// verification found damage. When that of the one before it did too, another changes
// nothing: the damage is older than both, and the daily ones go on. live is not empty,
// oldest first.
func Untrusted(live []Backup) bool {
	newest := len(live) - 1
	return live[newest].Untrusted && (newest == 0 || !live[newest-1].Untrusted)
}
