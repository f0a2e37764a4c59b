package door

import (
	"crypto/rand"
	"encoding/hex"
)

// RandomHex is a password, or the end of a name that no user's is taken for.
func RandomHex() string {
	var b [16]byte
	rand.Read(b[:]) // never fails since Go 1.24
	return hex.EncodeToString(b[:])
}
