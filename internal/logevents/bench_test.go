package logevents

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

func FuzzFiles(f *testing.F) {
	f.Add(append(headerFrame(1, []byte("m")), eventsFrame([]Event{at(1, "a"), at(2, "bc")}, []byte("n"))...))
	var b Block
	b.reset(7)
	b.add(at(1, "abc"))
	b.add(at(2, ""))
	data, _ := encode(&b)
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		read, _ := readTail(data, func(e Event) {
			if len(e.Message) > MessageMax {
				t.Fatal("too long")
			}
		})
		if read.size > int64(len(data)) {
			t.Fatal("more than there is")
		}
		_, _ = readHead(data)
		var b Block
		if decode(data, 1, &b) == nil {
			for _, e := range b.Events {
				_ = b.Text[e.Start:e.End]
			}
		}
	})
}

// BenchmarkScan tells how much text a core reads.
func BenchmarkScan(b *testing.B) {
	s, err := Open(Config{Dir: b.TempDir(), GroupBytes: 1 << 40, TotalBytes: 1 << 40, Now: time.Now, Lost: func(string, string, int64, string) {}})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	size := int64(0)
	for n := 0; size < 128<<20; {
		var batch []Event
		for range 2000 {
			n++
			text := fmt.Sprintf("2026-11-28 12:00:%02d.%03d UTC [%d] shop@shop LOG:  duration: %d.%03d ms  execute <unnamed>: SELECT a, b FROM orders WHERE id = $1 AND customer = %d", n/1000%60, n%1000, n%37+1000, n%50, n%977, n*2654435761%1000003)
			batch = append(batch, at(int64(n), text))
			size += int64(len(text))
		}
		if err := s.Append("g", "s", batch, nil); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(size)
	b.ReportMetric(float64(size)/float64(s.Streams("g", "")[0].StoredBytes), "times")
	for b.Loop() {
		if err := s.Scan(context.Background(), "g", nil, 0, 1<<62, 1, func(int, *Block) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAppend tells what a reader of a log pays to store it.
func BenchmarkAppend(b *testing.B) {
	s, err := Open(Config{Dir: b.TempDir(), GroupBytes: 1 << 40, TotalBytes: 1 << 40, Now: time.Now, Lost: func(string, string, int64, string) {}})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	line := strings.Repeat("duration: 12.345 ms execute: SELECT a FROM orders ", 3)
	batch := make([]Event, 7000)
	for n := range batch {
		batch[n] = at(int64(n), fmt.Sprint(line, n*2654435761%1000003))
	}
	b.SetBytes(int64(len(batch)) * int64(len(line)+6))
	for b.Loop() {
		if err := s.Append("g", "s", batch, nil); err != nil {
			b.Fatal(err)
		}
	}
}
