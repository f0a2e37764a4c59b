package kurabe

import (
	"cmp"
	"strconv"
	"strings"
)

// EngineName is an engine as the RDS API spells it.
type EngineName string

// The engines of the service.
const (
	Postgres EngineName = "postgres"
	MariaDB  EngineName = "mariadb"
)

// EngineVersion is one installed version of an engine, as a host reports it.
type EngineVersion struct {
	Engine  EngineName `json:"engine"`
	Version string     `json:"version"` // full: "15.18", "10.11.19"
	Family  string     `json:"family"`  // parameter group family: "postgres15", "mariadb10.11"
	BinDir  string     `json:"binDir"`
	Default bool       `json:"default"` // the version a create without EngineVersion gets
	// Locales are the CharacterSetName values that this version can create.
	Locales []string `json:"locales,omitempty"`
	// Extensions are the extensions that a master user may create (PostgreSQL).
	Extensions []string `json:"extensions,omitempty"`
	// Ready says that the template exists and the catalogue was read, so a
	// create is a copy. Reason says why not.
	Ready  bool   `json:"ready"`
	Reason string `json:"reason,omitempty"`
}

// Major is the part of the version that names the family: "15", "10.11".
func (v EngineVersion) Major() string { return strings.TrimPrefix(v.Family, string(v.Engine)) }

// DefaultPort is the engine's registered port.
func (e EngineName) DefaultPort() int {
	if e == MariaDB {
		return 3306
	}
	return 5432
}

// RestartsForLog says whether the server must restart before its log can be kept,
// or no longer is: MariaDB writes a binary log for it, PostgreSQL's is there anyway.
func (e EngineName) RestartsForLog() bool { return e == MariaDB }

// CopiesWhileCommitsWait says whether a server whose commits wait can be copied: a copy of
// MariaDB begins at a moment at which none is under way.
func (e EngineName) CopiesWhileCommitsWait() bool { return e == Postgres }

// ShowsTopology says whether the database tells drivers which servers there are: AWS's driver
// wrappers ask PostgreSQL's rds_tools; of MariaDB they know no cluster.
func (e EngineName) ShowsTopology() bool { return e == Postgres }

// LogTypes are the logs that can be exported to log groups, in order.
func (e EngineName) LogTypes() []string {
	if e == MariaDB {
		return []string{"error", "general", "slowquery"}
	}
	return []string{"postgresql"}
}

// LicenseModel is what DescribeDBInstances says of the engine's licence.
func (e EngineName) LicenseModel() string {
	if e == MariaDB {
		return "general-public-license"
	}
	return "postgresql-license"
}

// CompareVersions compares dotted numbers: "10.11.19" comes after "10.6.2".
func CompareVersions(a, b string) int {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for n := 0; n < len(as) && n < len(bs); n++ {
		x, _ := strconv.Atoi(as[n])
		y, _ := strconv.Atoi(bs[n])
		if d := cmp.Compare(x, y); d != 0 {
			return d
		}
	}
	return cmp.Compare(len(as), len(bs))
}
