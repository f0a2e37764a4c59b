package target

import (
	"context"
	"time"

	"kurabe/lab/dial"
	"kurabe/lab/study"
)

// Target is where a study is run. Not for use by more than one goroutine at a time.
type Target interface {
	// About asks what the target is.
	About(ctx context.Context) (About, error)
	// Check says, by the name of a variant or workload, why it cannot be had here; an
	// error is about the whole study. It leaves nothing behind.
	Check(ctx context.Context, s *study.Study) (unsupported map[string]string, err error)
	// Prepare makes the state that every trial starts from. The data is fill's.
	Prepare(ctx context.Context, s *study.Study, fill Fill) error
	// Lease gives a fresh server with the variant's recipe applied, and asks the server
	// whether it is. Each lease is released before the next one.
	Lease(ctx context.Context, v study.Variant) (*Lease, error)
	// Close removes everything that was created, also when ctx has ended: it has a time
	// of its own.
	Close(ctx context.Context) error
}

// Fill makes the data of a study in a database.
type Fill func(ctx context.Context, s dial.Server) error

// Kinds of targets, as in result.Study.
const (
	KindKurabe  = "kurabe"
	KindRDS     = "rds"
	KindURL     = "url"
	KindPrivate = "private"
)

// About is what a target is.
type About struct {
	Engine      string // study.Postgres, ...
	Version     string // 15.18
	VersionFull string // as the server calls itself; of the RDS API, the engine's description
	Kind        string
	Class       string // that of variants that name none; "" without classes
	// Notes are for the user: what this target cannot do as well as another.
	Notes []string
}

// Map is About for result.Env.
func (a About) Map() map[string]string {
	m := map[string]string{"name": a.Engine, "version": a.Version, "version_full": a.VersionFull}
	if a.Class != "" {
		m["class"] = a.Class
	}
	return m
}

// Lease is a server for one trial.
type Lease struct {
	// Server is the way that the variant's clients take, Direct the one without anything
	// between. They are the same for most.
	Server, Direct dial.Server
	// Settings are the engine's, as the server tells them, without secrets and without
	// those that name this server only.
	Settings map[string]string
	// PIDs are processes that the lab started between client and server on this machine.
	PIDs []int
	// Release ends the lease. It may be called with a ctx of its own, and must be called.
	Release func(ctx context.Context) error
}

// Options are for all kinds of targets; each reads what concerns it.
type Options struct {
	Engine        string // study.Postgres, ...; a URL knows its own
	EngineVersion string // "" for the service's default
	// Step is told what happens next, for a display; nil for nobody.
	Step func(text string)

	// Endpoint is the URL of the API, "" for Amazon's. CredentialsFile is in the form of
	// AWS's shared credentials, "" for the usual places.
	Endpoint, Region, CredentialsFile string
	// Class and StorageGiB are those of variants that name none, "" and 0 for ones that
	// suit the service and the data.
	Class      string
	StorageGiB int
	// SubnetGroup and SecurityGroups of Amazon's, whose default ones may not let us in;
	// Public gives instances an address that can be reached from outside.
	SubnetGroup    string
	SecurityGroups []string
	Public         bool

	// PasswordFile holds the password of a URL that has none.
	PasswordFile string
	// WritesAllowed has a study run in the database that the URL names, which it did not
	// create and does not reset.
	WritesAllowed bool

	// Program is the service's, "" for this one. Folder is where its folder is made, ""
	// for the usual place of temporary files.
	Program, Folder string

	// Others has Clean remove also what belongs to a lab of which this machine cannot
	// know whether it still runs.
	Others bool
}

func (o Options) step(text string) {
	if o.Step != nil {
		o.Step(text)
	}
}

// closeTime bounds Close: on Amazon's service an instance takes minutes to go.
const closeTime = 30 * time.Minute

// closing gives Close a time of its own.
func closing(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), closeTime)
}

// applies says whether a variant is one of this engine's.
func applies(engines []string, engine string) bool {
	if len(engines) == 0 {
		return true
	}
	for _, e := range engines {
		if e == engine {
			return true
		}
	}
	return false
}

// statements are a variant's own for an engine: first those for all.
func statements(v study.Variant, engine string) []string {
	return append(append([]string{}, v.SQL[""]...), v.SQL[engine]...)
}
