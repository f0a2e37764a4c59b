package mariadb

import (
	"context"
	"net"
	"path/filepath"
	"strconv"
	"strings"

	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/conf"
	"kurabe/internal/engine/mariadb/door"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/sqltext"
	"kurabe/internal/logkey"
)

// copierRights are all that the tool needs. The master user has each of them, so
// whoever takes the account over wins nothing but a place beside max_connections
// (decision 62).
const copierRights = "RELOAD, PROCESS, LOCK TABLES, BINLOG MONITOR"

func makeCopier(ctx context.Context, a *guard.Session, name string, password logkey.Secret) error {
	verifier, err := door.Verifier(password)
	if err != nil {
		return err
	}
	return a.ExecAll(ctx,
		"CREATE USER "+sqltext.Account(name)+" IDENTIFIED VIA "+door.NativePlugin+" USING "+sqltext.Literal(verifier)+" REQUIRE SSL",
		"GRANT "+copierRights+" ON *.* TO "+sqltext.Account(name),
	)
}

// toolSettings is the option file of the tool. It alone is read: --defaults-file
// keeps the host's own out. The server is verified as the probe verifies it.
func toolSettings(i engine.Instance, name string, password logkey.Secret, bytesPerSecondMax int64) string {
	threads := toolThreads
	if bytesPerSecondMax > 0 {
		threads = 1 // keeps any rate that is set, and leaves the processors to clients
	}
	seen := i.Seen()
	host, port, _ := net.SplitHostPort(door.Endpoint(i))
	options := []conf.Option{
		{Name: "user", Value: name},
		{Name: "password", Value: password.Reveal()},
		{Name: "protocol", Value: "tcp"},
		{Name: "host", Value: host},
		{Name: "port", Value: port},
		{Name: "ssl_ca", Value: filepath.Join(seen.TLSDir(), "ca.pem")},
		{Name: "ssl_verify_server_cert", Value: "1"},
		{Name: "datadir", Value: seen.DataDir()},
		{Name: "plugin_dir", Value: "/nonexistent"},
		{Name: "parallel", Value: strconv.Itoa(threads)},
		// How often the log is looked at, in ms. Commits wait for the last look, which ends
		// the copy: with the default of a second for all of it, with 50 for 75 to 100 ms,
		// with 5 for 30 to 50.
		{Name: "log_copy_interval", Value: "5"},
		// A client that holds LOCK TABLES would otherwise be waited for without end.
		{Name: "ftwrl_wait_timeout", Value: "20"},
	}
	var b strings.Builder
	b.WriteString("[mariadb-backup]\n")
	for _, o := range options {
		b.WriteString(o.String())
	}
	return b.String()
}
