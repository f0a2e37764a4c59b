package kurabe

// Kind is a kind of thing that is assigned to hosts.
type Kind string

// The kinds. The id of a server is that which its instance gives it, of a snapshot and of a proxy its own.
const (
	KindServer   Kind = "server"
	KindSnapshot Kind = "snapshot"
	KindProxy    Kind = "proxy"
)

// Kinds are all of them, in the order in which a host obeys: a snapshot is taken of a server as
// its assignment says.
var Kinds = []Kind{KindServer, KindSnapshot, KindProxy, KindLogCheck}

// Ref names one thing of any kind.
type Ref struct {
	Kind Kind   `json:"kind"`
	ID   string `json:"id"`
}

// Envelope is what every word about a thing has on it, whatever its kind.
type Envelope struct {
	Ref
	Host       HostID     `json:"host"`
	Generation Generation `json:"generation"`
	// Absent says that nothing of the thing is to be left, or that nothing is.
	Absent bool `json:"-"`
}

// Word is what is said of one thing: its assignment to a host, or that host's report.
type Word interface{ Envelope() Envelope }

// Ref implements the name of a server.
func (id InstanceID) Ref() Ref { return Ref{KindServer, string(id)} }

// Ref implements the name of a snapshot.
func (id SnapshotID) Ref() Ref { return Ref{KindSnapshot, string(id)} }

// Ref implements the name of a proxy.
func (id ProxyID) Ref() Ref { return Ref{KindProxy, string(id)} }

// Envelope implements Word.
func (a Assignment) Envelope() Envelope {
	return Envelope{a.Instance.Ref(), a.Host, a.Generation, a.Goal == GoalAbsent}
}

// Envelope implements Word.
func (r InstanceReport) Envelope() Envelope {
	return Envelope{r.Instance.Ref(), r.Host, r.Generation, r.Absent}
}

// Envelope implements Word.
func (a SnapshotAssignment) Envelope() Envelope {
	return Envelope{a.Snapshot.Ref(), a.Host, a.Generation, a.Goal == SnapshotAbsent}
}

// Envelope implements Word.
func (r SnapshotReport) Envelope() Envelope {
	return Envelope{r.Snapshot.Ref(), r.Host, r.Generation, r.Absent}
}

// Envelope implements Word.
func (a ProxyAssignment) Envelope() Envelope {
	return Envelope{a.Proxy.Ref(), a.Host, a.Generation, a.Absent}
}

// Envelope implements Word.
func (r ProxyReport) Envelope() Envelope {
	return Envelope{r.Proxy.Ref(), r.Host, r.Generation, r.Absent}
}

// Unsaved is the report while an assignment could not be saved: that is the newest one, for
// which the user waits.
func (r InstanceReport) Unsaved(g Generation, why *Failure) InstanceReport {
	r.Generation, r.Failure, r.Done, r.Absent = g, why, false, false
	return r
}

// Unsaved is that of a server's report.
func (r SnapshotReport) Unsaved(g Generation, why *Failure) SnapshotReport {
	r.Generation, r.Failure, r.Done, r.Absent = g, why, false, false
	return r
}

// Unsaved is that of a proxy's report.
func (r ProxyReport) Unsaved(g Generation, why *Failure) ProxyReport {
	r.Generation, r.Failure, r.Done, r.Absent = g, why, false, false
	return r
}
