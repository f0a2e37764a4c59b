package logstream

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"syscall"
	"testing"

	"kurabe"
	"kurabe/internal/blob"
)

// BenchmarkFollow measures CPU time for each MiB of log: tailed into the spool, and
// pushed into a folder, compressed.
func BenchmarkFollow(b *testing.B) {
	const size = 16 << 20
	ctx := context.Background()
	dir := b.TempDir()
	repo, err := blob.Init(ctx, filepath.Join(dir, "repository"), blob.Options{})
	if err != nil {
		b.Fatal(err)
	}
	store, err := New(Config{Spool: filepath.Join(dir, "spool"), Repository: func() (*blob.Repository, error) { return repo, nil },
		Gone: func(err error) bool { return errors.Is(err, errGone) }})
	if err != nil {
		b.Fatal(err)
	}
	source := newServer()
	session := &cached{session: &session{source}}
	f := &follower{s: store, inst: store.get(db)}
	if err := f.begin(ctx, session); err != nil {
		b.Fatal(err)
	}
	session.content = content(0, 0, size)
	var follow, push float64
	for b.Loop() {
		source.write(size)
		source.rotate()
		before := cpuSeconds(b)
		if err := f.tick(ctx, session); err != nil {
			b.Fatal(err)
		}
		middle := cpuSeconds(b)
		if err := store.pushAll(ctx, f.inst); err != nil {
			b.Fatal(err)
		}
		follow, push = follow+middle-before, push+cpuSeconds(b)-middle
	}
	mib := float64(b.N) * size / (1 << 20)
	b.ReportMetric(follow*1000/mib, "follow-cpu-ms/MiB")
	b.ReportMetric(push*1000/mib, "push-cpu-ms/MiB")
	b.ReportMetric(0, "ns/op")
}

// cached does not make the content anew each time.
type cached struct {
	*session
	content []byte
}

func (c *cached) Copy(_ context.Context, from, to kurabe.LogPosition, w io.Writer) (kurabe.LogPosition, error) {
	n := fileNumber(from.File)
	end := c.ends[n]
	if to.File == from.File {
		end = min(end, to.Offset)
	}
	if _, err := w.Write(c.content[from.Offset:end]); err != nil {
		return from, err
	}
	if n < len(c.ends)-1 && end == c.ends[n] {
		return kurabe.LogPosition{File: fileName(n + 1)}, nil
	}
	return kurabe.LogPosition{File: from.File, Offset: end}, nil
}

func cpuSeconds(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
