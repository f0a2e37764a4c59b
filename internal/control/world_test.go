package control

import (
	"testing"

	"kurabe"
	"kurabe/internal/control/parameter"
	"kurabe/internal/control/scope/scopetest"
	"kurabe/internal/control/secret"
	"kurabe/internal/logkey"
)

// newTestWorld returns a Control over the scope of tests.
func newTestWorld(t testing.TB) *Control {
	t.Helper()
	s := scopetest.New(t)
	verifier := func(password logkey.Secret) (string, error) { return "verifier of " + password.Reveal(), nil }
	return New(s, Config{
		Authority: Authority{Identifier: "kurabe-ca", Thumbprint: "00ff", NotBefore: scopetest.Now, NotAfter: scopetest.Now.AddDate(10, 0, 0)},
		Verifiers: map[kurabe.EngineName]Verifier{kurabe.Postgres: verifier, kurabe.MariaDB: verifier},
		Secrets:   secret.Secrets{Scope: s, Sealer: secret.NewSealer([32]byte{1})},
	})
}

func mustGroup(t testing.TB, c *Control, name string) {
	t.Helper()
	if _, err := c.CreateParameterGroup(t.Context(), kurabe.ParameterGroup{Name: name, Family: "postgres15", Description: "d"}); err != nil {
		t.Fatal(err)
	}
}

func set(name, value string, method kurabe.ApplyMethod) parameter.Change {
	return parameter.Change{Name: name, Value: &value, Method: method}
}
