package hostlink

import (
	"context"
	"net"

	"kurabe"
)

// Update is what a watch of assignments delivers. Of instances and snapshots that
// changed in one moment, either may be told first; a full update holds no snapshot
// that is newer than its instances.
type Update struct {
	// Full says that Assignments and Snapshots are the whole set of the host, as at
	// the start and after every lost connection; else they hold only those that
	// changed.
	Full        bool
	Assignments []kurabe.Assignment
	Snapshots   []kurabe.SnapshotAssignment
	// Withdrawn are the instances whose assignment record is gone; in a full
	// update, those of which the host's report is still there. It is not an
	// order: data goes only when an assignment says GoalAbsent.
	Withdrawn []kurabe.InstanceID
	// WithdrawnSnapshots is Withdrawn for snapshots, and no order either.
	WithdrawnSnapshots []kurabe.SnapshotID
}

// empty says that there is nothing to tell.
func (u Update) empty() bool {
	return len(u.Assignments)+len(u.Snapshots)+len(u.Withdrawn)+len(u.WithdrawnSnapshots) == 0
}

// Certificate is a signed certificate and the authority that signed it, both
// in PEM.
type Certificate struct {
	CertPEM []byte
	CAPEM   []byte
}

// SignRequest asks for a server certificate.
type SignRequest struct {
	CSRPEM   []byte
	IPs      []net.IP
	DNSNames []string
}

// Link connects one host's agent with the control plane.
type Link interface {
	// Assignments delivers the host's whole set, then changes, until ctx ends;
	// then the channel closes. A lost connection heals inside and shows as
	// another full update. Updates may repeat. An assignment that cannot be read
	// is neither delivered nor withdrawn.
	Assignments(ctx context.Context, host kurabe.HostID) <-chan Update
	// PutReport says what the host sees of an instance.
	PutReport(ctx context.Context, r kurabe.InstanceReport) error
	// DropReport says that there is nothing to see any more.
	DropReport(ctx context.Context, host kurabe.HostID, id kurabe.InstanceID) error
	// PutSnapshotReport says what the host sees of a snapshot.
	PutSnapshotReport(ctx context.Context, r kurabe.SnapshotReport) error
	// DropSnapshotReport says that there is nothing to see any more.
	DropSnapshotReport(ctx context.Context, host kurabe.HostID, id kurabe.SnapshotID) error
	// PutLogs says what the host keeps of the logs of its instances.
	PutLogs(ctx context.Context, r kurabe.LogReport) error
	// PutHost says what the host is and can do.
	PutHost(ctx context.Context, h kurabe.HostReport) error
	// PutCatalog says which parameters an engine version of the host has.
	PutCatalog(ctx context.Context, host kurabe.HostID, c kurabe.Catalog) error
	// Sign returns a server certificate for the key in the request.
	Sign(ctx context.Context, r SignRequest) (Certificate, error)
}
