package query

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// terminalColumns is the width of the terminal, 0 when standard output is none.
func terminalColumns() int {
	size, err := unix.IoctlGetWinsize(int(os.Stdout.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return max(int(size.Col), 40)
}

// pointer is the field that leads to an event; it is for programs.
const pointer = "@ptr"

// columns are the fields of all rows, in the order of the rows.
func columns(rows [][]field) (names []string) {
	for _, row := range rows {
		at := 0
		for _, f := range row {
			if f.Field == pointer {
				continue
			}
			have := slices.Index(names, f.Field)
			if have < 0 {
				names = slices.Insert(names, at, f.Field)
				have = at
			}
			at = max(at, have+1)
		}
	}
	return names
}

// write writes rows as a table of a width, or as lines with tabs when width is 0.
func write(w io.Writer, rows [][]field, width int) {
	names := columns(rows)
	if len(names) == 0 {
		return
	}
	table := [][]string{names}
	for _, row := range rows {
		cells := make([]string, len(names))
		for _, f := range row {
			if n := slices.Index(names, f.Field); n >= 0 {
				cells[n] = plain(f.Value)
			}
		}
		table = append(table, cells)
	}
	if width == 0 {
		for _, cells := range table {
			fmt.Fprintln(w, strings.Join(cells, "\t"))
		}
		return
	}
	wide := make([]int, len(names))
	for _, cells := range table {
		for n, c := range cells {
			wide[n] = max(wide[n], utf8.RuneCountInString(c))
		}
	}
	for n, cells := range table {
		var line strings.Builder
		for n, c := range cells {
			line.WriteString(c)
			if n < len(cells)-1 {
				line.WriteString(strings.Repeat(" ", wide[n]-utf8.RuneCountInString(c)+2))
			}
		}
		text := []rune(strings.TrimRight(line.String(), " "))
		if len(text) > width {
			text = append(text[:width-1], '…')
		}
		if n == 0 && os.Getenv("NO_COLOR") == "" {
			fmt.Fprintf(w, "\x1b[1m%s\x1b[0m\n", string(text))
			continue
		}
		fmt.Fprintln(w, string(text))
	}
}

// plain keeps a value on its line and in its column, and the terminal as it is.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0:
			return utf8.RuneError
		}
		return r
	}, strings.TrimRight(text, "\n"))
}
