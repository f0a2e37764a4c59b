package mariadb

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"kurabe"
	"kurabe/internal/engine"
)

// failures tell what a last message is about, most telling first.
var failures = []struct {
	kind kurabe.FailureKind
	text *regexp.Regexp
}{
	{kurabe.FailureStorage, regexp.MustCompile(`No space left on device|Disk quota exceeded|Disk is full|errno: 28\b`)},
	{kurabe.FailureNetwork, regexp.MustCompile(`Can't start server: Bind on TCP/IP port|Can't start server: can't create IP socket|Do you already have another .* running on (port|socket)|Cannot assign requested address|Address already in use|Can't create IP socket`)},
	{kurabe.FailureParameters, regexp.MustCompile(`unknown (variable|option|suffix)|ambiguous option|Error while setting value|Unknown (storage engine|collation|character set)|is not valid for CHARACTER SET|Cannot allocate memory for the buffer pool|[Cc]annot allocate memory|Out of memory|out of memory|requires? an? argument|Character set '.*' is not a compiled character set|Can't (find|initialize) .*(time zone|character)|Fatal error: Illegal or unknown default time zone|[Ii]nvalid (decimal )?value|Cannot map innodb_buffer_pool_size_max|innodb_page_size|innodb_undo_tablespaces|innodb_buffer_pool_size|Default storage engine .* is not available|Unknown/unsupported storage engine|Plugin 'InnoDB' registration as a STORAGE ENGINE failed`)},
}

// stamp begins a line of the error log: "2026-11-21  4:20:08 0 [ERROR] ". Times
// of that form sort as text.
var stamp = regexp.MustCompile(`^(?:(\d{4}-\d\d-\d\d +\d+:\d\d:\d\d) \d+ )?\[(ERROR|Warning|Note)\] (.*)$`)

// summary is what the server says after it has named the cause.
var summary = regexp.MustCompile(`^(Aborting|Failed to initialize plugins\.|Plugin '.*' (init function|registration as) .*|InnoDB: Plugin initialization aborted .*|Unknown/unsupported storage engine: InnoDB)$`)

// StartFailure implements engine.Driver. The reason is the server's own words.
func (d *Driver) StartFailure(logTail string) (kurabe.FailureKind, string) {
	var causes, summaries []string
	for _, text := range lastStart(strings.Split(logTail, "\n")) {
		words, severe := message(text)
		switch {
		case !severe:
		case summary.MatchString(words):
			summaries = append(summaries, words)
		default:
			causes = append(causes, words)
		}
	}
	// A cause before its summary; without a cause the summary.
	said := slices.Concat(causes, summaries)
	for _, f := range failures {
		if n := slices.IndexFunc(said, f.text.MatchString); n >= 0 {
			return f.kind, said[n]
		}
	}
	if len(said) > 0 {
		return kurabe.FailureOther, said[0]
	}
	return kurabe.FailureOther, engine.NoReason
}

// ownName are the beginnings that add nothing to a message.
var ownName = regexp.MustCompile(`^(Buffered error: )?(\S*(mariadbd|mysqld): )?`)

// message is what a line says, and whether it is an error. A crash has no stamp.
func message(text string) (words string, severe bool) {
	if m := stamp.FindStringSubmatch(text); m != nil {
		return ownName.ReplaceAllString(m[3], ""), m[2] == "ERROR"
	}
	if n := strings.Index(text, "[ERROR] "); n >= 0 {
		return text[n+len("[ERROR] "):], true
	}
	return text, false
}

const banner = "[Note] Starting MariaDB "

// lastStart drops what an earlier start said. The server opens its log when it
// has understood its options; about those it complains to what comes first here,
// and then the rest is older.
func lastStart(lines []string) []string {
	isBanner := func(text string) bool { return strings.Contains(text, banner) }
	first := slices.IndexFunc(lines, isBanner)
	if first < 0 {
		return lines
	}
	newest := ""
	for _, text := range lines {
		newest = max(newest, timeOf(text))
	}
	for _, text := range lines[:first] {
		if _, severe := message(text); severe && timeOf(text) == newest {
			return lines[:first]
		}
	}
	for n, text := range slices.Backward(lines) {
		if isBanner(text) {
			return lines[n:]
		}
	}
	return lines
}

func timeOf(text string) string {
	if m := stamp.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

// ErrorLog implements engine.Driver. Finished logs have an hour after their name;
// before there is a log, the answer is what the server said at its start.
func (d *Driver) ErrorLog(i engine.Instance, names []string) string {
	if slices.Contains(names, errorLog) {
		return filepath.Join(i.Home.LogDir(), errorLog)
	}
	return i.Home.StartLog()
}
