package enginetest

import (
	"testing"

	"kurabe"
	"kurabe/internal/engine"
)

func TakeWith(t *testing.T, b *Bed, s *engine.Snapshots) (kurabe.SnapshotID, kurabe.SnapshotFacts, error) {
	a := b.assignment()
	f, err := s.Take(t.Context(), a, b.Want, nil)
	return a.Snapshot, f, err
}
