package kurabe

import (
	"slices"
	"strings"
	"time"
)

// SecretID names a secret for as long as it exists; another one that takes its name later has
// another id.
type SecretID string

// SecretVersionID names a version of a secret: the token of the request that made it.
type SecretVersionID string

// The stages that the service moves by itself, by Secrets Manager's names.
const (
	StageCurrent  = "AWSCURRENT"
	StagePrevious = "AWSPREVIOUS"
	StagePending  = "AWSPENDING"
)

// SecretNameMax bounds the name of a secret, in bytes.
const SecretNameMax = 512

// SecretVersionsMax bounds the versions of a secret: from there on the oldest without a stage is
// removed for a new one.
const SecretVersionsMax = 100

// Secret is all of a secret but the values of its versions, which are
// sealed bytes in the store.
type Secret struct {
	ID          SecretID `json:"id"`
	Name        string   `json:"name"`
	ARN         string   `json:"arn"`
	Description string   `json:"description,omitempty"`
	KMSKey      string   `json:"kmsKey,omitempty"` // as the user named the default key, "": not at all
	Tags        []Tag    `json:"tags,omitempty"`

	CreatedAt  time.Time `json:"createdAt"`
	ChangedAt  time.Time `json:"changedAt"`
	AccessedAt time.Time `json:"accessedAt,omitzero"` // a day
	// DeletedAt is when its deletion was asked for, DeleteAfter when it is due.
	DeletedAt   time.Time `json:"deletedAt,omitzero"`
	DeleteAfter time.Time `json:"deleteAfter,omitzero"`

	Versions []SecretVersion `json:"versions,omitempty"` // oldest first
	// Master is set of a secret that has the password of a database's master user, which the
	// service rotates and users do not change.
	Master *MasterSecret `json:"master,omitempty"`
}

// SecretVersion is a value of a secret. The value never changes.
type SecretVersion struct {
	ID         SecretVersionID `json:"id"`
	Stages     []string        `json:"stages,omitempty"` // none: it is deprecated
	CreatedAt  time.Time       `json:"createdAt"`
	AccessedAt time.Time       `json:"accessedAt,omitzero"` // a day
	Bytes      int             `json:"bytes"`               // of the sealed value
	Key        string          `json:"key"`                 // names the key that it is sealed with
}

// MasterSecret is the part of a secret that belongs to a database.
type MasterSecret struct {
	Instance InstanceID `json:"instance"`
	// Seq is that of the Password which the newest version has. While the database has an
	// earlier one, that version waits.
	Seq  int64 `json:"seq"`
	Days int   `json:"days"` // after which it is rotated
	// RotatedAt is when the current version became that, NextAt when the next one is made.
	RotatedAt time.Time `json:"rotatedAt,omitzero"`
	NextAt    time.Time `json:"nextAt"`
}

// MasterRotationDays is how long a password lasts that the service keeps, as on RDS.
const MasterRotationDays = 7

// MasterSecretStatus is RDS's word for what is going on with the password of a master user.
func (s Secret) MasterSecretStatus(now time.Time) string {
	_, pending := s.Staged(StagePending)
	switch {
	case pending:
		return "rotating"
	case s.Master.RotatedAt.IsZero():
		return "creating"
	case now.Sub(s.Master.NextAt) > masterOverdue:
		return "impaired" // it can be used, and not be rotated
	}
	return "active"
}

// masterOverdue is how late a rotation may be, while its database is stopped or busy.
const masterOverdue = 24 * time.Hour

// SecretKey is the name of a secret as one segment of a key: names have slashes and no colons.
func SecretKey(name string) string { return strings.ReplaceAll(name, "/", ":") }

// Version returns a version by its id.
func (s Secret) Version(id SecretVersionID) (SecretVersion, bool) {
	return s.version(func(v SecretVersion) bool { return v.ID == id })
}

// Staged returns the version that has a stage.
func (s Secret) Staged(stage string) (SecretVersion, bool) {
	return s.version(func(v SecretVersion) bool { return slices.Contains(v.Stages, stage) })
}

func (s Secret) version(is func(SecretVersion) bool) (SecretVersion, bool) {
	if at := slices.IndexFunc(s.Versions, is); at >= 0 {
		return s.Versions[at], true
	}
	return SecretVersion{}, false
}

// MoveStage returns the secret with a stage at a version, "" for none, and at no other one. The
// version that AWSCURRENT leaves for another one gets AWSPREVIOUS.
func (s Secret) MoveStage(stage string, to SecretVersionID) Secret {
	from, had := s.Staged(stage)
	s = s.restage(stage, to)
	if stage == StageCurrent && had && from.ID != to && to != "" {
		s = s.restage(StagePrevious, from.ID)
	}
	return s
}

// restage moves one stage. The versions are copied: readers share the old ones.
func (s Secret) restage(stage string, to SecretVersionID) Secret {
	s.Versions = slices.Clone(s.Versions)
	for n := range s.Versions {
		v := &s.Versions[n]
		has := slices.Contains(v.Stages, stage)
		switch {
		case v.ID == to && !has:
			v.Stages = append(slices.Clone(v.Stages), stage)
		case v.ID != to && has:
			v.Stages = slices.DeleteFunc(slices.Clone(v.Stages), func(other string) bool { return other == stage })
		}
	}
	return s
}

// AddVersion returns the secret with a new version that has no stage yet, and the versions that
// made room for it. It says false when every version has a stage and there is no room.
func (s Secret) AddVersion(v SecretVersion) (with Secret, removed []SecretVersionID, ok bool) {
	s.Versions = append(slices.Clone(s.Versions), v)
	for len(s.Versions) > SecretVersionsMax {
		at := slices.IndexFunc(s.Versions, func(old SecretVersion) bool { return len(old.Stages) == 0 && old.ID != v.ID })
		if at < 0 {
			return s, nil, false
		}
		removed = append(removed, s.Versions[at].ID)
		s.Versions = slices.Delete(s.Versions, at, at+1)
	}
	return s, removed, true
}
