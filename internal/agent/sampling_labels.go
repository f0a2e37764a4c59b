package agent

import (
	"kurabe"
	"kurabe/internal/metrics/catalog"
	"kurabe/internal/metrics/sample"
	"kurabe/internal/metrics/series"
)

// labeller keeps the labels of a server's series until its name or role is another.
type labeller struct {
	of      [3]string // instance, engine, role
	labels  map[string]series.Labels
	cluster bool // the server was seen to be one of a DB cluster
}

func (l *labeller) label(a kurabe.Assignment, samples []sample.Value) []series.Sample {
	instance, role := l.identity(a)
	if of := [3]string{instance, string(a.Engine), role}; l.of != of {
		l.of, l.labels = of, map[string]series.Labels{}
	}
	list := make([]series.Sample, 0, len(samples))
	for _, s := range samples {
		labels := l.labels[s.Metric]
		if labels == nil {
			labels = series.NewLabels(catalog.Namespace, catalog.Of(s.Metric).Namespace, catalog.Metric, s.Metric, catalog.Instance, instance,
				catalog.Server, string(a.Instance), catalog.Engine, string(a.Engine), catalog.Role, role)
			l.labels[s.Metric] = labels
		}
		list = append(list, series.Sample{Labels: labels, Value: s.Value})
	}
	return list
}

// identity is the name and role of a server in its metrics. A server of a DB cluster is an
// instance of its own there.
func (l *labeller) identity(a kurabe.Assignment) (instance, role string) {
	primary := a.Role == nil || a.Role.Duty == kurabe.DutyWrite
	replica := a.Role != nil && a.Role.Source != nil && a.Role.Source.ID.Owner() != a.Instance.Owner()
	l.cluster = l.cluster || a.ReaderAddress != "" || !primary && !replica && a.Role.ServesReads
	instance = a.Name
	if l.cluster {
		instance = kurabe.ServerName(a.Name, a.Instance)
	}
	switch {
	case primary:
		return instance, catalog.RolePrimary
	case replica:
		return instance, catalog.RoleReplica
	case l.cluster:
		return instance, catalog.RoleReader
	}
	return instance, catalog.RoleStandby
}
