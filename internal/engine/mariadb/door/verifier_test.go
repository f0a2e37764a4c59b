package door

import (
	"testing"

	"kurabe/internal/logkey"
)

func TestVerifier(t *testing.T) {
	// What SELECT PASSWORD(…) of a server answers.
	cases := map[logkey.Secret]string{
		"password": "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19",
		"x":        "*B69027D44F6E5EDC07F1AEAD1477967B16F28227",
	}
	for password, want := range cases {
		got, err := Verifier(password)
		if err != nil || got != want || !VerifierForm.MatchString(got) {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
	if _, err := Verifier(""); err == nil {
		t.Error("an empty password would let everybody in")
	}
}
