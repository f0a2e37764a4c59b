package scram

import (
	"strings"
	"testing"

	"kurabe/internal/logkey"
)

func TestVerifier(t *testing.T) {
	// RFC 7677's example: user "user", password "pencil".
	got, err := verifier("pencil", []byte("\x5b\x6d\x99\x68\x9d\x12\x35\x8e\xec\xa0\x4b\x14\x12\x36\xfa\x81"), scramIterations)
	if err != nil {
		t.Fatal(err)
	}
	const want = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !IsVerifier(got) {
		t.Error("its own form is not recognised")
	}
	a, _ := Verifier("pencil")
	b, _ := Verifier("pencil")
	if a == b {
		t.Error("two verifiers share a salt")
	}
	if _, err := Verifier(""); err == nil {
		t.Error("an empty password has a verifier")
	}
}

func TestPrepare(t *testing.T) {
	// The examples of RFC 4013, and PostgreSQL's rule for what it prohibits.
	cases := []struct{ name, in, want string }{
		{"soft hyphen goes", "I\u00adX", "IX"},
		{"ASCII stays", "user'\" \\", "user'\" \\"},
		{"capitals stay", "USER", "USER"},
		{"feminine ordinal", "\u00aa", "a"},
		{"roman nine", "\u2168", "IX"},
		{"wide letters", "ＡＢＣ", "ABC"},
		{"ideographic space", "a\u3000b", "a b"},
		{"control characters make it raw", "\u2168\u0007", "\u2168\u0007"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := prepare(c.in); got != c.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestVerifierForm(t *testing.T) {
	for _, bad := range []string{"", "plain", "md5a3556571e93b0d20722ba62be61e8c2d", "SCRAM-SHA-256$4096:YQ==$YQ==:YQ=='; DROP", "SCRAM-SHA-256$0:YQ==$YQ==:YQ=="} {
		if IsVerifier(bad) {
			t.Errorf("%q passes for a verifier", bad)
		}
	}
}

func FuzzVerifier(f *testing.F) {
	f.Add("pencil")
	f.Fuzz(func(t *testing.T, password string) {
		got, err := verifier(logkey.Secret(password), []byte("salt"), 1)
		if (err != nil) != (password == "") || (err == nil && !IsVerifier(got)) {
			t.Errorf("%q, %v", got, err)
		}
		if len(password) > 12 && strings.Contains(got, password) {
			t.Error("it shows the password")
		}
	})
}
