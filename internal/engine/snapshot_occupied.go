package engine

import (
	"context"

	"kurabe"
	"kurabe/internal/volume"
)

// occupiedShare: a look at what a snapshot occupies takes a twentieth of one core, and
// of the disk's time where the file system has to read its extents.
const occupiedShare = 20

// Occupied is what removing a snapshot would free by now, in bytes, 0 for one that is
// in the archive only: a clone comes to own the blocks that its source no longer has,
// and shares them with what is restored from it. It looks at each extent, slowly.
func (s *Snapshots) Occupied(ctx context.Context, id kurabe.SnapshotID) (int64, error) {
	if s.onlyArchived(id) {
		return 0, nil
	}
	return volume.OwnBytesSlowly(ctx, s.store.Path(id), occupiedShare)
}
