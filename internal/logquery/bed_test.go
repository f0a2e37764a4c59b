package logquery

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"kurabe/internal/logevents"
)

// start is the time of the first event of tests.
var start = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

// span has all events of tests.
var span = Span{To: start.AddDate(1, 0, 0).UnixMilli(), Account: "000000000000",
	Pointer: func(b *logevents.Block, n int) []byte { return fmt.Appendf(nil, "%s/%d", b.Stream, b.First+int64(n)) }}

// blocks are events a second apart, in blocks of some.
func blocks(perBlock int, messages ...string) (list []*logevents.Block) {
	for from := 0; from < len(messages); from += perBlock {
		b := &logevents.Block{Group: "group", Stream: "stream", First: int64(from)}
		for n, m := range messages[from:min(len(messages), from+perBlock)] {
			at := start.UnixMilli() + int64(from+n)*1000
			b.Events = append(b.Events, logevents.Entry{Time: at, Ingested: at + 5, Start: len(b.Text), End: len(b.Text) + len(m)})
			b.Text = append(b.Text, m...)
		}
		list = append(list, b)
	}
	return list
}

// ask runs a query over blocks as two hosts with two workers each would.
func ask(query string, list []*logevents.Block) (Result, error) {
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
		r := p.NewRun(2, span)
		for n, b := range list {
			if n%2 == host {
				if err := r.Block(n/2%2, b, 0); err != nil {
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

func check(t *testing.T, query, want string, list []*logevents.Block) {
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
