package fault

import (
	"fmt"
	"net/http"
)

// Fault is what a client is told when its request fails.
type Fault struct {
	Code    string // AWS's code, for example "DBInstanceNotFound"
	Status  int    // the HTTP status that AWS sends with Code
	Message string // for users: it holds no secret and no cause of ours

	// Detail are further members of the error, by their names on the wire, of services that
	// speak JSON.
	Detail map[string]any
}

// New makes a Fault with a formatted message.
func New(status int, code, format string, args ...any) *Fault {
	return &Fault{Code: code, Status: status, Message: fmt.Sprintf(format, args...)}
}

// Error implements error.
func (f *Fault) Error() string { return f.Code + ": " + f.Message }

// Blame says whose mistake it is: SDKs retry what is not the sender's.
func (f *Fault) Blame() string {
	if f.Status < http.StatusInternalServerError {
		return "Sender"
	}
	return "Receiver"
}
