package mariadb

import (
	"strings"
	"testing"

	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/mariadb/mariadbtest"
)

func TestMasterSQL(t *testing.T) {
	i := mariadbtest.Instance(nil)
	i.MasterUsername = "o'neil\\"
	statements, err := masterSQL(i)
	if err != nil {
		t.Fatal(err)
	}
	enginetest.Golden(t, "master.sql", strings.Join(statements, ";\n")+";\n")
	i.Password.Verifier = "' OR 1=1"
	if _, err := masterSQL(i); err == nil {
		t.Error("it takes anything for a verifier")
	}
}
