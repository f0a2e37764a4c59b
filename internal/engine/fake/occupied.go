package fake

import (
	"context"

	"kurabe"
)

// Occupied is what the folder of a snapshot is scripted to occupy, 0 without one.
func (s *Snapshots) Occupied(_ context.Context, id kurabe.SnapshotID) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.occupiedLooks++
	f := s.folders[id]
	if f == nil || !f.complete {
		return 0, nil
	}
	return f.facts.OccupiedBytes + f.gained, nil
}

// Gain has a snapshot come to own more bytes, or fewer, than when it was taken: its
// source was written to.
func (s *Snapshots) Gain(id kurabe.SnapshotID, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.folders[id]; f != nil {
		f.gained += bytes
	}
}

// OccupiedLooks counts the calls of Occupied.
func (s *Snapshots) OccupiedLooks() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.occupiedLooks
}
