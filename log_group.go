package kurabe

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// LogGroup is the record of a group of log streams. The events themselves lie on hosts.
type LogGroup struct {
	Name          string    `json:"name"`
	CreatedAt     time.Time `json:"createdAt"`
	RetentionDays int       `json:"retentionDays,omitempty"` // 0: events are kept until there is no room
	Tags          []Tag     `json:"tags,omitempty"`
	Protected     bool      `json:"protected,omitempty"` // it cannot be deleted
	// DeletedAt is when a group of this name was deleted, as long as there are hosts that may not
	// know it (Away). Their streams that are not younger belong to that group.
	DeletedAt time.Time `json:"deletedAt,omitzero"`
	Away      []HostID  `json:"away,omitempty"`
	// Gone says that there is no group of this name: the record tells Away of the deletion.
	Gone bool `json:"gone,omitempty"`
}

// OSMetricsGroup is the log group of Enhanced Monitoring, which has a stream for each server by its
// DbiResourceId. OSMetricsDays is for how long it is kept, unless users say otherwise.
const (
	OSMetricsGroup = "RDSOSMetrics"
	OSMetricsDays  = 30
)

// LogRetentionDays are the retention times of CloudWatch Logs.
var LogRetentionDays = []int{1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653}

// Bounds of CloudWatch Logs.
const (
	LogNameMax         = 512     // characters of the name of a group or stream
	LogEventBytesMax   = 1 << 20 // of a message
	LogBatchBytesMax   = 1 << 20 // of a batch, with LogEventOverhead for each event
	LogBatchEventsMax  = 10_000
	LogEventOverhead   = 26
	LogPatternBytesMax = 1024
)

var logGroupName = regexp.MustCompile(`^[.\-_/#A-Za-z0-9]{1,512}$`)

// CheckLogGroupName says why a group cannot have a name.
func CheckLogGroupName(name string) error {
	if len(name) > LogNameMax {
		return Errorf(CodeInvalidParameterValue, "1 validation error detected: Value '%.1000s' at 'logGroupName' failed to satisfy constraint: Member must have length less than or equal to %d", name, LogNameMax)
	}
	if !logGroupName.MatchString(name) {
		return Errorf(CodeInvalidParameterValue, "1 validation error detected: Value '%.100s' at 'logGroupName' failed to satisfy constraint: Member must satisfy regular expression pattern: [\\.\\-_/#A-Za-z0-9]+", name)
	}
	return nil
}

// CheckLogStreamName says why a stream cannot have a name.
func CheckLogStreamName(name string) error {
	if name == "" || len(name) > LogNameMax || strings.ContainsAny(name, ":*") || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' }) {
		return Errorf(CodeInvalidParameterValue, "1 validation error detected: Value '%.100s' at 'logStreamName' failed to satisfy constraint: Member must satisfy regular expression pattern: [^:*]* and have a length from 1 to %d", name, LogNameMax)
	}
	return nil
}

// CheckLogRetention says why a retention time cannot be had.
func CheckLogRetention(days int) error {
	if !slices.Contains(LogRetentionDays, days) {
		return Errorf(CodeInvalidParameterValue, "%d is no retention in days; valid values are %v", days, LogRetentionDays)
	}
	return nil
}
