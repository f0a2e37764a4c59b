package proxy

import (
	"crypto/tls"
	"iter"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"kurabe/internal/logkey"
	"kurabe/internal/tokenize"
)

// Settings are what a frontend serves by. They are replaced as a whole; nobody changes one
// that was handed over.
type Settings struct {
	// Endpoint is its name in logs: "default", or the name of a further endpoint.
	Endpoint string
	// Reads says that clients of this endpoint are served by readers.
	Reads bool

	// RequireTLS refuses clients without TLS.
	RequireTLS bool
	// ClientTLS holds the certificate shown to clients.
	ClientTLS *tls.Config
	// ServerTLS is how the proxy speaks with the database servers; nil without TLS. See
	// ServerTLSAt.
	ServerTLS *tls.Config

	// Users are those that may log in, by name.
	Users map[string]User

	// InitQuery is run on every new connection to a server, before a client uses it.
	InitQuery string
	// ExcludeVariableSets does not pin for session variables that are not tracked
	// (SessionPinningFilters, MariaDB).
	ExcludeVariableSets bool
	// IdleClientTimeout ends clients that say nothing for so long.
	IdleClientTimeout time.Duration
	// ClientsMax bounds the clients of the endpoint.
	ClientsMax int
	// DebugLogging writes each statement, without its values.
	DebugLogging bool

	Log *slog.Logger
}

// ServerTLSAt is ServerTLS for a server at an address, which its certificate has to name; nil
// without TLS.
func (s *Settings) ServerTLSAt(at net.Addr) *tls.Config {
	if s.ServerTLS == nil || s.ServerTLS.ServerName != "" {
		return s.ServerTLS
	}
	config := s.ServerTLS.Clone()
	config.ServerName, _, _ = net.SplitHostPort(at.String())
	return config
}

// statementBytesMax bounds what is logged of a statement.
const statementBytesMax = 4 << 10

// LogStatement writes a statement of a client without its values, with DebugLogging. statement
// may be the beginning of one.
func (s *Settings) LogStatement(client uint64, statement []byte, d tokenize.Dialect) {
	if !s.DebugLogging {
		return
	}
	text := tokenize.Statement(string(statement[:min(len(statement), statementBytesMax)]), d)
	s.Log.Debug("A client sent a statement.", "proxyEndpoint", s.Endpoint, "clientConnection", client, "digest", text)
}

// User is a database user whom a secret names.
type User struct {
	Name     string
	Password logkey.Secret
}

// Frontend serves the clients of one endpoint in one loop. All methods belong to the loop's
// thread.
type Frontend interface {
	// Accept takes a client's socket, which does not block.
	Accept(fd int, from netip.AddrPort)
	// Apply replaces the settings. Clients of users that are gone, or whose password has
	// changed, stay until they leave, as on RDS.
	Apply(*Settings)
	// Tick handles what has a deadline; it is called about every 100 ms.
	Tick(now time.Time)
	// Count tells what has happened so far, and what is now.
	Count() Counters
	// Sessions describes up to max clients, those with a connection first.
	Sessions(max int) []Session
	// Stop takes no more clients and ends those that are between transactions; left is
	// called when the last one has gone.
	Stop(left func())
}

// Session is a client as `kurabe proxy top` shows it.
type Session struct {
	ID         uint64         `json:"id"`
	From       netip.AddrPort `json:"from"`
	User       string         `json:"user"`
	Database   string         `json:"database"`
	TLS        bool           `json:"tls"`
	State      string         `json:"state"` // "idle", "waiting", "active", "in transaction"
	Since      time.Time      `json:"since"` // of the state
	Connection uint64         `json:"connection,omitempty"`
	Pin        PinReason      `json:"pin,omitempty"`
	Queries    uint64         `json:"queries"`
}

// HoldersFirst gives up to most sessions, those that have a connection first.
func HoldersFirst(all iter.Seq[Session], most int) []Session {
	var holders, others []Session
	for s := range all {
		if s.Connection != 0 && len(holders) < most {
			holders = append(holders, s)
		} else if s.Connection == 0 && len(others) < most {
			others = append(others, s)
		}
	}
	holders = append(holders, others...)
	return holders[:min(len(holders), most)]
}
