package postgres

import (
	"cmp"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"kurabe"
	"kurabe/internal/engine"
)

// failures tell what a last message is about, most telling first: a server that
// cannot have its port says so, and then also that it gives up. The messages
// are English because lc_messages is C.
var failures = []struct {
	kind kurabe.FailureKind
	text *regexp.Regexp
}{
	{kurabe.FailureStorage, regexp.MustCompile(`No space left on device|Disk quota exceeded`)},
	{kurabe.FailureNetwork, regexp.MustCompile(`could not (bind|create|listen on) .*(IPv4|IPv6|TCP/IP|socket)|Cannot assign requested address|Address already in use|could not translate host name`)},
	{kurabe.FailureParameters, regexp.MustCompile(`configuration file .* contains errors|invalid value for parameter|unrecognized configuration parameter|is outside the valid range|parameter .* (requires|cannot be|must be)|could not (access|load) (file|library)|could not (map anonymous shared memory|create shared memory segment|reserve shared memory)|Cannot allocate memory|must be less than|requires "?wal_level|cannot be enabled when|is not a valid .*(setting|value)|max_wal_senders|could not create semaphores|insufficient (shared memory|semaphores)`)},
}

var severity = regexp.MustCompile(`(FATAL|PANIC|ERROR|LOG|HINT|DETAIL|WARNING):\s+(.*)$`)

// summary is what the server says after it has named the cause.
var summary = regexp.MustCompile(`configuration file .* contains errors|could not create any TCP/IP sockets|no socket created for listening|database system is shut down|could not load pg_hba.conf`)

// StartFailure implements engine.Driver. The reason is the server's own words:
// the line that names the cause, and its detail if there is one.
func (d *Driver) StartFailure(logTail string) (kurabe.FailureKind, string) {
	lines := lastStart(strings.Split(logTail, "\n"))
	for _, f := range failures {
		// A cause before its summary; without a cause the summary.
		for _, wantSummary := range []bool{false, true} {
			for n, text := range lines {
				if f.text.MatchString(text) && summary.MatchString(text) == wantSummary {
					return f.kind, withDetail(lines, n)
				}
			}
		}
	}
	for n, text := range slices.Backward(lines) {
		switch {
		case crash.MatchString(text):
			return kurabe.FailureOther, crashCause(lines[:n+1])
		case isFatal(text):
			return kurabe.FailureOther, withDetail(lines, n)
		}
	}
	return kurabe.FailureOther, engine.NoReason
}

// crashCause is why the server ends its processes, where the last line says that it does
// so: what the one that died said itself, else how it died. Without the detail, in which a
// statement of a client can be.
func crashCause(lines []string) string {
	told := len(lines) - 1
	for n, text := range slices.Backward(lines) {
		m := severity.FindStringSubmatch(text)
		switch {
		case isFatal(text):
			return withDetail(lines, n)
		case crash.MatchString(text), died.MatchString(text):
			told = n
		case m != nil && m[1] == "LOG": // of the time before: a process that was killed has said nothing
			return message(lines[told])
		}
	}
	return message(lines[told])
}

// redirected is the last line of the start log of a server whose own log opened.
const redirected = "redirecting log output to logging collector process"

// lastStart keeps what the newest start said and drops the words of sessions and
// of a follower's receiver, who end with FATAL for reasons of their own. The text is the start log, fresh
// at each start, and then the tail of a log that earlier starts wrote into too.
func lastStart(lines []string) []string {
	lines = slices.DeleteFunc(lines, func(text string) bool { return session.MatchString(text) || receiver.MatchString(text) })
	at := slices.IndexFunc(lines, func(text string) bool { return strings.Contains(text, redirected) })
	if at < 0 {
		// It ended before its own log opened: the first end is its own.
		if end := slices.IndexFunc(lines, isFatal); end >= 0 {
			return lines[:min(end+1+detailLinesMax, len(lines))]
		}
		return lines
	}
	for n, text := range slices.Backward(lines) {
		if strings.Contains(text, "starting PostgreSQL") {
			return lines[n:]
		}
	}
	return lines[at:]
}

// session is a line whose prefix names a user and a database.
var session = regexp.MustCompile(`^\S+ \S+ \S+:[^@]*:[^@:]+@[^@:]+:\[\d+\]:`)

// receiver is what the process says that brings a follower its log; another takes its place.
var receiver = regexp.MustCompile(`FATAL:\s+.*(the primary|WAL stream|walreceiver)`)

var crash = regexp.MustCompile(`was terminated by signal|terminating any other active server processes`)

// died is how the server tells of a process that failed by itself.
var died = regexp.MustCompile(`process \(PID \d+\) exited with exit code`)

func isFatal(text string) bool {
	m := severity.FindStringSubmatch(text)
	return m != nil && (m[1] == "FATAL" || m[1] == "PANIC")
}

// detailLinesMax is how many lines after a message can belong to it.
const detailLinesMax = 2

func withDetail(lines []string, n int) string {
	words := message(lines[n])
	for _, next := range lines[n+1 : min(n+1+detailLinesMax, len(lines))] {
		if m := severity.FindStringSubmatch(next); m != nil && m[1] == "DETAIL" {
			words += " (" + m[2] + ")"
		}
	}
	return words
}

func message(text string) string {
	if m := severity.FindStringSubmatch(text); m != nil {
		return m[2]
	}
	return strings.TrimSpace(text)
}

// ErrorLog implements engine.Driver. The names carry the hour, so the greatest
// is the newest; before there is one, what the server said at its start.
func (d *Driver) ErrorLog(i engine.Instance, names []string) string {
	newest := ""
	for _, name := range names {
		if hourlyLog.MatchString(name) && cmp.Compare(name, newest) > 0 {
			newest = name
		}
	}
	if newest == "" {
		return i.Home.StartLog()
	}
	return filepath.Join(i.Home.LogDir(), newest)
}

var hourlyLog = regexp.MustCompile(`^postgresql\.log\.\d{4}-\d\d-\d\d-\d\d$`)
