package study

import (
	"fmt"
	"slices"
	"time"
)

// Engines that a study can be asked of.
const (
	Postgres = "postgres"
	MariaDB  = "mariadb"
	MySQL    = "mysql"
)

// Study is one question, complete: two runs of it differ only in chance and machine.
type Study struct {
	Name     string   `yaml:"name" json:"name"`
	Question string   `yaml:"question" json:"question"`
	Engines  []string `yaml:"engines" json:"engines"`
	// Primary decides the verdict; it is declared before anything is measured. Metrics
	// are the others, which are shown as exploratory. A workload may have a primary one of
	// its own; ask PrimaryOf.
	Primary Primary  `yaml:"primary" json:"primary"`
	Metrics []string `yaml:"metrics,omitempty" json:"metrics,omitempty"`
	// Baseline is the name of the variant that all others are compared with. Its twin,
	// the same recipe under the name that Twin gives, is added to every study.
	Baseline  string      `yaml:"baseline" json:"baseline"`
	Variants  []Variant   `yaml:"variants" json:"variants"`
	Workloads []Workload  `yaml:"workloads" json:"workloads"`
	Plan      Plan        `yaml:"plan" json:"plan"`
	Published []Published `yaml:"published,omitempty" json:"published,omitempty"`
	// Quick and AsPublished say what becomes of the study under --quick and
	// --as-published. Neither is in a result file: what was run is there, adjusted.
	Quick       *Adjustment `yaml:"quick,omitempty" json:"-"`
	AsPublished *Adjustment `yaml:"as_published,omitempty" json:"-"`
}

// Primary is the metric that decides, and from which ratio on it is a cost: 0.03 is
// three percent in the direction that hurts.
type Primary struct {
	Metric string  `yaml:"metric" json:"metric"`
	Margin float64 `yaml:"margin" json:"margin"`
}

// PrimaryOf is what decides under a workload: its own, or the study's.
func (s *Study) PrimaryOf(workload string) Primary {
	for i := range s.Workloads {
		if w := &s.Workloads[i]; w.Name == workload && w.Primary != nil {
			return *w.Primary
		}
	}
	return s.Primary
}

// MetricsOf are the metrics of a workload, the primary one first, each once. The study's
// primary one is among them, if only to be looked at.
func (s *Study) MetricsOf(workload string) []string {
	all := []string{s.PrimaryOf(workload).Metric}
	for _, name := range append([]string{s.Primary.Metric}, s.Metrics...) {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// Variant is a recipe applied to a fresh server.
type Variant struct {
	Name  string `yaml:"name" json:"name"`
	Title string `yaml:"title,omitempty" json:"title,omitempty"`
	// Parameters of the engine, by the name that the RDS API uses.
	Parameters map[string]string `yaml:"parameters,omitempty" json:"parameters,omitempty"`
	// SQL runs in the study's database after the data is there, by the engine it is for;
	// the key "" is for all.
	SQL map[string][]string `yaml:"sql,omitempty" json:"sql,omitempty"`
	// Class, IOPS and Storage need a target that has classes.
	Class       string `yaml:"class,omitempty" json:"class,omitempty"`
	StorageType string `yaml:"storage_type,omitempty" json:"storage_type,omitempty"`
	IOPS        int    `yaml:"iops,omitempty" json:"iops,omitempty"`
	StorageGiB  int    `yaml:"storage_gib,omitempty" json:"storage_gib,omitempty"`
	// Endpoint is what stands between client and server: "" for nothing, "pgbouncer" or
	// "haproxy" for one that the lab starts, "proxy" for the service's own, or HOST:PORT of
	// one that is there.
	Endpoint string `yaml:"endpoint,omitempty" json:"endpoint,omitempty"`
	// ActivityStream is the mode of the service's activity stream, "sync" or "async", ""
	// for none.
	ActivityStream string `yaml:"activity_stream,omitempty" json:"activity_stream,omitempty"`
	// Change is made while the load runs, by engine; a study with changes has the phases
	// idle, during and after. {table} is Workload.Table. Tool makes it instead,
	// "pt-online-schema-change", from what follows ALTER TABLE {table}.
	Change map[string][]string `yaml:"change,omitempty" json:"change,omitempty"`
	Tool   string              `yaml:"tool,omitempty" json:"tool,omitempty"`
	// Changed are questions, by engine, each of which is answered by 1 once the change is
	// there. They are asked after the load has ended; another answer fails the trial.
	Changed map[string][]string `yaml:"changed,omitempty" json:"changed,omitempty"`
	// Engines limits the variant to some of the study's; empty for all.
	Engines []string `yaml:"engines,omitempty" json:"engines,omitempty"`
	// Needs names a feature that a target may lack, such as "activity-stream". A variant
	// that cannot be had is shown as such, never dropped.
	Needs string `yaml:"needs,omitempty" json:"needs,omitempty"`
	// TwinOf is the baseline's name in its twin, "" in all others. Not read from YAML.
	TwinOf string `yaml:"-" json:"twin_of,omitempty"`
}

// Features that a variant may need of its target.
const (
	NeedActivityStream = "activity-stream"
	NeedProxy          = "proxy"     // the service's own
	NeedSuperuser      = "superuser" // a login that may do anything
)

// Endpoints with a name.
const (
	EndpointPgBouncer = "pgbouncer"
	EndpointHAProxy   = "haproxy"
	EndpointProxy     = "proxy"
)

// ToolPtOSC makes a change online.
const ToolPtOSC = "pt-online-schema-change"

// Generators of load.
const (
	GeneratorOwn      = "kurabe"
	GeneratorPgbench  = "pgbench"
	GeneratorSysbench = "sysbench"
)

// Modes of load. Open: arrivals by a schedule that does not wait for answers; latency
// counts from the scheduled start. Closed: each client sends when its answer is there.
// Series: one client, Requests times, one after the other.
const (
	ModeOpen   = "open"
	ModeClosed = "closed"
	ModeSeries = "series"
)

// Arrivals of open load.
const (
	ArrivalPoisson  = "poisson"
	ArrivalConstant = "constant"
)

// Workload is a load. What a generator cannot do is refused when the study is read.
type Workload struct {
	Name      string   `yaml:"name" json:"name"`
	Title     string   `yaml:"title,omitempty" json:"title,omitempty"`
	Generator string   `yaml:"generator" json:"generator"`
	Engines   []string `yaml:"engines,omitempty" json:"engines,omitempty"`
	// Primary decides the verdicts under this workload, in place of the study's: what says
	// most of many requests in series need not be what says most of a crowd.
	Primary *Primary `yaml:"primary,omitempty" json:"primary,omitempty"`
	// Kit is one of the generator's own (load.Kits; pgbench's and sysbench's built-in
	// scripts). Script is a transaction of one's own, one statement a line, in the notation
	// of pgbench: \set name random(1, 100 * :scale), then :name in statements.
	Kit    string `yaml:"kit,omitempty" json:"kit,omitempty"`
	Script string `yaml:"script,omitempty" json:"script,omitempty"`
	// Setup is SQL that makes the data of a script, once, before the snapshot.
	Setup    map[string][]string `yaml:"setup,omitempty" json:"setup,omitempty"`
	Protocol string              `yaml:"protocol,omitempty" json:"protocol,omitempty"` // simple, extended, prepared
	Connect  bool                `yaml:"connect,omitempty" json:"connect,omitempty"`   // a new connection for each transaction

	Mode     string  `yaml:"mode" json:"mode"`
	Clients  int     `yaml:"clients" json:"clients"`
	Rate     float64 `yaml:"rate,omitempty" json:"rate,omitempty"` // transactions a second, open only
	Arrival  string  `yaml:"arrival,omitempty" json:"arrival,omitempty"`
	Requests int     `yaml:"requests,omitempty" json:"requests,omitempty"` // series only
	// Scale is the size of the data in the kit's own unit: 100,000 accounts of pgbench,
	// 10,000 rows of sysbench's tables and of most kits. Rows is the exact number where a
	// kit has but one table.
	Scale int `yaml:"scale,omitempty" json:"scale,omitempty"`
	Rows  int `yaml:"rows,omitempty" json:"rows,omitempty"`
}

// Table is the table that the load of such a workload writes to, for {table} in the
// change of a variant.
func (w Workload) Table() string { return fmt.Sprintf("lab_writers_%d", w.Rows) }

// Plan says how much is measured.
type Plan struct {
	BlocksMin int `yaml:"blocks_min" json:"blocks_min"` // 6 for a verdict
	BlocksMax int `yaml:"blocks_max" json:"blocks_max"`
	// TargetHalfwidth ends the run when the primary interval of every variant is that
	// narrow, as a share: 0.02 is ±2 %. 0 measures BlocksMax.
	TargetHalfwidth float64  `yaml:"target_halfwidth,omitempty" json:"target_halfwidth,omitempty"`
	Warm            Duration `yaml:"warm" json:"warm"`         // at the least; WarmMax at the most
	WarmMax         Duration `yaml:"warm_max" json:"warm_max"` // then the trial is "unsettled"
	Measure         Duration `yaml:"measure" json:"measure"`
	// DuringMin is how long the phase during lasts at the least, counted from the
	// beginning of the change: one that is instant shows its cost in those after it.
	DuringMin Duration `yaml:"during_min,omitempty" json:"during_min,omitempty"`
	// After is how long the load goes on after a change.
	After Duration `yaml:"after,omitempty" json:"after,omitempty"`
	Seed  uint64   `yaml:"seed,omitempty" json:"seed,omitempty"` // 0: chosen at the start, and recorded
}

// Duration is a time.Duration that reads and writes "30s".
type Duration time.Duration

// Published is a row of the measurement that the study answers to.
type Published struct {
	Source   string             `yaml:"source" json:"source"`
	Variant  string             `yaml:"variant" json:"variant"` // of this study
	Workload string             `yaml:"workload,omitempty" json:"workload,omitempty"`
	Label    string             `yaml:"label" json:"label"`   // as it was called there
	Values   map[string]float64 `yaml:"values" json:"values"` // by metric; "ratio" relative to the baseline
}

// Twin is the name of a baseline's twin.
func Twin(baseline string) string { return baseline + "′" }
