package blobtest

import (
	"testing"

	"filippo.io/age"

	"kurabe/internal/blob"
	"kurabe/internal/logkey"
)

// KeyText is the text of a new key file.
func KeyText(t testing.TB) logkey.Secret {
	t.Helper()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return logkey.Secret("# a key\n" + identity.String() + "\n")
}

// Key is a new key.
func Key(t testing.TB) *blob.Key {
	t.Helper()
	key, err := blob.ParseKey(KeyText(t))
	if err != nil {
		t.Fatal(err)
	}
	return key
}
