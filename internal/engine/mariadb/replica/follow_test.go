package replica

import (
	"strings"
	"testing"

	"kurabe/internal/engine/mariadb/mariadbtest"
	"kurabe/internal/engine/mariadb/role"
)

func TestChangeSource(t *testing.T) {
	i := mariadbtest.Follower()
	i.Role.Source.Address = `127.0.0.1' , MASTER_USE_GTID=no \`
	got := changeSource(i)
	for _, part := range []string{
		`MASTER_HOST='127.0.0.1\' , MASTER_USE_GTID=no \\'`, "MASTER_PORT=3306", "MASTER_USER='" + role.MemberName(i.Instance) + "'", "MASTER_PASSWORD=''",
		"MASTER_SSL_VERIFY_SERVER_CERT=1", "MASTER_SSL_KEY='/run/kurabe/a/tls/server.key'", "MASTER_USE_GTID=slave_pos", "MASTER_HEARTBEAT_PERIOD=0.25",
	} {
		if !strings.Contains(got, part) {
			t.Errorf("no %s in %s", part, got)
		}
	}
}
