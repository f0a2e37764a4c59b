package export

import (
	"bytes"
	"time"

	"kurabe"
)

// kind is what a line is of an event.
type kind byte

const (
	continues kind = iota // the event before
	begins                // an event
	dates                 // an event, of which the next line may have the beginning
)

// Format is how an engine writes a log.
type Format struct {
	// file is the name of the file that is written, or the beginning of the names of all.
	file string
	// head says whether a line begins an event, and its time in Unix milliseconds, 0 where it tells
	// none. before is what the line before it is.
	head func(line []byte, before kind) (kind, int64)
}

// formats are those of the logs that are exported (kurabe.EngineName.LogTypes).
var formats = map[kurabe.EngineName]map[string]Format{
	kurabe.Postgres: {"postgresql": {"postgresql.log", postgresHead}},
	kurabe.MariaDB: {
		"error": {"mysql-error.log", errorHead}, "slowquery": {"mysql-slowquery.log", slowHead}, "general": {"mysql-general.log", generalHead},
	},
}

// clock reads a time of UTC, in which all engines run. layout has the letters Y, M, D, h, m and s where
// digits are, of which the first of h may be a space, and itself elsewhere.
func clock(text []byte, layout string) (ms int64, ok bool) {
	if len(text) < len(layout) {
		return 0, false
	}
	var year, month, day, hour, minute, second int
	for n := range len(layout) {
		c, to := text[n], (*int)(nil)
		switch layout[n] {
		case 'Y':
			to = &year
		case 'M':
			to = &month
		case 'D':
			to = &day
		case 'h':
			to = &hour
			if c == ' ' && hour == 0 {
				c = '0'
			}
		case 'm':
			to = &minute
		case 's':
			to = &second
		default:
			if c != layout[n] {
				return 0, false
			}
			continue
		}
		if c < '0' || c > '9' {
			return 0, false
		}
		*to = *to*10 + int(c-'0')
	}
	if year < 100 {
		year += 2000
	}
	if month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 || second > 60 {
		return 0, false
	}
	return time.Date(year, time.Month(month), day, hour, minute, second, 0, time.UTC).UnixMilli(), true
}

// shortTime is how MariaDB begins lines of its older logs.
const shortTime = "YYMMDD hh:mm:ss"

// postgresHead is of the service's log_line_prefix, which begins with a second and its zone. The
// further lines of an entry begin with a tab.
func postgresHead(line []byte, _ kind) (kind, int64) {
	if at, ok := clock(line, "YYYY-MM-DD hh:mm:ss UTC:"); ok {
		return begins, at
	}
	return continues, 0
}

// errorHead is of MariaDB's error log; the report of a crash has the short time.
func errorHead(line []byte, _ kind) (kind, int64) {
	for _, layout := range []string{"YYYY-MM-DD hh:mm:ss ", shortTime + " "} {
		if at, ok := clock(line, layout); ok {
			return begins, at
		}
	}
	return continues, 0
}

// slowHead: the time is only written when it is another second than before.
func slowHead(line []byte, before kind) (kind, int64) {
	if text, ok := bytes.CutPrefix(line, []byte("# Time: ")); ok {
		if at, ok := clock(text, shortTime); ok {
			return dates, at
		}
	}
	if bytes.HasPrefix(line, []byte("# User@Host: ")) && before != dates {
		return begins, 0
	}
	return preamble(line), 0
}

// generalHead: the time, or a tab in its place where the second is the one before, a tab, the number
// of the session, and the name of a command.
func generalHead(line []byte, _ kind) (kind, int64) {
	at, dated := clock(line, shortTime+"\t")
	rest := line
	switch {
	case dated:
		rest = line[len(shortTime)+1:]
	case bytes.HasPrefix(line, []byte("\t\t")):
		rest = line[2:]
	default:
		return preamble(line), 0
	}
	rest = bytes.TrimLeft(rest, " ")
	command := bytes.TrimLeft(rest, "0123456789")
	if len(command) < 3 || len(command) == len(rest) || command[0] != ' ' || command[1] < 'A' || command[1] > 'Z' {
		return continues, 0
	}
	if end := bytes.IndexByte(command, '\t'); end < 0 || end > commandMax {
		return continues, 0
	}
	return begins, at
}

// commandMax is more than the longest name of a command has.
const commandMax = 30

// preamble are the lines with which MariaDB begins a file.
func preamble(line []byte) kind {
	if version := bytes.Index(line, []byte(", Version: ")); version >= 0 && bytes.HasSuffix(bytes.TrimRight(line[version:], "\n"), []byte(" started with:")) {
		return begins
	}
	return continues
}
