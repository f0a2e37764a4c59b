package secret

import (
	"crypto/rand"
	"math/big"
	"strings"

	"kurabe/internal/logkey"
)

const (
	lowercase   = "abcdefghijklmnopqrstuvwxyz"
	uppercase   = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	letters     = lowercase + uppercase
	digits      = "0123456789"
	punctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
)

// PasswordLengthMax is Secrets Manager's.
const PasswordLengthMax = 4096

// PasswordForm is the wish for a random password. The zero value but for Length has every type of
// character besides the space.
type PasswordForm struct {
	Length                                             int
	Exclude                                            string // characters
	NoNumbers, NoPunctuation, NoUppercase, NoLowercase bool
	Space                                              bool
	AnyOfTypes                                         bool // not one of each type, the space apart, at least
}

// types are the characters of a form, by type but for the space.
func (f PasswordForm) types() (types []string) {
	for _, t := range []struct {
		not  bool
		text string
	}{{f.NoLowercase, lowercase}, {f.NoUppercase, uppercase}, {f.NoNumbers, digits}, {f.NoPunctuation, punctuation}} {
		text := strings.Map(func(r rune) rune {
			if strings.ContainsRune(f.Exclude, r) {
				return -1
			}
			return r
		}, t.text)
		if !t.not && text != "" {
			types = append(types, text)
		}
	}
	return types
}

// RandomPassword returns a password of a form.
func RandomPassword(f PasswordForm) (logkey.Secret, error) {
	types := f.types()
	switch {
	case f.Length < 1 || f.Length > PasswordLengthMax:
		return "", invalid("Value '%d' at 'passwordLength' failed to satisfy constraint: Member must have value between 1 and %d", f.Length, PasswordLengthMax)
	case len(types) == 0:
		return "", invalid("The password can't be empty: every type of character is excluded.")
	case !f.AnyOfTypes && f.Length < len(types):
		return "", invalid("Password length is too short based on the required types.")
	}
	out := []byte{}
	if !f.AnyOfTypes {
		for _, t := range types {
			out = append(out, randomText(t, 1)...)
		}
	}
	all := strings.Join(types, "")
	if f.Space {
		all += " "
	}
	out = append(out, randomText(all, f.Length-len(out))...)
	for n := len(out) - 1; n > 0; n-- { // where the required ones are tells nothing
		at, err := rand.Int(rand.Reader, big.NewInt(int64(n+1)))
		if err != nil {
			return "", err
		}
		out[n], out[at.Int64()] = out[at.Int64()], out[n]
	}
	return logkey.Secret(out), nil
}
