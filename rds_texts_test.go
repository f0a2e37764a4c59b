package kurabe

import (
	"strings"
	"testing"
)

// What tools match in RDS's answers is in ours.
func TestWords(t *testing.T) {
	long := strings.Repeat("x", 42)
	for want, err := range map[string]error{
		"MasterUserPassword is not a valid password because it is shorter than 8 characters.":                         CheckMasterPassword(Postgres, "short7!"),
		"MasterUserPassword is not a valid password because it is longer than 41 characters.":                         CheckMasterPassword(MariaDB, long),
		"MasterUserPassword is not a valid password. Only printable ASCII characters besides '/', '@', '\"', ' ' may": CheckMasterPassword(MariaDB, "with@sign-1"),
		"MasterUsername admin cannot be used as it is a reserved word used by the engine":                             CheckMasterUsername(Postgres, "admin"),
		"DatabaseName template1 cannot be used as it is a reserved word used by the engine":                           CheckDatabaseName(Postgres, "template1"),
		"The parameter X is not a valid identifier because it is longer than 63 characters.":                          foldError("X", strings.Repeat("x", 64)),
		"The parameter X is not a valid identifier. Identifiers must begin with a letter; must contain only ASCII":    foldError("X", "a--b"),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v instead of %q", err, want)
		}
	}
}

func foldError(parameter, name string) error {
	_, err := FoldIdentifier(parameter, name)
	return err
}
