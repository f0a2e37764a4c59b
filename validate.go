package kurabe

import (
	"crypto/rand"
	"encoding/base32"
	"regexp"
	"slices"
	"strings"
)

// The name rules are RDS's; source: the RDS API reference, CreateDBInstance.
var (
	identifierRule   = regexp.MustCompile(`^[a-z](-?[a-z0-9])*$`)
	postgresUserRule = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)
	mariadbUserRule  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)
	postgresDBRule   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	mariadbDBRule    = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)
)

// Lengths, in bytes, from the same source.
const (
	maxIdentifier      = 63
	maxGroupName       = 255
	maxPostgresName    = 63
	maxMariaDBUser     = 16
	maxMariaDBDatabase = 64
	minPassword        = 8
	maxPostgresPass    = 128
	maxMariaDBPass     = 41
	maxTags            = 50
	maxTagKey          = 128
	maxTagValue        = 256
)

// reservedUsers are names that the engines or the service keep. RDS reserves
// words of the engine too ("user", "admin" for PostgreSQL).
var reservedUsers = map[EngineName][]string{
	Postgres: {"admin", "all", "any", "authorization", "both", "case", "current_role", "current_user", "default", "group", "kurabe",
		"none", "postgres_fdw", "public", "rdsadmin", "rdsrepladmin", "rds_superuser", "rds_replication", "rds_iam",
		"rds_password", "rds_ad", "rdstopmgr", "rdsproxyadmin", "rdswriteforwarduser", "replication", "session_user", "table", "user", "where"},
	MariaDB: {"root", "rdsadmin", "rdsrepladmin", "rdsproxyadmin", "rds_superuser_role", "mysql", "mariadb", "kurabe",
		"public", "replication", "user", "default", "current_user"},
}

// reservedUserPrefixes begin the names of accounts that the engine or the service makes. The
// drivers ask the same list (ReservedUser): a name that passes here and not there would be an
// instance that is never made.
var reservedUserPrefixes = map[EngineName][]string{
	Postgres: {"pg_", "rds_", "rdsprobe_"},
	MariaDB:  {"rdsbackup_", "rdslook_", "rdsmember_", "rdsprivate_", "rdsprobe_"},
}

// reservedDatabases are databases that the engine or the service keeps.
var reservedDatabases = map[EngineName][]string{
	Postgres: {"template0", "template1", "rdsadmin"},
	MariaDB:  {"mysql", "sys", "information_schema", "performance_schema", "rdsadmin", "innodb", "test"},
}

// FoldIdentifier lower-cases a name and checks it by RDS's rule: 1 to 63
// letters, digits and hyphens, a letter first, no hyphen last or doubled.
// parameter is the API's name of the field.
func FoldIdentifier(parameter, name string) (string, error) {
	folded := strings.ToLower(name)
	if err := checkIdentifier(parameter, folded, maxIdentifier); err != nil {
		return "", err
	}
	return folded, nil
}

// checkIdentifier says in RDS's words what is wrong with a name in lower case.
func checkIdentifier(parameter, folded string, longest int) error {
	switch {
	case len(folded) > longest:
		return Errorf(CodeInvalidParameterValue, WordsTooLong, parameter, longest)
	case !identifierRule.MatchString(folded):
		return Errorf(CodeInvalidParameterValue, WordsIdentifier, parameter)
	}
	return nil
}

// FoldGroupName is FoldIdentifier for parameter, option and subnet groups: up
// to 255 characters. Names that begin with "default." are the service's own.
func FoldGroupName(parameter, name string) (string, error) {
	folded := strings.ToLower(name)
	if err := checkIdentifier(parameter, folded, maxGroupName); err != nil {
		return "", err
	}
	if folded == "default" {
		return "", Errorf(CodeInvalidParameterValue, "The parameter %s must not be \"default\", a reserved name", parameter)
	}
	return folded, nil
}

// CheckMasterUsername checks MasterUsername for the engine.
func CheckMasterUsername(engine EngineName, name string) error {
	rule, longest := postgresUserRule, maxPostgresName
	if engine == MariaDB {
		rule, longest = mariadbUserRule, maxMariaDBUser
	}
	if len(name) > longest || !rule.MatchString(name) {
		return Errorf(CodeInvalidParameterValue, "The parameter MasterUsername is not a valid identifier for engine %s: 1 to %d letters, digits or underscores, a letter first", engine, longest)
	}
	if ReservedUser(engine, name) {
		return Errorf(CodeInvalidParameterValue, WordsReservedUser, name)
	}
	return nil
}

// ReservedUser says whether the engine or the service keeps a name of an account.
func ReservedUser(engine EngineName, name string) bool {
	lower := strings.ToLower(name)
	for _, prefix := range reservedUserPrefixes[engine] {
		if strings.HasPrefix(lower, prefix) {
			return true
		}
	}
	return contains(reservedUsers[engine], lower)
}

// ReservedDatabase says the same of a name of a database.
func ReservedDatabase(engine EngineName, name string) bool {
	return contains(reservedDatabases[engine], strings.ToLower(name))
}

// CheckDatabaseName checks DBName for the engine; "" means no database.
func CheckDatabaseName(engine EngineName, name string) error {
	if name == "" {
		return nil
	}
	rule, longest := postgresDBRule, maxPostgresName
	if engine == MariaDB {
		rule, longest = mariadbDBRule, maxMariaDBDatabase
	}
	if len(name) > longest || !rule.MatchString(name) {
		return Errorf(CodeInvalidParameterValue, "The parameter DBName must begin with a letter and contain only letters, digits and underscores, at most %d of them, for engine %s", longest, engine)
	}
	if ReservedDatabase(engine, name) {
		return Errorf(CodeInvalidParameterValue, WordsReservedDatabase, name)
	}
	return nil
}

// CheckMasterPassword checks MasterUserPassword for the engine. The message
// never holds the password.
func CheckMasterPassword(engine EngineName, password string) error {
	longest := maxPostgresPass
	if engine == MariaDB {
		longest = maxMariaDBPass
	}
	if len(password) < minPassword {
		return Errorf(CodeInvalidParameterValue, WordsPasswordShort, minPassword)
	}
	if len(password) > longest {
		return Errorf(CodeInvalidParameterValue, WordsPasswordLong, longest)
	}
	for _, c := range []byte(password) {
		if c <= ' ' || c > '~' || c == '/' || c == '@' || c == '"' {
			return Errorf(CodeInvalidParameterValue, WordsPasswordText)
		}
	}
	return nil
}

// CheckPort checks a requested port.
func CheckPort(parameter string, port int) error {
	if port < 1150 || port > 65535 {
		return Errorf(CodeInvalidParameterValue, "%s must be from 1150 to 65535, not %d", parameter, port)
	}
	return nil
}

// WithTags returns tags with more of them: known keys have the new value in their place, new ones
// follow in the order given.
func WithTags(have, more []Tag) []Tag {
	out := slices.Clone(have)
	for _, t := range more {
		if at := slices.IndexFunc(out, func(h Tag) bool { return h.Key == t.Key }); at >= 0 {
			out[at] = t
			continue
		}
		out = append(out, t)
	}
	return out
}

// CheckTags checks a resource's tags by AWS's rules.
func CheckTags(tags []Tag) error {
	if len(tags) > maxTags {
		return Errorf(CodeInvalidParameterValue, "A resource has at most %d tags", maxTags)
	}
	seen := map[string]bool{}
	for _, t := range tags {
		switch {
		case t.Key == "" || len([]rune(t.Key)) > maxTagKey:
			return Errorf(CodeInvalidParameterValue, "Tag keys have 1 to %d characters", maxTagKey)
		case len([]rune(t.Value)) > maxTagValue:
			return Errorf(CodeInvalidParameterValue, "The value of tag %q is longer than %d characters", t.Key, maxTagValue)
		case strings.HasPrefix(strings.ToLower(t.Key), "aws:"):
			return Errorf(CodeInvalidParameterValue, "Tag keys beginning with \"aws:\" are reserved: %q", t.Key)
		case seen[t.Key]:
			return Errorf(CodeInvalidParameterValue, "Duplicate tag key %q", t.Key)
		}
		seen[t.Key] = true
	}
	return nil
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// roleARN says whether a text looks like the ARN of a role. There are none here to compare with.
func roleARN(s string) bool {
	return strings.HasPrefix(s, "arn:") && strings.Contains(s, ":role/") && len(s) <= 2048
}

var monitoringIntervals = []int{0, 1, 5, 10, 15, 30, 60}

// CheckMonitoring refuses an interval that RDS has not, and one of interval and role without the
// other.
func CheckMonitoring(m Monitoring) error {
	switch {
	case !slices.Contains(monitoringIntervals, m.IntervalSeconds):
		return Errorf(CodeInvalidParameterValue, "Invalid MonitoringInterval: %d. Valid values are 0, 1, 5, 10, 15, 30 and 60.", m.IntervalSeconds)
	case m.IntervalSeconds != 0 && m.Role == "":
		return Errorf(CodeInvalidParameterCombo, WordsMonitoringRole)
	case m.IntervalSeconds == 0 && m.Role != "":
		return Errorf(CodeInvalidParameterCombo, WordsMonitoringInterval)
	case m.Role != "" && !roleARN(m.Role):
		return Errorf(CodeInvalidParameterValue, "MonitoringRoleArn is not the ARN of a role: %.80q", m.Role)
	}
	return nil
}

// ChangeLogTypes returns, in order, the logs that are exported after a change, nil for none.
func ChangeLogTypes(engine EngineName, version string, have, on, off []string) ([]string, error) {
	var wrong []string
	for _, t := range slices.Concat(on, off) {
		switch {
		case slices.Contains(on, t) && slices.Contains(off, t):
			return nil, Errorf(CodeInvalidParameterCombo, "The log type %.80q is in EnableLogTypes and in DisableLogTypes.", t)
		case !slices.Contains(engine.LogTypes(), t):
			wrong = append(wrong, "'"+t[:min(len(t), 80)]+"'")
		}
	}
	if len(wrong) > 0 {
		return nil, Errorf(CodeInvalidParameterCombo, WordsLogTypes, strings.Join(wrong, ", "), engine, version, strings.Join(engine.LogTypes(), ", "))
	}
	var list []string
	for _, t := range engine.LogTypes() {
		if slices.Contains(on, t) || slices.Contains(have, t) && !slices.Contains(off, t) {
			list = append(list, t)
		}
	}
	return list, nil
}

// InstanceID is the immutable id of an instance, AWS's DbiResourceId
// ("db-" and 26 capital letters and digits). A name may change; the id never.
type InstanceID string

// HostID names a machine that runs engines.
type HostID string

// Generation numbers the assignments of one instance. An agent refuses a lower
// one, and the same one with other content.
type Generation int64

// NewInstanceID returns a fresh random id with 128 bits of entropy.
func NewInstanceID() InstanceID {
	var b [16]byte
	rand.Read(b[:]) // never fails since Go 1.24
	return InstanceID("db-" + base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))
}
