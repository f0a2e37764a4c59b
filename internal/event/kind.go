package event

import (
	"fmt"
	"slices"
	"time"

	"kurabe"
)

// Source types of events, in RDS's words.
const (
	Instance        = "db-instance"
	Snapshot        = "db-snapshot"
	ParameterGroup  = "db-parameter-group"
	Cluster         = "db-cluster"
	ClusterSnapshot = "db-cluster-snapshot"
	Proxy           = "db-proxy"
	// Topic is of topics of SNS. RDS does not have it, so nobody can subscribe to its events.
	Topic = "sns-topic"
)

// Categories of events, in RDS's words.
const (
	availability  = "availability"
	backup        = "backup"
	configuration = "configuration change"
	creation      = "creation"
	deletion      = "deletion"
	failover      = "failover"
	failure       = "failure"
	lowStorage    = "low storage"
	maintenance   = "maintenance"
	notification  = "notification"
	readReplica   = "read replica"
	recovery      = "recovery"
	restoration   = "restoration"
	security      = "security"
	patching      = "security patching"
)

// Kind is an event of RDS or of Kurabe.
type Kind struct {
	ID         string // RDS-EVENT-0005, KURABE-EVENT-0010
	Source     string // the type of its source
	Categories []string
	// Text has verbs of package fmt for names and values: see With.
	Text string
}

// all are the kinds of this package, in the order of their declarations.
var all []Kind

// All are the events that the service writes.
func All() []Kind { return slices.Clone(all) }

// of declares an event of RDS, own one that RDS does not have.
func of(source string, number int, category, text string) Kind {
	return declare("RDS", source, number, text, category)
}

func own(source string, number int, text string, categories ...string) Kind {
	return declare("KURABE", source, number, text, categories...)
}

func declare(whose, source string, number int, text string, categories ...string) Kind {
	k := Kind{ID: fmt.Sprintf("%s-EVENT-%04d", whose, number), Source: source, Categories: categories, Text: text}
	all = append(all, k)
	return k
}

// SourceCategories are the categories of one type of sources.
type SourceCategories struct {
	SourceType string
	Categories []string
}

// Categories are RDS's, of the source types that have events here: clients may subscribe to all of
// them, also to those in which nothing happens.
var Categories = []SourceCategories{
	{Instance, []string{
		availability, backup, configuration, creation, deletion, failover, failure, lowStorage, maintenance,
		notification, readReplica, recovery, restoration, security, patching,
	}},
	{Cluster, []string{
		backup, configuration, creation, deletion, failover, failure, maintenance, notification, recovery,
		availability, lowStorage, restoration, security, patching,
	}},
	{ClusterSnapshot, []string{backup, creation, deletion, failure, notification, restoration}},
	{ParameterGroup, []string{configuration}},
	{Proxy, []string{configuration, creation, deletion, failure}},
	{Snapshot, []string{backup, creation, deletion, failure, notification, restoration}},
}

// With fills in the names and values of the text.
func (k Kind) With(values ...any) Kind {
	k.Text = fmt.Sprintf(k.Text, values...)
	return k
}

// And adds to the words of RDS.
func (k Kind) And(more string) Kind {
	k.Text += more
	return k
}

// Told is the event of one resource.
func (k Kind) Told(at time.Time, name, id string) kurabe.Event {
	return k.As(kurabe.Event{At: at, Source: name, SourceID: id})
}

// As is another event of the same resource and moment.
func (k Kind) As(e kurabe.Event) kurabe.Event {
	e.SourceType, e.ID, e.Categories, e.Message = k.Source, k.ID, k.Categories, k.Text
	return e
}
