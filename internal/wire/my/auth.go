package my

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha512"
	"crypto/subtle"
	"fmt"

	"filippo.io/edwards25519"
)

// The plugins by which clients and servers prove that they know a password.
const (
	NativePassword = "mysql_native_password"
	Ed25519        = "client_ed25519"
)

// Ed25519ScrambleBytes is the length of that plugin's random bytes.
const Ed25519ScrambleBytes = 32

// NewScramble fills s with random bytes that are no zeros.
func NewScramble(s []byte) {
	_, _ = rand.Read(s) // never fails
	for i := range s {
		s[i] = s[i]%127 + 1
	}
}

// Prove gives a client's answer to a scramble. One of an empty password is empty.
func Prove(plugin string, scramble []byte, password string) ([]byte, error) {
	switch {
	case plugin == NativePassword && password == "":
		return nil, nil
	case plugin == NativePassword && len(scramble) >= ScrambleBytes:
		return nativeProof(scramble[:ScrambleBytes], password), nil
	case plugin == Ed25519 && len(scramble) >= Ed25519ScrambleBytes:
		return ed25519Proof(scramble[:Ed25519ScrambleBytes], password)
	}
	return nil, fmt.Errorf("the authentication plugin %q is not supported", plugin)
}

// Verify says whether a client's answer to a scramble proves the password.
func Verify(plugin string, scramble, answer []byte, password string) bool {
	switch plugin {
	case NativePassword:
		if password == "" {
			return len(answer) == 0
		}
		return subtle.ConstantTimeCompare(answer, nativeProof(scramble, password)) == 1
	case Ed25519:
		_, public, err := ed25519Key(password)
		return err == nil && len(answer) == ed25519.SignatureSize && ed25519.Verify(public, scramble, answer)
	}
	return false
}

// nativeProof is SHA1(password) xor SHA1(scramble, SHA1(SHA1(password))).
func nativeProof(scramble []byte, password string) []byte {
	once := sha1.Sum([]byte(password))
	twice := sha1.Sum(once[:])
	h := sha1.New()
	h.Write(scramble)
	h.Write(twice[:])
	proof := h.Sum(nil)
	for i := range proof {
		proof[i] ^= once[i]
	}
	return proof
}

// ed25519Key gives the expanded private key, which MariaDB makes of the whole password
// instead of a seed of 32 bytes, and the public one. Hence crypto/ed25519 can verify but
// not sign.
func ed25519Key(password string) (expanded [64]byte, public ed25519.PublicKey, err error) {
	expanded = sha512.Sum512([]byte(password))
	s, err := edwards25519.NewScalar().SetBytesWithClamping(expanded[:32])
	if err != nil {
		return expanded, nil, fmt.Errorf("ed25519: %w", err)
	}
	return expanded, new(edwards25519.Point).ScalarBaseMult(s).Bytes(), nil
}

// ed25519Proof is a signature of the scramble, by RFC 8032 from the expanded key on.
func ed25519Proof(scramble []byte, password string) ([]byte, error) {
	expanded, public, err := ed25519Key(password)
	if err != nil {
		return nil, err
	}
	s, err := edwards25519.NewScalar().SetBytesWithClamping(expanded[:32])
	if err != nil {
		return nil, fmt.Errorf("ed25519: %w", err)
	}
	r, err := hashed(expanded[32:], scramble)
	if err != nil {
		return nil, err
	}
	commitment := new(edwards25519.Point).ScalarBaseMult(r).Bytes()
	k, err := hashed(commitment, public, scramble)
	if err != nil {
		return nil, err
	}
	return append(commitment, k.MultiplyAdd(k, s, r).Bytes()...), nil
}

func hashed(parts ...[]byte) (*edwards25519.Scalar, error) {
	h := sha512.New()
	for _, part := range parts {
		h.Write(part)
	}
	s, err := edwards25519.NewScalar().SetUniformBytes(h.Sum(nil))
	if err != nil {
		return nil, fmt.Errorf("ed25519: %w", err)
	}
	return s, nil
}
