package logquery

import (
	"fmt"
	"sync"
	"testing"
)

// logLines are lines as PostgreSQL writes them, and one in forty of Lambda's with JSON.
func logLines(n int) (list []string) {
	for i := range n {
		switch {
		case i%40 == 0:
			list = append(list, fmt.Sprintf("2026-03-01T10:00:00.000Z\t6f1d7c5e-0000-0000-0000-%012d\tINFO\t{\"request\":\"r%d\",\"t1\":%d.25,\"t2\":%d.5,\"user\":{\"name\":\"u%d\"}}", i, i, i, i+i%50, i%7))
		case i%20 == 1:
			list = append(list, fmt.Sprintf("2026-03-01 10:00:00.000 UTC [%d] app@db LOG:  duration: %d.%03d ms  statement: select * from orders where id = %d and state = 'open'", 1000+i%30, i%90, i%1000, i))
		default:
			list = append(list, fmt.Sprintf("2026-03-01 10:00:00.000 UTC [%d] app@db LOG:  connection authorized: user=app database=db application_name=worker-%d SSL enabled (TLSv1.3)", 1000+i%30, i%11))
		}
	}
	return list
}

// The events that a leading filter drops cost nothing that is left.
func TestDroppedEventsAllocateNothing(t *testing.T) {
	b := blocks(5000, logLines(5000)...)[0]
	for _, query := range []string{
		`fields t2 - t1 as d | filter @message like /no such thing [0-9]+/ | stats avg(d) by bin(5m)`,
		`parse @message /user=(?<u>\w+) zzz/ | filter u = "x" | stats count(*)`,
		`filter @message like /[0-9]+ nothing/ or t2 > 1e9 | stats count(*)`,
	} {
		q, err := Parse(query)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Compile(q, rowsMax, start)
		if err != nil {
			t.Fatal(err)
		}
		r := p.NewRun(1, span)
		if n := testing.AllocsPerRun(3, func() { _ = r.Block(0, b, 0) }); n > 20 {
			t.Errorf("%s: %v allocations for a block of %d events", query, n, len(b.Events))
		}
	}
}

func BenchmarkScan(b *testing.B) {
	list := blocks(8000, logLines(16000)...)
	size := 0
	for _, one := range list {
		size += len(one.Text)
	}
	for name, query := range map[string]string{
		"literal":  `fields @timestamp, t1, t2, t2 - t1 | filter @message like /INFO/ | stats avg(t2 - t1), max(t2 - t1), min(t2 - t1), pct(t2 - t1, 90), pct(t2 - t1, 50), count(t2 - t1)`,
		"regexp":   `filter @message like /duration: [0-9]{2}\.\d+ ms/ | stats count(*) by bin(5m)`,
		"fold":     `filter @message like /(?i)DURATION: [0-9]{2}\.\d+ ms/ | stats count(*) by bin(5m)`,
		"parse":    `filter @message like /duration/ | parse @message /duration: (?<d>[0-9.]+) ms/ | stats avg(d), pct(d, 99), count(*) by bin(1m)`,
		"all":      `parse @message "[*] *@* LOG:" as pid, u, db | stats count(*) by pid, u`,
		"class":    `filter @message like /\d+-\d+ SSL/ | stats count(*)`,
		"no-match": `filter @message like /[a-c][x-z]\d\d\d\d/ | stats count(*)`,
		"json":     `stats avg(t2) by user.name`,
		"sort":     `filter @message like "duration" | sort @message desc | limit 20`,
	} {
		b.Run(name, func(b *testing.B) {
			q, err := Parse(query)
			if err != nil {
				b.Fatal(err)
			}
			p, err := Compile(q, rowsMax, start)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(size))
			r := p.NewRun(len(list), span)
			for b.Loop() {
				var wait sync.WaitGroup
				for n, one := range list {
					wait.Go(func() {
						if err := r.Block(n, one, 0); err != nil {
							b.Error(err)
						}
					})
				}
				wait.Wait()
			}
		})
	}
}
