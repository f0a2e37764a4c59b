package hostlink

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"strings"

	"kurabe/internal/logkey"
	"kurabe/internal/pki"
)

// Token lets one host in. It names the authority too, so that the host gives the secret
// to nobody else.
type Token struct {
	ID        string
	Secret    logkey.Secret
	Authority string // pki.CA.Digest
}

const tokenPrefix = "kurabe-join"

// NewToken makes a token with 128 bits of chance.
func NewToken(authority string) Token {
	var id [4]byte
	var secret [16]byte
	rand.Read(id[:])     // never fails
	rand.Read(secret[:]) // never fails
	return Token{hex.EncodeToString(id[:]), logkey.Secret(hex.EncodeToString(secret[:])), authority}
}

// SecretHash is kept of a token's secret.
func SecretHash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// Text is the token as a person carries it.
func (t Token) Text() string {
	return strings.Join([]string{tokenPrefix, t.ID, t.Secret.Reveal(), t.Authority}, ".")
}

// ParseToken reads a token.
func ParseToken(text string) (Token, error) {
	f := strings.Split(strings.TrimSpace(text), ".")
	if len(f) != 4 || f[0] != tokenPrefix {
		return Token{}, errors.New("invalid join token; create one with kurabe hosts token on a machine of the service")
	}
	for n, digits := range []int{8, 32, 64} {
		if b, err := hex.DecodeString(f[n+1]); err != nil || len(b)*2 != digits {
			return Token{}, errors.New("the join token is incomplete or damaged: copy all of it")
		}
	}
	return Token{f[1], logkey.Secret(f[2]), f[3]}, nil
}

// Join asks the service at HOST:PORT to let a host in. It returns the answer and the
// authority's certificate in PEM. ErrRefused when the token is not good, or the host not
// welcome.
func Join(ctx context.Context, server string, t Token, q JoinRequest) (JoinAnswer, []byte, error) {
	var rootPEM []byte
	client := clientFor(func(chain []*x509.Certificate) error {
		roots, root, err := pki.RootByDigest(chain, t.Authority)
		if err != nil {
			return err
		}
		rootPEM = root
		_, err = pki.VerifyParty(chain, roots, pki.PartyServer)
		return err
	}, func() *tls.Certificate { return nil }, nil)
	defer client.CloseIdleConnections()
	q.TokenID, q.Secret = t.ID, t.Secret.Reveal()
	var out JoinAnswer
	if err := post(ctx, client, server, joinPath, "", q, &out); err != nil {
		return JoinAnswer{}, nil, err
	}
	return out, rootPEM, nil
}
