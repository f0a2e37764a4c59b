package door

import (
	"crypto/sha1"
	"encoding/hex"
	"regexp"
	"strings"

	"kurabe"
	"kurabe/internal/logkey"
)

// NativePlugin is the one authentication that every client of RDS for MariaDB
// speaks.
const NativePlugin = "mysql_native_password"

var VerifierForm = regexp.MustCompile(`^\*[0-9A-F]{40}$`)

// Verifier is engine.Verifier: a star and the hexadecimal SHA-1 of the SHA-1, as
// mysql_native_password keeps it. It has no salt; TLS keeps it off the wire, and
// the password cannot be sent with it alone.
func Verifier(password logkey.Secret) (string, error) {
	if password.Reveal() == "" {
		// The server takes an empty one for "no password needed".
		return "", kurabe.Errorf(kurabe.CodeInvalidParameterValue, "the password is empty")
	}
	first := sha1.Sum([]byte(password.Reveal()))
	second := sha1.Sum(first[:])
	return "*" + strings.ToUpper(hex.EncodeToString(second[:])), nil
}
