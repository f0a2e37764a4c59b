package logquery

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// start is the time of the first event of tests.
var start = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

// blocks are events a second apart, in blocks of some.
func blocks(perBlock int, messages ...string) (list []*Block) {
	for from := 0; from < len(messages); from += perBlock {
		b := &Block{Log: "000000000000:group", Stream: "stream", Ordinal: int64(from), Pointer: func(n int) []byte { return fmt.Appendf(nil, "p%d", from+n) }}
		for n, m := range messages[from:min(len(messages), from+perBlock)] {
			at := start.UnixMilli() + int64(from+n)*1000
			b.Events = append(b.Events, Event{at, at + 5, len(b.Data), len(b.Data) + len(m)})
			b.Data = append(b.Data, m...)
			if n == 0 {
				b.First = at
			}
			b.Last = at
		}
		list = append(list, b)
	}
	return list
}

// ask runs a query over blocks as two hosts with two workers each would.
func ask(query string, list []*Block) (Result, error) {
	q, err := Parse(query)
	if err != nil {
		return Result{}, err
	}
	p, err := Compile(q, rowsMax, start)
	if err != nil {
		return Result{}, err
	}
	var parts []*Partial
	for host := range 2 {
		r := p.NewRun(2, start.UnixMilli(), start.UnixMilli()+1_000_000)
		for n, b := range list {
			if n%2 == host {
				if err := r.Block(n/2%2, b); err != nil {
					return Result{}, err
				}
			}
		}
		part, err := r.Partial()
		if err != nil {
			return Result{}, err
		}
		parts = append(parts, part)
	}
	return p.Finish(parts)
}

// show writes a result on lines: NAME=VALUE, without @ptr.
func show(r Result) string {
	var b strings.Builder
	for _, row := range r.Rows {
		for n, f := range row {
			if f.Name == fieldPointer {
				continue
			}
			if n > 0 {
				b.WriteByte(' ')
			}
			fmt.Fprintf(&b, "%s=%s", f.Name, f.Value)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func check(t *testing.T, query, want string, list []*Block) {
	t.Helper()
	r, err := ask(query, list)
	if err != nil {
		t.Errorf("%s: %v", query, err)
		return
	}
	if got := show(r); got != want {
		t.Errorf("%s\n got %q\nwant %q", query, got, want)
	}
}
