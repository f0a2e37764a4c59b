package kurabe

import (
	"crypto/rand"
	"encoding/base32"
)

// InstanceID is the immutable id of an instance, AWS's DbiResourceId
// ("db-" and 26 capital letters and digits). A name may change; the id never.
type InstanceID string

// HostID names a machine that runs engines.
type HostID string

// Generation numbers the assignments of one instance. An agent refuses a lower
// one, and the same one with other content.
type Generation int64

// NewInstanceID returns a fresh random id with 128 bits of entropy.
func NewInstanceID() InstanceID {
	var b [16]byte
	rand.Read(b[:]) // never fails since Go 1.24
	return InstanceID("db-" + base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))
}
