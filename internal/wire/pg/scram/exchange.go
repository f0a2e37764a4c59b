package scram

import (
	"bytes"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"kurabe/internal/logkey"
)

// The mechanisms as SASL names them.
const (
	Mechanism        = "SCRAM-SHA-256"
	MechanismBinding = "SCRAM-SHA-256-PLUS"
)

// MessageMax bounds what either side sends, in bytes: PostgreSQL's is about 150.
const MessageMax = 2048

const (
	nonceBytes    = 18 // as PostgreSQL's
	iterationsMax = 1 << 20
	bindingHeader = "p=tls-server-end-point"
)

// ErrRefused says that the other side does not know the password.
var ErrRefused = errors.New("the password does not match")

var errMalformed = errors.New("malformed SCRAM message")

// Keys are what an exchange needs of a password: deriving them takes a millisecond, using them
// a few microseconds.
type Keys struct {
	Salt       []byte
	Iterations int

	client, stored, server []byte
}

// Derive gives the keys of a password.
func Derive(password logkey.Secret, salt []byte, iterations int) (*Keys, error) {
	if password == "" {
		return nil, errors.New("an empty password cannot be used to log in")
	}
	salted, err := pbkdf2.Key(sha256.New, prepare(password.Reveal()), salt, iterations, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("derive key: %w", err)
	}
	k := &Keys{Salt: salt, Iterations: iterations, client: mac(salted, "Client Key"), server: mac(salted, "Server Key")}
	stored := sha256.Sum256(k.client)
	k.stored = stored[:]
	return k, nil
}

// NewKeys derives the keys of a password with a salt of its own.
func NewKeys(password logkey.Secret) (*Keys, error) {
	salt := make([]byte, scramSaltBytes)
	rand.Read(salt)
	return Derive(password, salt, scramIterations)
}

// Unknown gives keys that no password matches, for a user who does not exist: the same name is
// shown the same salt each time, as one that exists.
func Unknown(secret []byte, name string) *Keys {
	random := mac(secret, name)
	return &Keys{Salt: random[:scramSaltBytes], Iterations: scramIterations, stored: mac(secret, "stored "+name), server: mac(secret, "server "+name)}
}

// Server is the side of an exchange that checks.
type Server struct {
	Keys *Keys
	// Binding is the hash of the certificate that the client has been shown, nil if only
	// Mechanism is offered.
	Binding []byte

	header string // of the client's first message, to be repeated in its last
	nonce  string
	signed []byte // the messages so far
}

// First answers the client's first message. mechanism is the one that it has chosen.
func (s *Server) First(mechanism string, message []byte) ([]byte, error) {
	if len(message) > MessageMax {
		return nil, errMalformed
	}
	parts := strings.SplitN(string(message), ",", 3)
	if len(parts) != 3 || parts[1] != "" {
		return nil, errMalformed
	}
	switch flag := parts[0]; {
	case mechanism == MechanismBinding && s.Binding != nil && flag == bindingHeader:
	case mechanism == Mechanism && flag == "n":
	case mechanism == Mechanism && flag == "y" && s.Binding == nil:
	case mechanism == Mechanism && flag == "y":
		return nil, errors.New("the client supports channel binding but thinks that the server does not")
	default:
		return nil, errMalformed
	}
	s.header = parts[0] + ",,"
	bare := parts[2]
	_, after, found := strings.Cut(bare, ",r=")
	nonce, _, _ := strings.Cut(after, ",")
	if !strings.HasPrefix(bare, "n=") || !found || nonce == "" {
		return nil, errMalformed
	}
	s.nonce = nonce + newNonce()
	first := fmt.Sprintf("r=%s,s=%s,i=%d", s.nonce, base64.StdEncoding.EncodeToString(s.Keys.Salt), s.Keys.Iterations)
	s.signed = append(append([]byte(bare), ','), first...)
	return []byte(first), nil
}

// Final checks the client's proof and answers with the server's. It returns ErrRefused for a
// wrong password.
func (s *Server) Final(message []byte) ([]byte, error) {
	if len(message) > MessageMax {
		return nil, errMalformed
	}
	without, proofText, found := bytes.Cut(message, []byte(",p="))
	proof, err := base64.StdEncoding.DecodeString(string(proofText))
	if !found || err != nil || len(proof) != sha256.Size {
		return nil, errMalformed
	}
	want := s.header
	if strings.HasPrefix(want, bindingHeader) {
		want += string(s.Binding)
	}
	if string(without) != "c="+base64.StdEncoding.EncodeToString([]byte(want))+",r="+s.nonce {
		return nil, errMalformed
	}
	s.signed = append(append(s.signed, ','), without...)
	key := mac(s.Keys.stored, string(s.signed))
	subtle.XORBytes(key, key, proof)
	stored := sha256.Sum256(key)
	if !hmac.Equal(stored[:], s.Keys.stored) {
		return nil, ErrRefused
	}
	return []byte("v=" + base64.StdEncoding.EncodeToString(mac(s.Keys.server, string(s.signed)))), nil
}

// Client is the side of an exchange that proves.
type Client struct {
	// Derive gives the keys, which its caller may keep for the next exchange.
	Derive func(salt []byte, iterations int) (*Keys, error)

	bare   string
	keys   *Keys
	signed string
}

// First is the first message. It asks for no channel binding: the certificate is verified.
func (c *Client) First() []byte {
	c.bare = "n=,r=" + newNonce()
	return []byte("n,," + c.bare)
}

// Final answers the server's first message.
func (c *Client) Final(message []byte) ([]byte, error) {
	fields := strings.Split(string(message), ",")
	if len(message) > MessageMax || len(fields) < 3 || !strings.HasPrefix(fields[0], c.bare[len("n=,"):]) || !strings.HasPrefix(fields[1], "s=") || !strings.HasPrefix(fields[2], "i=") {
		return nil, errMalformed
	}
	salt, err := base64.StdEncoding.DecodeString(fields[1][2:])
	if err != nil {
		return nil, errMalformed
	}
	iterations, err := strconv.Atoi(fields[2][2:])
	if err != nil || iterations < 1 || iterations > iterationsMax {
		return nil, errMalformed
	}
	if c.keys, err = c.Derive(salt, iterations); err != nil {
		return nil, err
	}
	without := "c=biws," + fields[0] // "n,,"
	c.signed = c.bare + "," + string(message) + "," + without
	proof := mac(c.keys.stored, c.signed)
	subtle.XORBytes(proof, proof, c.keys.client)
	return []byte(without + ",p=" + base64.StdEncoding.EncodeToString(proof)), nil
}

// Verify checks the server's last message: ErrRefused says that it does not know the password.
func (c *Client) Verify(message []byte) error {
	if c.keys == nil || string(message) != "v="+base64.StdEncoding.EncodeToString(mac(c.keys.server, c.signed)) {
		return ErrRefused
	}
	return nil
}

func newNonce() string {
	var b [nonceBytes]byte
	rand.Read(b[:])
	return base64.StdEncoding.EncodeToString(b[:])
}
