package control

import (
	"time"

	"kurabe"
)

// Protection is from when the data of an instance could be had back; a zero time says that
// there is nothing of the kind.
type Protection struct {
	Backup     time.Time // the moment that the newest backup shows
	Verified   time.Time // end of the newest good verification of one, by a restore
	Restorable time.Time // latest restorable time
}

// Protection looks at all snapshots of the instance, manual ones included.
func (c *Control) Protection(id kurabe.InstanceID) (p Protection) {
	for _, s := range c.View.SnapshotsOf(id) {
		if s.Status == nil {
			continue
		}
		if f := s.Status.Facts; s.Status.State == kurabe.SnapshotAvailable && f.TakenAt.After(p.Backup) {
			p.Backup = f.TakenAt
		}
		if v := s.Status.Verified; v != nil && v.OK && v.At.After(p.Verified) {
			p.Verified = v.At
		}
	}
	p.Restorable = c.restorable(id).Latest
	return p
}
