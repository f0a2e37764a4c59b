package export

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"kurabe"
)

// at is a time of 2026-11-28.
func at(hour, minute, second int) int64 {
	return time.Date(2026, 11, 28, hour, minute, second, 0, time.UTC).UnixMilli()
}

type told struct {
	at   int64
	text string
}

func (e told) String() string { return fmt.Sprintf("%d %q", e.at, e.text) }

// split gives a log to Split in pieces of a size.
func split(f Format, text string, piece int, state *State) (list []told) {
	data := []byte(text)
	emit := func(at int64, message []byte) { list = append(list, told{at, string(message)}) }
	done, have := 0, 0
	for have < len(data) {
		have = min(have+piece, len(data))
		done += f.Split(data[done:have], More, state, emit)
	}
	f.Split(data[done:], Over, state, emit)
	return list
}

const postgresText = "2026-11-28 10:00:00 UTC::@:[7]:LOG:  starting PostgreSQL\n" +
	"2026-11-28 10:00:01 UTC:127.0.0.1(5):u@d:[9]:ERROR:  syntax error at or near \"x\" at character 1\n" +
	"2026-11-28 10:00:01 UTC:127.0.0.1(5):u@d:[9]:STATEMENT:  x\n\t2026-11-28 09:00:00 UTC:a line of a statement\n\t\n\ty\n" +
	"sh: no prefix\n" +
	"2026-11-28 09:59:59 UTC::@:[7]:LOG:  the clock went back\n"

const generalText = "/usr/sbin/mariadbd, Version: 10.11.19-MariaDB-0+deb12u1 (Debian 12). started with:\nTcp port: 3306  Unix socket: \nTime\t\t    Id Command\tArgument\n" +
	"261128  9:00:01\t     4 Connect\tu@h on  using SSL/TLS\n\t\t     4 Query\tselect 1,\n2\n\t\t     4 Init DB\td\n261128 10:00:02\t     4 Quit\t\n"

const slowText = "/usr/sbin/mariadbd, Version: 10.11.19-MariaDB-0+deb12u1 (Debian 12). started with:\nTcp port: 3306  Unix socket: \nTime\t\t    Id Command\tArgument\n" +
	"# Time: 261128  9:00:01\n# User@Host: u[u] @  [127.0.0.1]\n# Query_time: 2.0\nSET timestamp=1;\nselect 1,\n2;\n" +
	"# User@Host: v[v] @  [127.0.0.1]\nselect 3;\n# Time: 261128 10:00:02\n# User@Host: u[u] @  [127.0.0.1]\nselect 4;\n"

const errorText = "2026-11-28  9:00:00 0 [Note] Starting MariaDB\n2026-11-28 10:00:00 0 [Note] Server socket created\n261128 10:00:01 [ERROR] mysqld got signal 6 ;\nSorry, we probably made a mistake\n\n"

func TestSplit(t *testing.T) {
	maria := formats[kurabe.MariaDB]
	for _, c := range []struct {
		name string
		of   Format
		text string
		want []told
	}{
		{"postgresql", formats[kurabe.Postgres]["postgresql"], postgresText, []told{
			{at(10, 0, 0), "2026-11-28 10:00:00 UTC::@:[7]:LOG:  starting PostgreSQL"},
			{at(10, 0, 1), "2026-11-28 10:00:01 UTC:127.0.0.1(5):u@d:[9]:ERROR:  syntax error at or near \"x\" at character 1"},
			{at(10, 0, 1), "2026-11-28 10:00:01 UTC:127.0.0.1(5):u@d:[9]:STATEMENT:  x\n\t2026-11-28 09:00:00 UTC:a line of a statement\n\t\n\ty\nsh: no prefix"},
			{at(9, 59, 59), "2026-11-28 09:59:59 UTC::@:[7]:LOG:  the clock went back"},
		}},
		{"general", maria["general"], generalText, []told{
			{0, "/usr/sbin/mariadbd, Version: 10.11.19-MariaDB-0+deb12u1 (Debian 12). started with:\nTcp port: 3306  Unix socket: \nTime\t\t    Id Command\tArgument"},
			{at(9, 0, 1), "261128  9:00:01\t     4 Connect\tu@h on  using SSL/TLS"}, {at(9, 0, 1), "\t\t     4 Query\tselect 1,\n2"},
			{at(9, 0, 1), "\t\t     4 Init DB\td"}, {at(10, 0, 2), "261128 10:00:02\t     4 Quit\t"},
		}},
		{"slowquery", maria["slowquery"], slowText, []told{
			{0, "/usr/sbin/mariadbd, Version: 10.11.19-MariaDB-0+deb12u1 (Debian 12). started with:\nTcp port: 3306  Unix socket: \nTime\t\t    Id Command\tArgument"},
			{at(9, 0, 1), "# Time: 261128  9:00:01\n# User@Host: u[u] @  [127.0.0.1]\n# Query_time: 2.0\nSET timestamp=1;\nselect 1,\n2;"},
			{at(9, 0, 1), "# User@Host: v[v] @  [127.0.0.1]\nselect 3;"},
			{at(10, 0, 2), "# Time: 261128 10:00:02\n# User@Host: u[u] @  [127.0.0.1]\nselect 4;"},
		}},
		{"error", maria["error"], errorText, []told{
			{at(9, 0, 0), "2026-11-28  9:00:00 0 [Note] Starting MariaDB"}, {at(10, 0, 0), "2026-11-28 10:00:00 0 [Note] Server socket created"},
			{at(10, 0, 1), "261128 10:00:01 [ERROR] mysqld got signal 6 ;\nSorry, we probably made a mistake\n"},
		}},
		{"rubbish", formats[kurabe.Postgres]["postgresql"], "2026-11-28 10:00:00 UTC::@:[7]:LOG:  a\xff\xfeb\n", []told{{at(10, 0, 0), "2026-11-28 10:00:00 UTC::@:[7]:LOG:  a\uFFFDb"}}},
		{"no time", formats[kurabe.Postgres]["postgresql"], "2026-13-28 10:00:00 UTC:x\n2026-11-28 10:00:00 JST:y\n\n", []told{{0, "2026-13-28 10:00:00 UTC:x\n2026-11-28 10:00:00 JST:y\n"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, piece := range []int{1, 7, 64, len(c.text)} {
				if got := split(c.of, c.text, piece, &State{}); fmt.Sprint(got) != fmt.Sprint(c.want) {
					t.Fatalf("pieces of %d:\n%v\nwant\n%v", piece, got, c.want)
				}
			}
		})
	}
}

// The newest event waits for its further lines, and a line for its end.
func TestSplitWaits(t *testing.T) {
	f, state := formats[kurabe.Postgres]["postgresql"], State{}
	var list []string
	emit := func(_ int64, message []byte) { list = append(list, string(message)) }
	const head = "2026-11-28 10:00:00 UTC:a"
	for _, c := range []struct {
		data   string
		end    End
		done   int
		events string
	}{
		{head + "\n", More, 0, "[]"},
		{head + "\n\tb\n" + head + "c", More, 0, "[]"},
		{head + "\n\tb\n" + head + "c\n", More, len(head) + 4, fmt.Sprintf("[%q]", head+"\n\tb")},
		{head + "\n", Rests, len(head) + 1, fmt.Sprintf("[%q]", head)},
		{head + "\n\tb", Rests, 0, "[]"},
		{head, Rests, 0, "[]"},
		{head, Over, len(head), fmt.Sprintf("[%q]", head)},
	} {
		list = nil
		if done := f.Split([]byte(c.data), c.end, &state, emit); done != c.done || fmt.Sprintf("%q", list) != c.events {
			t.Errorf("%q, %d: %d, %q", c.data, c.end, done, list)
		}
	}
}

// A line of 10 MB, and an event of as many lines, are cut at the limit, and their rest is counted.
func TestSplitCuts(t *testing.T) {
	f := formats[kurabe.Postgres]["postgresql"]
	const head, last = "2026-11-28 10:00:00 UTC:a", "2026-11-28 10:00:01 UTC:b"
	for name, unit := range map[string]string{"line": "xxxxxxxxx ", "lines": "\n\txxxxxxxx"} {
		t.Run(name, func(t *testing.T) {
			text := head + strings.Repeat(unit, 1<<20) + "\n" + last + "\n"
			for _, piece := range []int{64 << 10, 3 << 20, len(text)} {
				got := split(f, text, piece, &State{})
				lost := len(text) - len(last) - 1 - EventMax
				want := fmt.Sprintf("[%d bytes of the event before were not exported: it was longer than %d bytes]", lost, EventMax)
				if len(got) != 3 || got[0].text != strings.TrimSuffix(text[:EventMax], "\n") || got[0].at != at(10, 0, 0) || got[1].text != want || got[2].text != last {
					t.Fatalf("pieces of %d: %d events, %v", piece, len(got), got[min(1, len(got)-1):])
				}
			}
		})
	}
}

// Every byte is in one event, in order, whatever the pieces; only line ends between events and what
// was cut are not.
func FuzzSplit(f *testing.F) {
	for n, text := range []string{postgresText, generalText, slowText, errorText, "", "\n\n", "\xff\n"} {
		f.Add([]byte(text), byte(n), 5)
	}
	all := []Format{formats[kurabe.Postgres]["postgresql"], formats[kurabe.MariaDB]["general"], formats[kurabe.MariaDB]["slowquery"], formats[kurabe.MariaDB]["error"]}
	f.Fuzz(func(t *testing.T, data []byte, of byte, piece int) {
		piece = 1 + max(piece, -piece, 0)%100
		format := all[int(of)%len(all)]
		got := split(format, string(data), piece, &State{})
		if whole := split(format, string(data), len(data)+1, &State{}); fmt.Sprint(got) != fmt.Sprint(whole) {
			t.Fatalf("%q in pieces of %d: %v, whole: %v", data, piece, got, whole)
		}
		var text []byte
		for _, e := range got {
			if e.text == "" || len(e.text) > EventMax || !utf8.ValidString(e.text) {
				t.Fatalf("%q: event %q", data, e.text)
			}
			text = append(text, e.text...)
		}
		strip := func(b []byte) string {
			return string(bytes.ReplaceAll(bytes.ToValidUTF8(b, []byte("\uFFFD")), []byte{'\n'}, nil))
		}
		if utf8.Valid(data) && strip(text) != strip(data) {
			t.Fatalf("%q became %v", data, got)
		}
	})
}

func BenchmarkSplit(b *testing.B) {
	line := "2026-11-28 10:00:01 UTC:127.0.0.1(5):user@database:[9]:LOG:  statement: UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = 12345;\n"
	data := []byte(strings.Repeat(line, 1<<20/len(line)))
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		formats[kurabe.Postgres]["postgresql"].Split(data, More, &State{}, func(int64, []byte) {})
	}
}
