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
	restoration   = "restoration"
)

// Kind is one of RDS's events.
type Kind struct {
	ID       string // RDS-EVENT-0005
	Source   string // what it is told of
	Category string
	// Text has verbs of package fmt where RDS's words have a name or a value: see With.
	Text string
}

// all are the kinds below, in the order of their declarations.
var all []Kind

// All are the events of RDS that are told.
func All() []Kind { return slices.Clone(all) }

func of(source string, number int, category, text string) Kind {
	k := Kind{ID: fmt.Sprintf("RDS-EVENT-%04d", number), Source: source, Category: category, Text: text}
	all = append(all, k)
	return k
}

// With fills in the names and values of the text.
func (k Kind) With(values ...any) Kind {
	k.Text = fmt.Sprintf(k.Text, values...)
	return k
}

// And adds what RDS does not say.
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
	e.SourceType, e.ID, e.Categories, e.Message = k.Source, k.ID, []string{k.Category}, k.Text
	return e
}
