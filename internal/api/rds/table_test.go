package rds

import (
	"testing"

	"kurabe/internal/aws/shape"
)

// botocore's model has 164 actions; the SDK has 4 more, of capacity reservations.
const actionsOfRDS = 168

// Each action either works or says why it does not, never both: a reason that
// outlived its action's row would tell users a lie in docs/coverage.md.
func TestEveryActionWorksOrHasAReason(t *testing.T) {
	actions := shape.RDS.Actions()
	if len(actions) != actionsOfRDS {
		t.Errorf("%d actions, want %d", len(actions), actionsOfRDS)
	}
	ops := New(nil).API().Ops
	for _, action := range actions {
		_, works := ops[action]
		if reason := whyNot(action); works == (reason != "") {
			t.Errorf("%s: works %v, reason %q", action, works, reason)
		}
	}
}
