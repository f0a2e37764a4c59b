package postgres

import (
	"fmt"
	"regexp"
	"strconv"

	"kurabe"
)

const (
	majorMin = 13
	majorMax = 18
)

var versionLine = regexp.MustCompile(`\(PostgreSQL\) (\d+)(\.\d+|\w+)?`)

// parseVersion reads the answer of "postgres --version".
func parseVersion(line string) (version string, major int, err error) {
	m := versionLine.FindStringSubmatch(line)
	if m == nil {
		return "", 0, fmt.Errorf("no version in %q", line)
	}
	major, err = strconv.Atoi(m[1])
	return m[1] + m[2], major, err
}

// majorOf is the number that decides what a server understands. A version that
// did not come from Discover counts as the oldest.
func majorOf(v kurabe.EngineVersion) int {
	if major, err := strconv.Atoi(v.Major()); err == nil {
		return major
	}
	return majorMin
}
