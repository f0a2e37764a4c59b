package monitoring

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"kurabe/internal/control"
	"kurabe/internal/metrics/catalog"
	"kurabe/internal/metrics/expression"
	"kurabe/internal/metrics/series"
)

// The dimensions of the metrics of databases.
const (
	byInstance = "DBInstanceIdentifier"
	byCluster  = "DBClusterIdentifier"
	byRole     = "Role"
	byClass    = "DatabaseClass"
	byEngine   = "EngineName"
)

// The values of byRole.
const (
	writer = "WRITER"
	reader = "READER"
)

// shownRoles are those of the servers that clients speak with.
var shownRoles = []string{catalog.RolePrimary, catalog.RoleReader, catalog.RoleReplica}

// definitions are the metrics of databases.
var definitions = func() map[[2]string]catalog.Definition {
	m := map[[2]string]catalog.Definition{}
	for _, d := range catalog.All {
		m[[2]string{d.Namespace, d.Name}] = d
	}
	return m
}()

// ofDatabases says whether a namespace has the metrics of databases, which nobody else puts.
func ofDatabases(namespace string) bool {
	return namespace == catalog.RDS || namespace == catalog.Kurabe
}

// plain says whether a metric's series have its dimensions as they are: those of users' own
// metrics and of proxies.
func plain(m expression.Metric) bool {
	return !ofDatabases(m.Namespace) || slices.ContainsFunc(m.Dimensions, func(d expression.Dimension) bool { return d.Name == catalog.ProxyName })
}

// place is the present class and cluster of an instance.
type place struct{ class, cluster string }

// places are those of all instances, by name, the servers of clusters included. Series do not
// have them: a class changes, and what was measured belongs to the instance.
type places func() map[string]place

func newPlaces(c *control.Control) places {
	return sync.OnceValue(func() map[string]place {
		all := map[string]place{}
		instances, _ := c.Instances(control.InstanceFilter{}, "", math.MaxInt)
		for _, i := range instances {
			all[i.Name] = place{i.Settings().Class, i.Cluster}
		}
		return all
	})
}

// names are the instances of which want is true.
func (p places) names(want func(place) bool) []string {
	var list []string
	for name, at := range p() {
		if want(at) {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// dimensionsOf reads dimensions; they are sorted by name. Their names are checked elsewhere.
func dimensionsOf(list []types.Dimension) []expression.Dimension {
	out := make([]expression.Dimension, len(list))
	for n, d := range list {
		out[n] = expression.Dimension{Name: aws.ToString(d.Name), Value: aws.ToString(d.Value)}
	}
	slices.SortFunc(out, func(a, b expression.Dimension) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// matches returns the series of a metric; ok is false if it can have none.
func (p places) matches(m expression.Metric, unit types.StandardUnit) (match []series.Match, ok bool) {
	match = []series.Match{{Label: catalog.Namespace, Values: []string{m.Namespace}}, {Label: catalog.Metric, Values: []string{m.Name}}}
	if plain(m) {
		if unit != "" {
			match = append(match, series.Match{Label: catalog.Unit, Values: []string{string(unit)}})
		}
		match = append(match, series.Match{Label: catalog.DimensionNames, Values: []string{dimensionNames(m.Dimensions)}})
		for _, d := range m.Dimensions {
			match = append(match, series.Match{Label: catalog.DimensionPrefix + d.Name, Values: []string{d.Value}})
		}
		return match, true
	}
	d, known := definitions[[2]string{m.Namespace, m.Name}]
	if !known || unit != "" && string(unit) != d.Unit {
		return nil, false
	}
	more, ok := p.ofDatabases(m.Dimensions)
	return append(match, more...), ok
}

// ofDatabases narrows the metrics of databases by one of the sets of dimensions that they have.
func (p places) ofDatabases(dimensions []expression.Dimension) (match []series.Match, ok bool) {
	roles, label, values := shownRoles, catalog.Instance, []string(nil)
	switch name, value := set(dimensions); name {
	case "":
		return []series.Match{{Label: catalog.Role, Values: roles}}, true
	case byInstance:
		values = []string{value}
	case byEngine:
		label, values = catalog.Engine, []string{value}
	case byClass:
		values = p.names(func(at place) bool { return at.class == value })
	case byCluster:
		values = p.names(func(at place) bool { return at.cluster == value && value != "" })
	case byCluster + "," + byRole:
		values = p.names(func(at place) bool { return at.cluster == value && value != "" })
		switch dimensions[1].Value {
		case writer:
			roles = []string{catalog.RolePrimary}
		case reader:
			roles = []string{catalog.RoleReader}
		default:
			return nil, false
		}
	}
	return []series.Match{{Label: catalog.Role, Values: roles}, {Label: label, Values: values}}, len(values) > 0
}

// set returns the names of dimensions, and the value of the first one.
func set(dimensions []expression.Dimension) (names, first string) {
	if len(dimensions) == 0 {
		return "", ""
	}
	list := make([]string, len(dimensions))
	for n, d := range dimensions {
		list[n] = d.Name
	}
	return strings.Join(list, ","), dimensions[0].Value
}

// dimensionNames is what tells the series with just these dimensions from those with others too.
// No name has a line feed.
func dimensionNames(dimensions []expression.Dimension) string {
	var b strings.Builder
	for _, d := range dimensions {
		b.WriteString(d.Name + "\n")
	}
	return b.String()
}

// metricsOf returns the metrics that a series belongs to.
func (p places) metricsOf(l series.Labels) []expression.Metric {
	m := expression.Metric{Namespace: l.Get(catalog.Namespace), Name: l.Get(catalog.Metric)}
	if l.Get(catalog.DimensionNames) != "" || !ofDatabases(m.Namespace) {
		for _, one := range l { // sorted
			if name, is := strings.CutPrefix(one.Name, catalog.DimensionPrefix); is {
				m.Dimensions = append(m.Dimensions, expression.Dimension{Name: name, Value: one.Value})
			}
		}
		return []expression.Metric{m}
	}
	role, name := l.Get(catalog.Role), l.Get(catalog.Instance)
	if !slices.Contains(shownRoles, role) {
		return nil
	}
	at := p()[name]
	of := func(pairs ...string) expression.Metric {
		one := m
		for n := 0; n < len(pairs); n += 2 {
			one.Dimensions = append(one.Dimensions, expression.Dimension{Name: pairs[n], Value: pairs[n+1]})
		}
		return one
	}
	list := []expression.Metric{m, of(byInstance, name), of(byEngine, l.Get(catalog.Engine))}
	if at.class != "" {
		list = append(list, of(byClass, at.class))
	}
	if at.cluster != "" {
		list = append(list, of(byCluster, at.cluster))
	}
	switch {
	case at.cluster == "":
	case role == catalog.RolePrimary:
		list = append(list, of(byCluster, at.cluster, byRole, writer))
	case role == catalog.RoleReader:
		list = append(list, of(byCluster, at.cluster, byRole, reader))
	}
	return list
}
