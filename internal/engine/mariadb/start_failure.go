package mariadb

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/conf"
)

// failures tell what a last message is about, most telling first. Of what is said with one
// number the first word counts: a server that finds its data damaged goes on to say what it
// lacks therefore ("Unknown storage engine 'Aria'").
var failures = []struct {
	number int
	kind   kurabe.FailureKind
	text   *regexp.Regexp
}{
	{0, kurabe.FailureStorage, regexp.MustCompile(`No space left on device|Disk quota exceeded|Disk is full|errno: 28\b`)},
	{1, kurabe.FailureNetwork, regexp.MustCompile(`Can't start server: Bind on TCP/IP port|Can't start server: can't create IP socket|Do you already have another .* running on (port|socket)|Cannot assign requested address|Address already in use|Can't create IP socket`)},
	{2, kurabe.FailureOther, damage},
	// Whether a page or a file is as the parameters say is no parameter: nobody but the service sets those.
	{2, kurabe.FailureParameters, regexp.MustCompile(`unknown (variable|option|suffix)|ambiguous option|Unknown suffix|Error while setting value|Unknown (storage engine|collation|character set)|is not valid for CHARACTER SET|[Cc]annot allocate memory|Out of memory|out of memory|requires? an? argument|Character set '.*' is not a compiled character set|Can't (find|initialize) .*(time zone|character)|Fatal error: Illegal or unknown default time zone|[Ii]nvalid (decimal )?value|Cannot map innodb_buffer_pool_size_max|innodb_buffer_pool_size|Cannot set log file .* size to|Default storage engine .* is not available|Unknown/unsupported storage engine`)},
}

// damage is what the server says of data that is not what it had written: no parameter helps,
// and a follower's is made anew.
var damage = regexp.MustCompile(`[Cc]orrupt|[Dd]amaged|Assertion failure in file|out of bounds|log sequence number .* is in the future|` +
	`Space id and page no stored in the page|Inconsistent tablespace ID|has the wrong space ID|uses page size \d+, but the|is of a different size \d+ pages|` +
	`Unable to (read|open) (the )?first|[Uu]ndo tablespace|Missing FILE_|Log scan aborted|Malformed log record|No valid checkpoint|did not find a valid checkpoint|` +
	`The log was only scanned up to|ib_logfile0 (is empty|was not found)|InnoDB: Trying to (access|read|write)|` +
	`File is not a valid aria|Aria recovery failed|Can't open and lock privilege tables|Incorrect (file format|information in file)`)

// stamp begins a line of the error log: "2026-11-21  4:20:08 0 [ERROR] ". Times
// of that form sort as text.
var stamp = regexp.MustCompile(`^(?:(\d{4}-\d\d-\d\d +\d+:\d\d:\d\d) \d+ )?\[(ERROR|FATAL|Warning|Note)\] (.*)$`)

// summary is what the server says after it has named the cause.
var summary = regexp.MustCompile(`^(Aborting|Failed to initialize plugins\.|Plugin '.*' (init function|registration as) .*|InnoDB: Plugin initialization aborted .*|Unknown/unsupported storage engine: InnoDB)$`)

// noInnoDB is a summary that would be a cause of any other engine.
const noInnoDB = "Unknown/unsupported storage engine: InnoDB"

// StartFailure implements engine.Driver. The reason is the server's own words.
func (d *Driver) StartFailure(logTail string) (kurabe.FailureKind, string) {
	var causes, summaries []string
	warned := ""
	for _, text := range lastStart(strings.Split(logTail, "\n")) {
		words, severe := message(text)
		switch {
		case !severe:
			if len(summaries) == 0 && !strings.Contains(text, "[Note]") && strings.TrimSpace(words) != "" {
				warned = words
			}
		case summary.MatchString(words):
			summaries = append(summaries, words)
		default:
			causes = append(causes, words)
		}
	}
	// It gives up because of some things that it only warns of. A warning need not be the cause,
	// so it says no more than that, but of a disk that is full.
	if len(causes) == 0 && warned != "" && slices.Equal(summaries, []string{"Aborting"}) {
		kind := kurabe.FailureOther
		if failures[0].text.MatchString(warned) {
			kind = failures[0].kind
		}
		return kind, "Aborting; it had warned: " + warned
	}
	// A cause before its summary; without a cause the summary.
	said := slices.Concat(causes, summaries)
	for number := range failures[len(failures)-1].number + 1 {
		for _, words := range said {
			for _, f := range failures {
				if f.number == number && f.text.MatchString(words) && words != noInnoDB {
					return f.kind, words
				}
			}
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
		return ownName.ReplaceAllString(m[3], ""), m[2] == "ERROR" || m[2] == "FATAL"
	}
	if n := strings.Index(text, "InnoDB: Assertion failure in file "); n >= 0 {
		return text[n:], true
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
	if slices.Contains(names, conf.ErrorLog) {
		return filepath.Join(i.Home.LogDir(), conf.ErrorLog)
	}
	return i.Home.StartLog()
}
