package kurabe

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"strings"
	"time"
)

// SnapshotID is the immutable id of a snapshot ("snap-" and 26 letters and
// digits). Its folder on the host has this name, so a renamed, deleted and newly
// made snapshot of one name never meet.
type SnapshotID string

// NewSnapshotID returns a fresh random id with 128 bits of entropy.
func NewSnapshotID() SnapshotID {
	var b [16]byte
	rand.Read(b[:]) // never fails since Go 1.24
	return SnapshotID("snap-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:])))
}

// AutomatedSnapshotID is the id of the automated snapshot of an instance that is
// asked for at a moment: planning the same again asks for the same.
func AutomatedSnapshotID(id InstanceID, at time.Time) SnapshotID {
	sum := sha256.Sum256([]byte(string(id) + "\x00" + at.UTC().Format(time.RFC3339Nano)))
	return SnapshotID("snap-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16])))
}

// SnapshotKind is who asked for a snapshot, in RDS's words (SnapshotType).
type SnapshotKind string

// The kinds. The user deletes manual ones, the planner automated ones.
const (
	SnapshotManual    SnapshotKind = "manual"
	SnapshotAutomated SnapshotKind = "automated"
)

// SnapshotState is a snapshot's status, in RDS's words.
type SnapshotState string

// The states. Available means that the host has a complete, durable and
// consistent copy; nothing else is ever restored.
const (
	SnapshotCreating  SnapshotState = "creating"
	SnapshotCopying   SnapshotState = "copying"
	SnapshotAvailable SnapshotState = "available"
	SnapshotDeleting  SnapshotState = "deleting"
	SnapshotFailed    SnapshotState = "failed"
)

// SnapshotSource is what the instance was when the snapshot was asked for: all
// that a restore needs beside the files, because the instance may be gone.
type SnapshotSource struct {
	Instance       InstanceID       `json:"instance"`
	Name           string           `json:"name"`
	CreatedAt      time.Time        `json:"createdAt"` // when the instance became available
	Engine         EngineName       `json:"engine"`
	MasterUsername string           `json:"masterUsername"`
	Password       Password         `json:"password"` // a verifier
	DatabaseName   string           `json:"databaseName,omitempty"`
	Locale         string           `json:"locale"`
	Zone           string           `json:"zone,omitempty"`
	OptionGroup    string           `json:"optionGroup"`
	Settings       InstanceSettings `json:"settings"`
	Tags           []Tag            `json:"tags,omitempty"` // unless the snapshot has them itself
	// Cluster: it is a DB cluster, and the snapshot a cluster snapshot, whose name is one of those.
	Cluster bool `json:"cluster,omitempty"`
}

// SourceOf keeps of an instance what a restore needs beside the files.
func SourceOf(s *InstanceSpec, status InstanceStatus) SnapshotSource {
	settings := status.Applied
	if settings.Class == "" {
		settings = s.Now // nothing is in force yet
	}
	var tags []Tag
	if !s.CopyTagsToSnapshot {
		tags = s.Tags
	}
	return SnapshotSource{
		Instance: s.ID, Name: s.EffectiveName(status.AppliedNext), CreatedAt: status.AvailableAt, Engine: s.Engine,
		MasterUsername: s.MasterUsername, Password: s.Password, DatabaseName: s.DatabaseName, Locale: s.Locale, Zone: status.Zone,
		OptionGroup: s.OptionGroup, Settings: settings, Tags: tags, Cluster: s.Cluster,
	}
}

// SnapshotSpec is a snapshot that somebody asked for. The API writes those of
// users; the planner makes automated ones, and those alone. Revision rises with
// each write.
type SnapshotSpec struct {
	ID        SnapshotID     `json:"id"`
	Name      string         `json:"name"`
	Revision  int64          `json:"revision"`
	Kind      SnapshotKind   `json:"kind"`
	CreatedAt time.Time      `json:"createdAt"`
	Source    SnapshotSource `json:"source"`
	// CopyOf is the snapshot that this one is a copy of, "" when it is taken of
	// the instance itself; CopyOfName is that one's name at the time and
	// OriginalAt when the first of the chain was taken.
	CopyOf     SnapshotID `json:"copyOf,omitempty"`
	CopyOfName string     `json:"copyOfName,omitempty"`
	OriginalAt time.Time  `json:"originalAt,omitzero"`

	// Imported says that it was found complete on a host or in the repository of
	// backups, and is not to be taken of anything.
	Imported bool `json:"imported,omitempty"`

	// VerifySeq rises with each wish to have it verified: see Verification.
	VerifySeq int64 `json:"verifySeq,omitempty"`

	// GoneAs is the name that the instance had when it was deleted, where that is another than
	// in Source: by it its retained backups are found.
	GoneAs string `json:"goneAs,omitempty"`

	OptionGroup string    `json:"optionGroup"`
	Tags        []Tag     `json:"tags,omitempty"`
	Deleting    *Deletion `json:"deleting,omitempty"`
}

// Key is the name by which the snapshot is unique.
func (s *SnapshotSpec) Key() string { return NameKey(s.Name, s.Source.Cluster) }

// SnapshotMethod is how a host took a snapshot.
type SnapshotMethod string

// The methods. A clone shares its blocks with the source until either changes; a
// copy has its own.
const (
	SnapshotCloned SnapshotMethod = "clone"
	SnapshotCopied SnapshotMethod = "copy"
)

// SnapshotFacts are what a host knows of a snapshot that it holds.
type SnapshotFacts struct {
	Method        SnapshotMethod `json:"method,omitempty"`
	EngineVersion string         `json:"engineVersion,omitempty"`
	// TakenAt is the moment that the copy shows, by the host's clock: what was
	// acknowledged before it is in the snapshot.
	TakenAt time.Time `json:"takenAt,omitzero"`
	// UsableAt is from when on the instance's log can bring the copy to any moment.
	UsableAt time.Time `json:"usableAt,omitzero"`
	// MarkedAt is the moment from which on the marker in it must be; zero where none
	// was written, because no server ran.
	MarkedAt time.Time `json:"markedAt,omitzero"`
	// Position is the place in the instance's log that the copy shows, or one before
	// which everything acknowledged at TakenAt lies; zero where no log is kept.
	Position LogPosition `json:"position,omitzero"`
	// SizeBytes is the length of its files, OccupiedBytes what would be free if
	// it were deleted: blocks that it shares with nobody.
	SizeBytes     int64 `json:"sizeBytes"`
	OccupiedBytes int64 `json:"occupiedBytes"`
	// Percent is how much of SizeBytes has been copied, 100 when it is durable.
	Percent int `json:"percent"`
	// TakenFrom is the server whose files were copied: the one that wrote, or a standby of it.
	// Empty of a snapshot from before this was noted.
	TakenFrom InstanceID `json:"takenFrom,omitempty"`
	// StandbySkipped is why it was taken from the primary although a standby was there to be
	// copied, "" where none was, or where it was.
	StandbySkipped string `json:"instead,omitempty"`
	// Archived says that it is complete in the repository of backups as well.
	Archived bool `json:"archived,omitempty"`
	// Host is whose log the position is in: see SnapshotStatus.Placed.
	Host HostID `json:"-"`
}

// SnapshotStatus is what users are told of a snapshot. Only the planner writes it.
type SnapshotStatus struct {
	ID           SnapshotID    `json:"id"`
	SpecRevision int64         `json:"specRevision"`
	State        SnapshotState `json:"state"`
	Reason       string        `json:"reason,omitempty"`
	Since        time.Time     `json:"since"`
	Host         HostID        `json:"host,omitempty"`
	Facts        SnapshotFacts `json:"facts"`
	// StandbySkipped is why a standby on another host than the primary's was asked for it in vain, "" where
	// none was.
	StandbySkipped string `json:"instead,omitempty"`
	// SeenWait is what was told of why it is not taken yet.
	SeenWait string `json:"seenWait,omitempty"`
	// Verified is the newest verification, nil before the first one; Verifying says
	// how far the one under way is, "" for none.
	Verified  *Verification `json:"verified,omitempty"`
	Verifying string        `json:"verifying,omitempty"`
}

// Placed is the facts with the host that has the snapshot, to be compared with a log that
// several hosts have parts of.
func (s *SnapshotStatus) Placed() SnapshotFacts {
	f := s.Facts
	f.Host = s.Host
	return f
}

// SnapshotGoal is what a host must make of a snapshot.
type SnapshotGoal string

// The goals. As with instances, absence is explicit.
const (
	SnapshotPresent SnapshotGoal = "present"
	SnapshotAbsent  SnapshotGoal = "absent"
)

// SnapshotAssignment is what one host must do for one snapshot. Only the planner
// writes it.
type SnapshotAssignment struct {
	Generation Generation   `json:"generation"`
	Host       HostID       `json:"host"`
	Snapshot   SnapshotID   `json:"snapshot"`
	Name       string       `json:"name"`
	Goal       SnapshotGoal `json:"goal"`
	Kind       SnapshotKind `json:"kind,omitempty"`
	// Of is the instance to copy, From the snapshot to copy; one of them is set, none
	// for an imported one, which must be there.
	Of   InstanceID `json:"of,omitempty"`
	From SnapshotID `json:"from,omitempty"`
	// Standby is the server to copy where the writer of Of is on another host: a follower of it
	// in Epoch. "" where the writer itself is here.
	Standby InstanceID `json:"standby,omitempty"`
	Epoch   Epoch      `json:"epoch,omitempty"`
	// Verify is the number of the newest verification that is wanted; the host does it
	// when it has done none of that number.
	Verify int64 `json:"verify,omitempty"`
	// Source and Tags go into the folder of the snapshot, so that it can be restored
	// by a service that has lost its records.
	Source SnapshotSource `json:"source"`
	Tags   []Tag          `json:"tags,omitempty"`
}

// SnapshotReport is what a host sees of a snapshot. Only its agent writes it.
type SnapshotReport struct {
	Host       HostID        `json:"host"`
	Snapshot   SnapshotID    `json:"snapshot"`
	Generation Generation    `json:"generation"`
	Done       bool          `json:"done"`
	Absent     bool          `json:"absent"`
	Failure    *Failure      `json:"failure,omitempty"`
	Facts      SnapshotFacts `json:"facts"`
	// Verified and Verifying are those of SnapshotStatus.
	Verified  *Verification `json:"verified,omitempty"`
	Verifying string        `json:"verifying,omitempty"`
}

// Origin is where the data of a new instance comes from; without one it is the
// template of its engine.
type Origin struct {
	Snapshot SnapshotID `json:"snapshot"`
	Name     string     `json:"name"` // of the snapshot at that time
	// Point is the moment to which the snapshot is then brought; nil: to none.
	Point *RestorePoint `json:"point,omitempty"`
}

// Bounds of what a verification reports: the first problems say what to do, and a
// record has to stay small.
const (
	VerifyProblemsMax     = 20
	VerifyProblemCharsMax = 500
)

// Verification is what came out of restoring a snapshot beside everything else: its
// files were compared with their sums, a server recovered a copy of them, and the
// engine's own tools looked for damage in it.
type Verification struct {
	Seq int64     `json:"seq"` // of the assignment that asked for it
	At  time.Time `json:"at"`  // when it ended
	// OK says that no damage was found; Problems otherwise say which, at most
	// VerifyProblemsMax of VerifyProblemCharsMax characters.
	OK       bool     `json:"ok"`
	Problems []string `json:"problems,omitempty"`
	// Notes say what was not looked at, and why; within the same bounds.
	Notes []string `json:"notes,omitempty"`
	// Marker is the time that the service had written into the database last; zero
	// when there is none.
	Marker time.Time `json:"marker,omitzero"`
	// Until is the moment to which the log was replayed as well, zero without a log.
	Until    time.Time     `json:"until,omitzero"`
	Duration time.Duration `json:"duration"` // nanoseconds
}

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
