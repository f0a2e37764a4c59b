package kurabe

import "time"

// SnapshotKnown is what the service knows of a snapshot beyond RDS's own members. It is no
// tag: a tool that declares the tags of a resource would fight with the service about it.
type SnapshotKnown struct {
	Name     string        `json:"name"`
	Instance string        `json:"instance"` // the name of what it is of, when it was taken
	Cluster  bool          `json:"cluster,omitempty"`
	Kind     SnapshotKind  `json:"kind"`
	State    SnapshotState `json:"state"`
	// Method and the sizes are zero until the snapshot was taken, which Taken says.
	Taken         bool           `json:"taken"`
	Method        SnapshotMethod `json:"method,omitempty"`
	SizeBytes     int64          `json:"sizeBytes"`
	OccupiedBytes int64          `json:"occupiedBytes"`
	// VerifiedAt is when the newest verification ended, if it found no damage; DamagedAt is
	// when the newest verification or restore met damage. One of them is zero.
	VerifiedAt time.Time `json:"verifiedAt,omitzero"`
	DamagedAt  time.Time `json:"damagedAt,omitzero"`
	Problems   []string  `json:"problems,omitempty"`
}
