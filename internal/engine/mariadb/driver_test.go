package mariadb

import (
	"strings"
	"testing"

	"kurabe/internal/engine/mariadb/mariadbtest"
)

func TestCommand(t *testing.T) {
	argv := (&Driver{}).Command(mariadbtest.Instance(nil)).Argv
	// The server obeys --defaults-file in the first place only.
	if got := strings.Join(argv, " "); got != "/nowhere/sbin/mariadbd --defaults-file=/run/kurabe/a/conf/my.cnf" {
		t.Error(got)
	}
}
