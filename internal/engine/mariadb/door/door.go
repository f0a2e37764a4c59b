package door

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"fmt"
	"net"
	"path/filepath"
	"strconv"

	"github.com/go-sql-driver/mysql"

	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/role"
	"kurabe/internal/ownconn"
	"kurabe/internal/volume"
)

// The door: every session that the service has in a server that users fill is opened by one
// of the functions below, and by nothing else (TestTidyMariaDBDoor). What each may meet
// there, and what keeps it from executing a user's code with rights that the user has not:
//
//   - guard.Open: all rights, no account, in a server that has the guard. The guard
//     ends a statement of such a session that locks a table outside mysql, information_schema,
//     performance_schema and the probe's own schemas, and executes no routine and no trigger
//     in it (ext/kurabe_guard/door.c). What a view, a generated column, a CHECK or a DEFAULT is
//     worth then is nothing: they belong to tables. Nobody but the service makes or changes a
//     table or routine of mysql (DESIGN.md, section 1). The session has no schema of its own,
//     so a name without one means none, and sets its own modes, character set and limits
//     (preamble), whatever the group says of new sessions.
//   - privateServer.open (replayserver.go): a server without the guard on a throw-away or
//     recovered copy. Its account has PrivateRights and no other: EXECUTE, FILE, TRIGGER and
//     what changes settings are not among them, so a view or function of a user's cannot be
//     evaluated in it at all. The scheduler of events, init_connect, init_slave and triggers
//     of applied rows are off; a replication thread applies rows, and evaluates of a user's
//     what the server lets stand in a DEFAULT, CHECK or generated column: no routine, no
//     LOAD_FILE, nothing that reads another table.
//   - MemberPool (here), replica.LookPool, the probe's login (probe.go) and
//     the account of mariadb-backup (backup_account.go): sessions of accounts that have no right
//     which the master user has not, so nothing is won by being evaluated in them. All but the
//     last two's statements name no table.
//
// Slave threads of a follower have all rights, too: the same as of a private server holds for them.

// PrivateRights are all that a session in a private server needs: to check tables and read
// what the service wrote, to replay, and to remove its account.
var PrivateRights = []string{"SELECT, CREATE USER, RELOAD, REPLICATION SLAVE ADMIN, SLAVE MONITOR ON *.*", "UPDATE ON mysql.event"}

// ClientConfig begins the settings of a session.
func ClientConfig() *mysql.Config {
	config := mysql.NewConfig()
	config.Logger, config.DialFunc = Silent{}, ownconn.Dial
	return config
}

// OpenPool makes the pool of an account. It names no schema, so that no name without one
// means a user's.
func OpenPool(config *mysql.Config) (*sql.DB, error) {
	config.DBName = ""
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// Silent takes what the client library would print to standard error.
type Silent struct{}

// Print implements mysql.Logger.
func (Silent) Print(...any) {}

func TLSConfig(address, caFile string) (*tls.Config, error) {
	text, err := volume.ReadFile(caFile)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate", caFile)
	}
	return &tls.Config{RootCAs: roots, ServerName: address, MinVersion: tls.VersionTLS12}, nil
}

func Endpoint(i engine.Instance) string { return net.JoinHostPort(i.Address, strconv.Itoa(i.Port)) }

// MemberPool comes in by the certificate of this member's server.
func MemberPool(i engine.Instance, caFile, address string, port int) (*sql.DB, error) {
	tlsConfig, err := TLSConfig(address, caFile)
	if err != nil {
		return nil, err
	}
	own, err := tls.LoadX509KeyPair(filepath.Join(i.Home.TLSDir(), CertificateFile), filepath.Join(i.Home.TLSDir(), KeyFile))
	if err != nil {
		return nil, fmt.Errorf("read the certificate that is shown to the source: %w", err)
	}
	tlsConfig.Certificates = []tls.Certificate{own}
	config := ClientConfig()
	config.User = role.MemberName(i.Instance)
	config.Net, config.Addr = "tcp", net.JoinHostPort(address, strconv.Itoa(port))
	config.TLS = tlsConfig
	return OpenPool(config)
}

func SourcePool(i engine.Instance, caFile string) (*sql.DB, error) {
	return MemberPool(i, caFile, i.Role.Source.Address, i.Role.Source.Port)
}

// DialLong dials a socket whose path may be longer than an address can hold.
func DialLong(ctx context.Context, _, path string) (net.Conn, error) {
	return volume.DialSocket(ctx, path)
}

// Files in Home.TLSDir.
const (
	KeyFile         = "server.key"
	CertificateFile = "server.crt"
	AuthorityFile   = "ca.pem"
)
