package kurabe

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"
	"time"
)

// ClusterServers is how many servers a Multi-AZ DB cluster has: the writer and two readable
// standbys, each in a zone of its own (RDS user guide, "Multi-AZ DB cluster deployments").
const ClusterServers = 3

// ReaderLagMost is how old what a standby shows may be for the reader endpoint to lead to it.
const ReaderLagMost = 10 * time.Second

// clusterMark begins the name of a cluster where it stands among names of instances: both
// may be called the same, as on RDS. No identifier has it.
const clusterMark = "cluster:"

// NameKey is the name by which what has this name is unique.
func NameKey(name string, cluster bool) string {
	if cluster {
		return clusterMark + name
	}
	return name
}

// CutNameKey is NameKey taken apart.
func CutNameKey(key string) (name string, cluster bool) { return strings.CutPrefix(key, clusterMark) }

// ServerName is what users call a server of a cluster, a DB instance to them.
func ServerName(cluster string, server InstanceID) string {
	return fmt.Sprintf("%s-instance-%d", cluster, server.Number())
}

// ExportGroup is the log group to which a log of an instance, or of a cluster, is exported.
func ExportGroup(cluster bool, name, log string) string {
	kind := "instance"
	if cluster {
		kind = "cluster"
	}
	return "/aws/rds/" + kind + "/" + name + "/" + log
}

// ServerResourceID is the DbiResourceId of a server of a cluster. It has RDS's form, which the
// server's own id lacks, and does not change when the writer does.
func ServerResourceID(server InstanceID) string {
	sum := sha256.Sum256([]byte("server of a cluster\x00" + server))
	return "db-" + base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16])
}
