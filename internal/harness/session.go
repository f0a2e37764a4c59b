package harness

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"kurabe/internal/pulse"
)

// Login is how a client comes in.
type Login = pulse.Login

// Session is one session of a client, of either engine.
type Session = pulse.Session

// LoginTime is how long a client waits for a login.
const LoginTime = pulse.LoginTime

// Open opens a session.
func Open(ctx context.Context, l Login) (Session, error) { return pulse.Open(ctx, l) }

// Login is the master user's, over TLS, by the endpoint that the API advertises.
func (i *Instance) Login(t testing.TB) Login {
	t.Helper()
	d := i.Describe(t)
	if d.Endpoint == nil {
		t.Fatalf("%s has no endpoint; it is %s", i.Name, aws.ToString(d.DBInstanceStatus))
	}
	return Login{
		Engine: i.Engine, Address: aws.ToString(d.Endpoint.Address), Port: int(aws.ToInt32(d.Endpoint.Port)),
		User: i.User, Password: i.Password, Database: i.Database, CAFile: filepath.Join(i.Service.Data, "ca.pem"),
	}
}

// Open opens a session as the master user; it ends with the test.
func (i *Instance) Open(t testing.TB) Session {
	t.Helper()
	s, err := Open(t.Context(), i.Login(t))
	if err != nil {
		t.Fatalf("log in to %s: %v", i.Name, err)
	}
	t.Cleanup(s.Close)
	return s
}

// Query runs one statement in a session of its own and returns its first value.
func (i *Instance) Query(t testing.TB, statement string) string {
	t.Helper()
	s, err := Open(t.Context(), i.Login(t))
	if err != nil {
		t.Fatalf("log in to %s: %v", i.Name, err)
	}
	defer s.Close()
	rows, err := s.Rows(t.Context(), statement)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	if len(rows) == 0 {
		return ""
	}
	return rows[0]
}

// BackendSQL asks a session which backend serves it.
func BackendSQL(engine string) string {
	if engine == "mariadb" {
		return "SELECT connection_id()"
	}
	return "SELECT pg_backend_pid()"
}
