package secret

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"kurabe"
	"kurabe/internal/logkey"
	"kurabe/internal/must"
)

// Value is the value of a version of a secret: a text, or bytes.
type Value struct {
	Secret logkey.Secret
	Binary bool
}

// Sealer seals and opens values with the key of a service.
type Sealer struct {
	Key  string // its name, which tells nothing of it
	aead cipher.AEAD
}

// NewSealer returns the sealer of a key.
func NewSealer(key [32]byte) Sealer {
	block, err := aes.NewCipher(key[:])
	must.True(err == nil, "AES has keys of 32 bytes")
	// A random nonce of 96 bits: safe for 2^32 values, far more than are ever sealed.
	aead, err := cipher.NewGCMWithRandomNonce(block)
	must.True(err == nil, "GCM is for AES")
	sum := sha256.Sum256(key[:])
	return Sealer{hex.EncodeToString(sum[:8]), aead}
}

// The first byte of a value says what it is.
const (
	formText   = 't'
	formBinary = 'b'
)

// place is what a sealed value is bound to: in another secret or version it does not open.
func place(arn string, version kurabe.SecretVersionID) []byte {
	return []byte(arn + "\n" + string(version))
}

// Seal seals the value of a version of the secret with that ARN.
func (s Sealer) Seal(arn string, version kurabe.SecretVersionID, v Value) []byte {
	form := byte(formText)
	if v.Binary {
		form = formBinary
	}
	return s.aead.Seal(nil, nil, append([]byte{form}, v.Secret.Reveal()...), place(arn, version))
}

// ErrSealed is the cause where a value was sealed by another service, or was changed.
var ErrSealed = errors.New("sealed with another key, or damaged")

// Open opens the value of a version of the secret with that ARN.
func (s Sealer) Open(arn string, v kurabe.SecretVersion, sealed []byte) (Value, error) {
	if v.Key != s.Key {
		return Value{}, &kurabe.Error{Code: kurabe.CodeSecretSealed, Err: ErrSealed,
			Message: "Secrets Manager can't decrypt the protected secret text using the provided KMS key: it was sealed with the key " + v.Key + ", and this server has the key " + s.Key + ". " + WordsOtherKey}
	}
	plain, err := s.aead.Open(nil, nil, sealed, place(arn, v.ID))
	if err != nil || len(plain) == 0 {
		return Value{}, &kurabe.Error{Code: kurabe.CodeSecretSealed, Err: errors.Join(ErrSealed, err),
			Message: "Secrets Manager can't decrypt the protected secret text: its record in the state store is damaged, or belongs to another secret"}
	}
	return Value{Secret: logkey.Secret(plain[1:]), Binary: plain[0] == formBinary}, nil
}

// WordsOtherKey says what to do where the state was sealed with another key.
const WordsOtherKey = "The key comes from DATA/pki/ca.key: put the copy of DATA/pki back that belongs to the restored state, or store new values"
