package scram

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"kurabe/internal/logkey"
)

const (
	scramIterations = 4096 // what the server itself uses; clients do them all at each login
	scramSaltBytes  = 16
)

// form is checked (IsVerifier) before a verifier is sent: the server would take
// anything else for a password in the clear and keep it as such in memory.
var form = regexp.MustCompile(`^SCRAM-SHA-256\$[1-9]\d*:[A-Za-z0-9+/]+={0,2}\$[A-Za-z0-9+/]+={0,2}:[A-Za-z0-9+/]+={0,2}$`)

// IsVerifier says whether a text has the form of a verifier.
func IsVerifier(text string) bool { return form.MatchString(text) }

// Verifier is what the server keeps of a password, made here so that it never
// sees the password itself.
func Verifier(password logkey.Secret) (string, error) {
	var salt [scramSaltBytes]byte
	rand.Read(salt[:]) // never fails since Go 1.24
	return verifier(password, salt[:], scramIterations)
}

// verifier is RFC 5803 in PostgreSQL's spelling.
func verifier(password logkey.Secret, salt []byte, iterations int) (string, error) {
	k, err := Derive(password, salt, iterations)
	if err != nil {
		return "", err
	}
	b64 := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", iterations, b64(salt), b64(k.stored), b64(k.server)), nil
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// prepare is SASLprep (RFC 4013) as server and libpq apply it: a password that
// it would prohibit is used as it is. The API takes printable ASCII only, for
// which this is the identity; the rest keeps the function right on its own,
// but for code points that Unicode 3.2 did not have yet next to ones that
// compatibility changes.
func prepare(password string) string {
	mapped := strings.Map(func(r rune) rune {
		switch {
		case r < unicode.MaxASCII:
			return r
		case unicode.Is(unicode.Zs, r):
			return ' '
		case mappedToNothing(r):
			return -1
		}
		return r
	}, password)
	normal := norm.NFKC.String(mapped)
	for _, r := range normal {
		if unicode.IsControl(r) || unicode.Is(unicode.Co, r) || unicode.Is(unicode.Cs, r) || r == unicode.ReplacementChar {
			return password
		}
	}
	if normal == "" {
		return password
	}
	return normal
}

// mappedToNothing is table B.1 of RFC 3454.
func mappedToNothing(r rune) bool {
	switch r {
	case 0x00AD, 0x034F, 0x1806, 0x180B, 0x180C, 0x180D, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF:
		return true
	}
	return r >= 0xFE00 && r <= 0xFE0F
}
