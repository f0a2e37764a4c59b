package control

import (
	"testing"

	"kurabe"
	"kurabe/internal/control/parameter"
	"kurabe/internal/control/scope/scopetest"
	"kurabe/internal/logkey"
)

// newTestWorld returns a Control over the scope of tests.
func newTestWorld(t testing.TB) *Control {
	t.Helper()
	return New(scopetest.New(t), Config{
		Authority: Authority{Identifier: "kurabe-ca", Thumbprint: "00ff", NotBefore: scopetest.Now, NotAfter: scopetest.Now.AddDate(10, 0, 0)},
		Verifiers: map[kurabe.EngineName]Verifier{kurabe.Postgres: func(logkey.Secret) (string, error) { return "verifier", nil }},
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
