package drill

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"kurabe"
)

// Service is what is asked of the service about one instance.
type Service interface {
	// Look tells what is known now.
	Look(ctx context.Context) (Look, error)
	// Events tells what users were told from a moment on, oldest first.
	Events(ctx context.Context, from time.Time) ([]Event, error)
	// Failover asks for a failover in order.
	Failover(ctx context.Context) error
	// Permit asks the host of a server for the right to do something to the process that was seen.
	Permit(ctx context.Context, s Server, f Fault) (Permit, error)
	// Strike has the host do what it permitted. After an error that is no refusal it may have
	// done it, and does it no more once the permit is over.
	Strike(ctx context.Context, p Permit) error
	// Hold has a freeze or a cut go on that a permit has begun, or end, and says what is known of
	// it. The host ends it by itself after HoldTime without a word.
	Hold(ctx context.Context, p Permit, end bool) (Held, error)
}

// Event is one thing that users were told.
type Event struct {
	At   time.Time
	Text string
}

// Look is what is known of an instance or a DB cluster: who may write and who has every commit is the
// planner's word, what servers do is their hosts'.
type Look struct {
	Cluster  bool
	Status   string
	Epoch    kurabe.Epoch
	Writer   kurabe.InstanceID
	Handover kurabe.InstanceID
	// Choosing: nobody may write, and whoever of Sync has most is to.
	Electing bool
	SyncSet  []kurabe.InstanceID // sorted
	Servers  []Server            // by number
}

// Server is one of them.
type Server struct {
	ID   kurabe.InstanceID
	Host kurabe.HostID
	Zone string
	// Address is where it listens: the others connect to that.
	Address netip.Addr
	// What its host tells: the process, what it does in words, and whether it does what
	// it is there for.
	PID   int
	Doing string
	Ready bool
}

// Server finds one by its id.
func (l Look) Server(id kurabe.InstanceID) (Server, bool) {
	n := slices.IndexFunc(l.Servers, func(s Server) bool { return s.ID == id })
	if n < 0 {
		return Server{}, false
	}
	return l.Servers[n], true
}

// synced are the servers of Sync: one of them has every commit.
func (l Look) synced() (list []Server) {
	for _, id := range l.SyncSet {
		if s, ok := l.Server(id); ok {
			list = append(list, s)
		}
	}
	return list
}

// Standby is a server that may take over: of a pair the one that has every commit.
func (l Look) Standby() (Server, bool) {
	if len(l.SyncSet) == 0 {
		return Server{}, false
	}
	return l.Server(l.SyncSet[0])
}

// Lacks says what is missing for every server to do what it is there for, "" when nothing.
func (l Look) Lacks() string {
	switch {
	case l.Status != "available":
		return "it is " + l.Status
	case len(l.Servers) < 2:
		return "it has one server"
	case l.Cluster && len(l.Servers) < kurabe.ClusterServers:
		return fmt.Sprintf("it has %d of its %d servers", len(l.Servers), kurabe.ClusterServers)
	case l.Electing:
		return "it is being found out which of " + names(l.SyncSet) + " has most"
	case l.Handover != "":
		return "its writer hands over to " + string(l.Handover)
	case len(l.SyncSet) == 0:
		return "no standby has every commit"
	case len(l.SyncSet) < len(l.Servers)-1:
		return "commits wait for " + names(l.SyncSet) + " alone"
	}
	for _, s := range l.Servers {
		if !s.Ready || s.PID == 0 {
			return string(s.ID) + ": " + s.Doing
		}
	}
	return ""
}
