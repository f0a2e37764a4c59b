package target

import (
	"crypto/rand"
	"encoding/hex"

	"kurabe/lab/owner"
)

// The beginnings of every name that the lab gives.
const (
	namePrefix     = owner.Prefix // of the RDS API and of folders
	databasePrefix = "kurabe_lab_"
)

// newID names what one target creates: unlike any other's.
func newID() string {
	var b [5]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// password is for a server of ours: 24 of 62 letters are 142 bits.
func password() string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	const length = 24
	var out []byte
	for len(out) < length {
		var b [64]byte
		rand.Read(b[:]) // never fails
		for _, c := range b {
			// Bytes from 248 on would prefer the first letters.
			if int(c) < 256/len(letters)*len(letters) && len(out) < length {
				out = append(out, letters[int(c)%len(letters)])
			}
		}
	}
	return string(out)
}
