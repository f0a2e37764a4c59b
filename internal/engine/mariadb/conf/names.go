package conf

import "regexp"

var switchedOn = regexp.MustCompile(`(?i)^(1|on|true)$`)

// IsOn says whether the value of a switch, in a file or of a server, is on.
func IsOn(value string) bool { return switchedOn.MatchString(value) }

// TempDir is a folder for temporary files below the data folder, so that they
// count as the instance's storage. A name with a dot is no schema.
const TempDir = ".tmp"

// SystemSchema has the accounts, and is the service's.
const SystemSchema = "mysql"

// EventScheduler is the setting by which events of users run.
const EventScheduler = "event_scheduler"

// ProbePrefix begins the names of the probe's users and schemas. The rest is
// random, so that no name of a user is ever taken for one.
const ProbePrefix = "rdsprobe_"

// ProbeTable is where the probe writes: it stands in the system schema since the
// template was made. The probe makes none at each start: definitions right after a
// recovery, and a death soon after, are how MariaDB is damaged most easily (DESIGN.md,
// section 10).
const ProbeTable = "rds_probe"
