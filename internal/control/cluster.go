package control

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"kurabe"
	"kurabe/internal/control/proxy"
)

// maxClusterName is RDS's bound of the name of a Multi-AZ DB cluster: its servers are called
// after it.
const maxClusterName = 52

// ofClusters has the code that an error of an instance is to a cluster.
var ofClusters = map[kurabe.Code]kurabe.Code{
	kurabe.CodeInstanceNotFound:      kurabe.CodeClusterNotFound,
	kurabe.CodeInstanceExists:        kurabe.CodeClusterExists,
	kurabe.CodeInvalidInstanceState:  kurabe.CodeInvalidClusterState,
	kurabe.CodeInstanceQuota:         kurabe.CodeClusterQuota,
	kurabe.CodeSnapshotNotFound:      kurabe.CodeClusterSnapshotNotFound,
	kurabe.CodeSnapshotExists:        kurabe.CodeClusterSnapshotExists,
	kurabe.CodeInvalidSnapshotState:  kurabe.CodeInvalidClusterSnapshot,
	kurabe.CodeBackupNotFound:        kurabe.CodeClusterBackupNotFound,
	kurabe.CodeInvalidBackupState:    kurabe.CodeInvalidClusterBackup,
	kurabe.CodePointInTimeNotEnabled: kurabe.CodeInvalidClusterState, // RDS has no code of its own
}

// AsCluster gives an error of a use case of Clusters the code that RDS has for clusters. The
// use cases are the same, so this is told where they end.
func AsCluster(err error) error {
	var e *kurabe.Error
	if !errors.As(err, &e) {
		return err
	}
	code, ok := ofClusters[e.Code]
	if !ok {
		return err
	}
	return &kurabe.Error{Code: code, Message: e.Message, Err: err}
}

// ResourceID is the immutable id that users see. That of a cluster is told from that of an
// instance by its beginning, and a server has one of its own, which follows from its id.
func (i Instance) ResourceID() string { return resourceID(i.Spec, i.Server) }

func resourceID(spec *kurabe.InstanceSpec, server *kurabe.ServerStatus) string {
	switch {
	case server != nil:
		return kurabe.ServerResourceID(server.ID)
	case spec.Cluster:
		return ClusterResourceID(spec.ID)
	}
	return string(spec.ID)
}

const clusterIDPrefix = "cluster-"

// ClusterResourceID is the id by which users know a cluster.
func ClusterResourceID(id kurabe.InstanceID) string {
	return clusterIDPrefix + strings.TrimPrefix(string(id), "db-")
}

// server finds a server of a cluster by its name, where instances are asked for.
func (c *Control) server(name string) (shown, bool) {
	cluster, ok := clusterOfServer(name)
	i, there := c.View.InstanceByName(kurabe.NameKey(cluster, true))
	if !ok || !there || i.Spec == nil || c.Cluster {
		return shown{}, false
	}
	list := c.shown(i)
	at := slices.IndexFunc(list, func(s shown) bool { return s.name == name })
	if at < 0 {
		return shown{}, false
	}
	return list[at], true
}

const serverMark = "-instance-"

// clusterOfServer is the name of the cluster that a server of this name belongs to, if one
// is called so.
func clusterOfServer(name string) (string, bool) {
	at := strings.LastIndex(name, serverMark)
	if at < 0 {
		return "", false
	}
	n, err := strconv.Atoi(name[at+len(serverMark):])
	if err != nil || n < 1 || strconv.Itoa(n) != name[at+len(serverMark):] {
		return "", false
	}
	return name[:at], true
}

// nameFree says why nothing new can have a name. The names of a cluster's servers are kept
// free for as long as there is the cluster, whatever their numbers: a server that replaces
// another one has a new number.
func (c *Control) nameFree(name string) error {
	if _, taken := c.View.NameOwner(c.Key(name)); taken {
		return kurabe.Errorf(kurabe.CodeInstanceExists, "%s already exists", c.Words().Noun)
	}
	if !c.Cluster {
		cluster, ok := clusterOfServer(name)
		if _, taken := c.View.NameOwner(kurabe.NameKey(cluster, true)); ok && taken {
			return kurabe.Errorf(kurabe.CodeInstanceExists, "DB instance already exists: names of the form %s%sN are those of the servers of DB cluster %s", cluster, serverMark, cluster)
		}
		return nil
	}
	for _, i := range c.View.Instances() {
		for taken := range i.Names {
			if cluster, ok := clusterOfServer(taken); ok && cluster == name && !i.Spec.Cluster {
				return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "The DB cluster cannot be called %s: there is a DB instance %s, and the servers of the cluster have names of this form", name, taken)
			}
		}
	}
	return nil
}

// foldName checks a name for an instance or a cluster.
func (c *Control) foldName(parameter, name string) (string, error) {
	folded, err := kurabe.FoldIdentifier(parameter, name)
	if err == nil && c.Cluster && len(folded) > maxClusterName {
		err = kurabe.Errorf(kurabe.CodeInvalidParameterValue, "The parameter %s has at most %d characters: the servers of a Multi-AZ DB cluster are called after it", parameter, maxClusterName)
	}
	return folded, err
}

// proxyTarget finds what a proxy is to lead to. A server of a cluster is none: the cluster is.
func (c *Control) proxyTarget(name string, cluster bool) (proxy.Target, error) {
	of := c.of(cluster)
	stored, err := of.find(name)
	if err == nil {
		return targetOf(of.read(stored)), nil
	}
	if s, ok := of.server(of.fold(name)); ok {
		return proxy.Target{}, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "DB instance %s is a server of a DB cluster: register the cluster", s.name)
	}
	if cluster {
		err = AsCluster(err)
	}
	return proxy.Target{}, err
}

func targetOf(i Instance) proxy.Target {
	t := proxy.Target{ID: i.Spec.ID, Name: i.Name, Cluster: i.Spec.Cluster, Engine: i.Spec.Engine, State: i.State}
	if i.IsReplica() {
		t.Source = i.Source
	}
	return t
}

// ProxyTarget is the read model of the target of a proxy, and of each server of it that users
// see as an instance; ok is false of a proxy without a target.
func (c *Control) ProxyTarget(p *kurabe.Proxy) (of Instance, servers []Instance, ok bool) {
	stored, ok := c.View.Instance(p.Target)
	if !ok {
		return Instance{}, nil, false
	}
	at := c.of(stored.Spec.Cluster)
	if !stored.Spec.Cluster {
		return at.read(stored), nil, true
	}
	for _, s := range c.of(false).shown(stored) {
		servers = append(servers, c.of(false).readShown(s))
	}
	return at.read(stored), servers, true
}
