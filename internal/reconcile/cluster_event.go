package reconcile

import (
	"strings"

	"kurabe"
	"kurabe/internal/event"
)

// clusterSources are RDS's source types of events of DB clusters and their snapshots.
var clusterSources = map[string]string{event.Instance: event.Cluster, event.Snapshot: event.ClusterSnapshot}

// clusterKinds are events of which RDS has others for clusters. What names a server of a
// cluster is told by the planner.
var clusterKinds = []struct{ of, is event.Kind }{
	{event.Created, event.ClusterCreated},
	{event.Deleted, event.ClusterDeleted},
	{event.CannotBeCreated, event.ClusterCannotBeCreated},
	{event.Stopped, event.ClusterStopped},
	{event.Started, event.ClusterStarted},
	{event.StartedAfterSevenDays, event.ClusterAfterSevenDays},
	{event.Patched, event.ClusterPatched},
	{event.NewPassword, event.ClusterNewPassword},
	{event.ManualBegun, event.ClusterManualBegun},
	{event.ManualDone, event.ClusterManualDone},
	{event.AutomatedBegun, event.ClusterAutomatedBegun},
	{event.AutomatedDone, event.ClusterAutomatedDone},
}

// clusterWords has events name what the user knows: the plan of a cluster is that of an
// instance with three servers, and its reasons say so.
var clusterWords = strings.NewReplacer(
	"Multi-AZ DB instance", "DB cluster", "Multi-AZ instance", "DB cluster", "DB instance", "DB cluster",
	"Database instance", "DB cluster", "database instance", "DB cluster", "DB snapshot", "DB cluster snapshot",
)

// told is an event as the users of an instance or of a cluster read it. Where RDS has none of
// clusters, a cluster's has the id and the category of an instance's.
func told(e kurabe.Event, cluster bool) kurabe.Event {
	source, known := clusterSources[e.SourceType]
	if !cluster || !known {
		return e
	}
	for _, k := range clusterKinds {
		if more, begins := strings.CutPrefix(e.Message, k.of.Text); begins && e.ID == k.of.ID {
			return k.is.And(clusterWords.Replace(more)).As(e)
		}
	}
	e.SourceType, e.Message = source, clusterWords.Replace(e.Message)
	return e
}
