package reconcile

import (
	"strings"

	"kurabe"
)

// clusterSources are RDS's source types of events of DB clusters and their snapshots.
var clusterSources = map[string]string{"db-instance": "db-cluster", "db-snapshot": "db-cluster-snapshot"}

// clusterWords has events name what the user knows: the plan of a cluster is that of an
// instance with three servers, and its reasons say so.
var clusterWords = strings.NewReplacer(
	"Multi-AZ DB instance", "DB cluster", "Multi-AZ instance", "DB cluster", "DB instance", "DB cluster",
	"Database instance", "DB cluster", "DB snapshot", "DB cluster snapshot",
)

// told is an event as the users of an instance or of a cluster read it.
func told(e kurabe.Event, cluster bool) kurabe.Event {
	source, known := clusterSources[e.SourceType]
	if !cluster || !known {
		return e
	}
	e.SourceType, e.Message = source, clusterWords.Replace(e.Message)
	return e
}
