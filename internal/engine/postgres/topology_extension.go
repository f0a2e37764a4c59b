package postgres

import (
	"embed"
	"strings"

	"kurabe"
	"kurabe/internal/engine"
)

// ownFiles are extensions of the service's own, which are put into each tree.
//
//go:embed extension/*.control extension/*.sql
var ownFiles embed.FS

// topologyExtension is what AWS's driver wrappers ask for the servers of a DB cluster.
const topologyExtension = "rds_tools"

// topologySettings are what the functions of rds_tools say. Their names are of no module, so
// the server takes them as they come; a session that sets them deceives only itself.
func topologySettings(i engine.Instance) []line {
	if len(i.Topology) == 0 {
		return nil
	}
	servers := make([]string, len(i.Topology))
	for n, s := range i.Topology {
		servers[n] = s.ID + "=" + s.Endpoint
	}
	own := shownID(i, i.Instance)
	source := own
	if i.Role != nil && i.Role.Source != nil && i.Role.Source.ID.Owner() == i.Instance.Owner() {
		source = shownID(i, i.Role.Source.ID)
	}
	return []line{
		{"kurabe.resource_id", own}, {"kurabe.source_resource_id", source}, {"kurabe.topology", strings.Join(servers, " ")},
	}
}

// shownID is the DbiResourceId under which users know a server: of a cluster each has its own.
func shownID(i engine.Instance, server kurabe.InstanceID) string {
	if i.ReaderAddress == "" {
		return string(server.Owner())
	}
	return kurabe.ServerResourceID(server)
}
