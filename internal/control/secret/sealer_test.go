package secret

import (
	"bytes"
	"errors"
	"testing"

	"kurabe"
)

func TestSealedValueOpensInItsPlaceOnly(t *testing.T) {
	const arn = "arn:aws:secretsmanager:r:1:secret:a-AAAAAA"
	s, other := NewSealer([32]byte{1}), NewSealer([32]byte{2})
	for _, v := range []Value{{Secret: "seeded"}, {Secret: "\x00\xff", Binary: true}} {
		sealed := s.Seal(arn, "v1", v)
		if bytes.Contains(sealed, []byte(v.Secret)) {
			t.Error("the value is not sealed")
		}
		if bytes.Equal(s.Seal(arn, "v1", v), sealed) {
			t.Error("two seals of one value are alike")
		}
		version := func(id kurabe.SecretVersionID, key string) kurabe.SecretVersion {
			return kurabe.SecretVersion{ID: id, Key: key}
		}
		if got, err := s.Open(arn, version("v1", s.Key), sealed); err != nil || got != v {
			t.Errorf("opened %v, %v", got == v, err)
		}
		damaged := bytes.Clone(sealed)
		damaged[len(damaged)-1]++
		for name, open := range map[string]func() (Value, error){
			"another version":      func() (Value, error) { return s.Open(arn, version("v2", s.Key), sealed) },
			"another secret":       func() (Value, error) { return s.Open(arn+"B", version("v1", s.Key), sealed) },
			"another key":          func() (Value, error) { return other.Open(arn, version("v1", s.Key), sealed) },
			"another key, renamed": func() (Value, error) { return other.Open(arn, version("v1", other.Key), sealed) },
			"damaged":              func() (Value, error) { return s.Open(arn, version("v1", s.Key), damaged) },
			"empty":                func() (Value, error) { return s.Open(arn, version("v1", s.Key), nil) },
		} {
			if got, err := open(); !errors.Is(err, ErrSealed) || kurabe.CodeOf(err) != kurabe.CodeSecretSealed || got != (Value{}) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
