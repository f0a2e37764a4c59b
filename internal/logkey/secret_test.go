package logkey

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

const seeded = "hunter2-Correct-Horse"

type login struct {
	User     string
	Password Secret
	Keys     map[string]Secret
	Next     *Secret
}

func sample() login {
	s := Secret(seeded)
	return login{User: "app", Password: s, Keys: map[string]Secret{"a": s}, Next: &s}
}

// leaks reports if out shows the value in any of the spellings fmt has for it.
func leaks(out string) bool {
	return strings.Contains(out, seeded) ||
		strings.Contains(strings.ToLower(out), fmt.Sprintf("%x", seeded)) ||
		strings.Contains(out, strings.Trim(fmt.Sprint([]byte(seeded)), "[]"))
}

func TestSecretFormats(t *testing.T) {
	l := sample()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%#x", "%10s", "%T|%v"} {
		for _, v := range []any{l.Password, l.Next, l, &l, []Secret{l.Password}, l.Keys} {
			args := []any{v}
			if verb == "%T|%v" {
				args = append(args, v)
			}
			if out := fmt.Sprintf(verb, args...); leaks(out) {
				t.Errorf("Sprintf(%q, %T) leaks: %s", verb, v, out)
			}
		}
	}
	if out := fmt.Errorf("log in: %w", errors.New(fmt.Sprint(l))).Error(); leaks(out) {
		t.Errorf("error leaks: %s", out)
	}
	if got := fmt.Sprintf("%s", l.Password); got != "***" {
		t.Errorf("%%s = %q", got)
	}
}

func TestSecretMarshal(t *testing.T) {
	l := sample()
	j, err := json.Marshal(l)
	if err != nil || leaks(string(j)) || !strings.Contains(string(j), `"Password":"***"`) {
		t.Errorf("json: %s, %v", j, err)
	}
	type element struct {
		P Secret
		A Secret `xml:"a,attr"`
	}
	x, err := xml.Marshal(element{l.Password, l.Password})
	if err != nil || leaks(string(x)) {
		t.Errorf("xml: %s, %v", x, err)
	}
	var back login
	if err := json.Unmarshal([]byte(`{"Password":"in"}`), &back); err != nil || back.Password.Reveal() != "in" {
		t.Errorf("unmarshal: %q, %v", back.Password.Reveal(), err)
	}
}

func TestSecretLogs(t *testing.T) {
	l := sample()
	var buf bytes.Buffer
	for _, h := range []slog.Handler{slog.NewJSONHandler(&buf, nil), slog.NewTextHandler(&buf, nil)} {
		slog.New(h).Info("user logged in", "login", l, "password", l.Password,
			slog.Group("g", "p", l.Password), "ptr", l.Next, "any", slog.AnyValue(l.Password))
	}
	if leaks(buf.String()) || !strings.Contains(buf.String(), "***") {
		t.Errorf("log leaks: %s", buf.String())
	}
}
