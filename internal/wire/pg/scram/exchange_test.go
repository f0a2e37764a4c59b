package scram

import (
	"errors"
	"strings"
	"testing"

	"kurabe/internal/logkey"
)

// exchange runs both sides, and returns the errors of each.
func exchange(password logkey.Secret, s *Server, change func([]byte) []byte) (server, client error) {
	c := Client{Derive: func(salt []byte, iterations int) (*Keys, error) { return Derive(password, salt, iterations) }}
	first, err := s.First(Mechanism, c.First())
	if err != nil {
		return err, nil
	}
	final, err := c.Final(first)
	if err != nil {
		return nil, err
	}
	last, err := s.Final(change(final))
	if err != nil {
		return err, nil
	}
	return nil, c.Verify(last)
}

func TestExchange(t *testing.T) {
	keys, err := NewKeys("pencil")
	if err != nil {
		t.Fatal(err)
	}
	same := func(b []byte) []byte { return b }
	for i := range 3 { // the same keys serve again
		if server, client := exchange("pencil", &Server{Keys: keys}, same); server != nil || client != nil {
			t.Errorf("login %d: %v, %v", i, server, client)
		}
	}
	cases := []struct {
		name     string
		password logkey.Secret
		keys     *Keys
		change   func([]byte) []byte
		refused  bool
	}{
		{"wrong password", "pen", keys, same, true},
		{"unknown user", "pencil", Unknown([]byte("secret"), "nobody"), same, true},
		{"another nonce", "pencil", keys, func(b []byte) []byte { return []byte(strings.Replace(string(b), "r=", "r=x", 1)) }, false},
		{"another binding", "pencil", keys, func(b []byte) []byte { return []byte(strings.Replace(string(b), "c=biws", "c=eSws", 1)) }, false},
		{"no proof", "pencil", keys, func(b []byte) []byte { return b[:len(b)-44] }, false},
		{"too long", "pencil", keys, func(b []byte) []byte { return append(b, make([]byte, MessageMax)...) }, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			server, _ := exchange(c.password, &Server{Keys: c.keys}, c.change)
			if server == nil || errors.Is(server, ErrRefused) != c.refused {
				t.Errorf("got %v", server)
			}
		})
	}
}

func TestUnknownLooksLikeAUser(t *testing.T) {
	a, again, b := Unknown([]byte("s"), "a"), Unknown([]byte("s"), "a"), Unknown([]byte("s"), "b")
	if string(a.Salt) != string(again.Salt) || string(a.Salt) == string(b.Salt) || len(a.Salt) != scramSaltBytes || a.Iterations != scramIterations {
		t.Error("its salt gives it away")
	}
}

// FuzzServer: no message of a client makes it panic or agree.
func FuzzServer(f *testing.F) {
	keys, err := NewKeys("pencil")
	if err != nil {
		f.Fatal(err)
	}
	f.Add("n,,n=,r=abc", "c=biws,r=abc,p=AAAA")
	f.Fuzz(func(t *testing.T, first, final string) {
		s := Server{Keys: keys}
		if _, err := s.First(Mechanism, []byte(first)); err != nil {
			return
		}
		if _, err := s.Final([]byte(final)); err == nil {
			t.Errorf("%q and %q are a login", first, final)
		}
	})
}
