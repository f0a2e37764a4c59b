package blob

import (
	"fmt"
	"io"
	"os"
	"strings"

	"filippo.io/age"

	"kurabe/internal/logkey"
)

// Key encrypts and decrypts a repository: the identities of an age key file. The
// first one encrypts, all of them are tried for reading, so that an old key can be
// kept below a new one. A Key prints as "***".
type Key struct {
	identities []age.Identity
	recipient  age.Recipient
}

// keyFileBytesMax: an identity is 74 bytes, a post-quantum one below 2 KiB.
const keyFileBytesMax = 64 << 10

// LoadKey reads a key file, as age-keygen makes it. Nobody but its
// owner may be able to read it.
func LoadKey(path string) (*Key, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("backup key: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("backup key: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("backup key: %s can be read by others than its owner: chmod 600 it", path)
	}
	text, err := io.ReadAll(io.LimitReader(file, keyFileBytesMax))
	if err != nil {
		return nil, fmt.Errorf("backup key: %w", err)
	}
	key, err := ParseKey(logkey.Secret(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return key, nil
}

// ParseKey reads the text of a key file. Its errors hold nothing of the text.
func ParseKey(text logkey.Secret) (*Key, error) {
	identities, err := age.ParseIdentities(strings.NewReader(text.Reveal()))
	if err != nil {
		return nil, fmt.Errorf("backup key: this is no age key file (lines AGE-SECRET-KEY-…, # comments; not protected by a passphrase)")
	}
	key := &Key{identities: identities}
	switch first := identities[0].(type) {
	case *age.X25519Identity:
		key.recipient = first.Recipient()
	case *age.HybridIdentity:
		key.recipient = first.Recipient()
	default:
		return nil, fmt.Errorf("backup key: the first identity is of a kind that cannot encrypt")
	}
	return key, nil
}

// Format keeps the key out of every log, whatever the verb.
func (k *Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "***") }

// MarshalJSON keeps it out of JSON too.
func (k *Key) MarshalJSON() ([]byte, error) { return []byte(`"***"`), nil }
