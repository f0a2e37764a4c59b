package target

import (
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"time"

	"kurabe/lab/study"
)

// Features that a variant may need and no target gives yet.
const needActivityStream = "activity-stream"

// packages are the Debian packages of programs that a variant may need.
var packages = map[string]string{study.EndpointPgBouncer: "pgbouncer", study.EndpointHAProxy: "haproxy", study.ToolPtOSC: "percona-toolkit"}

// notInstalled says so, and what to do.
func notInstalled(program string) string {
	return fmt.Sprintf("%[1]s is not installed on this machine: it is in the Debian package %[2]s (as root: apt-get install %[2]s)", program, packages[program])
}

// lacking says which program of this machine a variant lacks, "" when none.
func lacking(v study.Variant, engine string) string {
	var programs []string
	if k, ok := betweenKinds[v.Endpoint]; ok {
		if !slices.Contains(k.engines, engine) {
			return fmt.Sprintf("%s speaks to %s only", k.title, strings.Join(k.engines, ", "))
		}
		programs = append(programs, k.name)
	}
	for _, name := range []string{v.Tool, v.Needs} {
		if packages[name] != "" && !slices.Contains(programs, name) {
			programs = append(programs, name)
		}
	}
	for _, name := range programs {
		if _, ok := lookFor(name); !ok {
			return notInstalled(name)
		}
	}
	return ""
}

// badEndpoint says what is wrong with an endpoint's form, "" when nothing is.
func badEndpoint(endpoint string) string {
	if _, ours := betweenKinds[endpoint]; ours || endpoint == "" || endpoint == study.EndpointProxy {
		return ""
	}
	if host, port, err := net.SplitHostPort(endpoint); err != nil || host == "" || port == "" {
		return fmt.Sprintf("endpoint %q is none of %s, %s, HOST:PORT", endpoint, betweenNames(), study.EndpointProxy)
	}
	return ""
}

var createExtension = regexp.MustCompile(`(?i)^\s*create\s+extension\s+(?:if\s+not\s+exists\s+)?"?([a-z0-9_-]+)"?`)

// extensions that a variant creates.
func extensions(v study.Variant, engine string) []string {
	var list []string
	for _, text := range statements(v, engine) {
		if m := createExtension.FindStringSubmatch(text); m != nil {
			list = append(list, strings.ToLower(m[1]))
		}
	}
	return list
}

// The size of a study's data by rule of thumb, for whether a disk has room: a unit of
// pgbench's scale is 16 MB with its index, 10,000 rows of the others are 2.5 MB.
const (
	tpcbScaleBytes = 16 << 20
	rowBytes       = 250
	scaleRows      = 10000
)

// dataBytes is about how much the data of a study takes.
func dataBytes(s *study.Study) int64 {
	seen := map[string]bool{}
	var total int64
	for _, w := range s.Workloads {
		size := int64(max(w.Rows, w.Scale*scaleRows)) * rowBytes
		if w.Generator == study.GeneratorPgbench || strings.Contains(w.Kit, "tpcb") {
			size = int64(max(1, w.Scale)) * tpcbScaleBytes
		}
		key := fmt.Sprint(w.Generator, " ", w.Kit, " ", w.Scale, " ", w.Rows)
		if !seen[key] {
			total += size
		}
		seen[key] = true
	}
	return total
}

// loggedPerSecond is of a server that logs every statement: 65536 of them, of 256 bytes.
const loggedPerSecond = 16 << 20

// logBytes is about what the logs of one trial take at the most, where a variant has the
// server log statements; they are part of the instance and go with it.
func logBytes(s *study.Study) int64 {
	for _, v := range s.Variants {
		for name := range v.Parameters {
			if strings.Contains(name, "log") {
				p := s.Plan
				longest := time.Duration(max(p.Warm, p.WarmMax) + p.Measure + p.After)
				return int64(longest.Seconds() * loggedPerSecond)
			}
		}
	}
	return 0
}

// DataBytes is about what a study's data takes once.
func DataBytes(s *study.Study) int64 { return dataBytes(s) }

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
