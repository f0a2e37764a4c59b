package kurabe

import (
	"context"

	"kurabe"
	"kurabe/internal/api"
	"kurabe/internal/control"
	"kurabe/internal/hostread"
	"kurabe/internal/importer"
	"kurabe/internal/logread"
)

// Config is what the actions are about.
type Config struct {
	Control  *control.Control
	Hosts    hostread.Hosts
	Logs     logread.Hosts
	Importer *importer.Importer
	// CheckImport refuses an import from a repository of that id, "" for the service's own.
	CheckImport func(repositoryID string) error
	// Following tells the state of replication. What it returns is shared.
	Following func(context.Context) []kurabe.Following

	Authority     string                      // pki.CA.Digest
	JoinAddress   string                      // HOST:PORT at which hosts join, "" when none can
	CheckServers  func(context.Context) error // why no server can join
	ServerOptions string                      // flags that a server needs for the state that this one has
}

// Target is the part before the action in the header X-Amz-Target.
const Target = "Kurabe_20261127"

// API is the service.
type API struct{ Config }

// Service returns the table of actions.
func (a API) Service() api.Service {
	return api.Service{
		Name: "kurabe", Protocols: []api.Protocol{api.JSON{Target: Target, Version: "1.1"}},
		Ops: api.Table(
			api.Read("Explain", a.explain),
			api.Read("DescribeEndpoints", a.describeEndpoints),
			api.Read("DescribeReplication", a.describeReplication),
			api.Read("DescribeOSMetrics", a.describeOSMetrics),
			api.Read("DescribeProxy", a.describeProxy),
			api.Read("DescribeSessions", a.describeSessions),
			api.Read("DescribeSnapshots", a.describeSnapshots),
			api.Write("StartVerification", a.startVerification),
			api.Read("DescribeVerification", a.describeVerification),
			api.Write("AcceptDataLoss", a.acceptDataLoss),
			api.Write("PermitDrill", a.permitDrill),
			api.Write("StrikeDrill", a.strikeDrill),
			api.Write("HoldDrill", a.holdDrill),
			api.Read("DescribeHosts", a.describeHosts),
			api.Read("DescribeLeavingServers", a.describeLeavingServers),
			api.Write("CreateJoinToken", a.createJoinToken),
			api.Write("DrainHost", a.drainHost),
			api.Write("RemoveHost", a.removeHost),
			api.Write("GiveUpHost", a.giveUpHost),
			api.Write("StartImport", a.startImport),
			api.Read("DescribeImport", a.describeImport),
		),
		Errors: api.Errors{
			kurabe.CodeInstanceNotFound:     {Code: "InstanceNotFound", Status: 404},
			kurabe.CodeSnapshotNotFound:     {Code: "SnapshotNotFound", Status: 404},
			kurabe.CodeResourceNotFound:     {Code: "HostNotFound", Status: 404},
			kurabe.CodeInvalidInstanceState: {Code: "InvalidState", Status: 400},
			kurabe.CodeInvalidSnapshotState: {Code: "InvalidState", Status: 400},
			kurabe.CodeInsufficientCapacity: {Code: "InsufficientCapacity", Status: 400},
		},
		NotOffered: func(string) string { return "the service has no such action" },
	}
}
