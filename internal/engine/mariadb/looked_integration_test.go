//go:build integration

package mariadb

import (
	"testing"

	"kurabe/internal/engine/enginetest"
)

// Of each variable of the real server somebody has said whether it is a user's, and
// of each text that is, why it is harmless.
func TestEveryParameterIsLookedAt(t *testing.T) {
	b := enginetest.NewBed(t, setup(t, enginetest.Reachable(t)))
	catalog, err := b.Driver.ReadCatalog(t.Context(), b.Request())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range catalog.Parameters {
		switch {
		case p.Fixed == whyUnseen:
			t.Errorf("%s: is it a user's? (%s, %s)", p.Name, p.Type, p.Description)
		case p.Modifiable && p.Type == "string" && p.Allowed == "" && free[p.Name] == "" && !looked()[p.Name]:
			t.Errorf("%s takes any text without a reason", p.Name)
		}
	}
}
