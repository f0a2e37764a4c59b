//go:build integration

package mariadb

import (
	"testing"

	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/mariadb/parameter"
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
		case p.Fixed == parameter.WhyUnseen:
			t.Errorf("%s: is it a user's? (%s, %s)", p.Name, p.Type, p.Description)
		case p.Modifiable && p.Type == "string" && p.Allowed == "" && parameter.Free[p.Name] == "" && !parameter.Looked()[p.Name]:
			t.Errorf("%s takes any text without a reason", p.Name)
		}
	}
}
