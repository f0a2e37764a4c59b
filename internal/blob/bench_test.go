package blob_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"kurabe/internal/blob"
	"kurabe/internal/blob/blobtest"
)

// benchContent is the file that KURABE_BENCH_FILE names (at most 256 MB of it), for
// figures that mean something, or else made-up rows.
func benchContent(b *testing.B) []byte {
	b.Helper()
	if path := os.Getenv("KURABE_BENCH_FILE"); path != "" {
		file, err := os.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		defer file.Close()
		data, err := io.ReadAll(io.LimitReader(file, 256<<20))
		if err != nil {
			b.Fatal(err)
		}
		return data
	}
	return blobtest.Bytes(1, 32<<20)
}

// BenchmarkLevel is what chose the level and the size of a chunk.
func BenchmarkLevel(b *testing.B) {
	data := benchContent(b)
	for _, level := range []zstd.EncoderLevel{zstd.SpeedFastest, zstd.SpeedDefault, zstd.SpeedBetterCompression} {
		for _, chunk := range []int{256 << 10, 1 << 20, 4 << 20} {
			b.Run(fmt.Sprintf("%s/%dKiB", level, chunk>>10), func(b *testing.B) {
				e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(1))
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(len(data)))
				packed, buf, begun := 0, []byte(nil), cpuTime(b)
				for b.Loop() {
					packed = 0
					for i := 0; i < len(data); i += chunk {
						buf = e.EncodeAll(data[i:min(i+chunk, len(data))], buf[:0])
						packed += len(buf)
					}
				}
				b.ReportMetric(float64(len(data))/float64(packed), "ratio")
				reportCPU(b, begun, len(data))
			})
		}
	}
}

// BenchmarkStore measures Put and Get of one object at a time, with all layers.
func BenchmarkStore(b *testing.B) {
	data := benchContent(b)
	kinds := map[string]blob.Store{"discard": discard{blobtest.NewMemory()}, "folder": newFolder(b), "s3": benchS3(b)}
	for _, kind := range []string{"discard", "folder", "s3"} {
		for _, layer := range []string{"raw", "sealed", "encrypted"} {
			s := kinds[kind]
			switch layer {
			case "sealed":
				s = blob.NewSealed(s, nil)
			case "encrypted":
				s = blob.NewSealed(s, blobtest.Key(b))
			}
			name := kind + "-" + layer
			b.Run("put/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(data)))
				defer reportCPU(b, cpuTime(b), len(data))
				for b.Loop() {
					if err := s.Put(context.Background(), name, bytes.NewReader(data)); err != nil {
						b.Fatal(err)
					}
					b.StopTimer()
					if err := s.Delete(context.Background(), name); err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
				}
			})
			if kind == "discard" {
				continue
			}
			b.Run("get/"+name, func(b *testing.B) {
				if err := s.Put(context.Background(), name, bytes.NewReader(data)); err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(len(data)))
				defer reportCPU(b, cpuTime(b), len(data))
				for b.Loop() {
					r, err := s.Get(context.Background(), name)
					if err != nil {
						b.Fatal(err)
					}
					if _, err := io.Copy(io.Discard, r); err != nil {
						b.Fatal(err)
					}
					_ = r.Close()
				}
			})
		}
	}
}

// BenchmarkFolderSmall is the cost of the syncs: one log segment's worth of nothing.
func BenchmarkFolderSmall(b *testing.B) {
	f := newFolder(b)
	n := 0
	for b.Loop() {
		n++
		if err := f.Put(context.Background(), fmt.Sprintf("i/wal/%04d/%08d", n/256, n), bytes.NewReader([]byte("x"))); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFolderList lists 20,000 objects of one folder.
func BenchmarkFolderList(b *testing.B) {
	f := newFolder(b)
	const count = 20_000
	if err := os.Mkdir(f.String()+"/x", 0o700); err != nil {
		b.Fatal(err)
	}
	for i := range count {
		if err := os.WriteFile(fmt.Sprintf("%s/x/%08d", f, i), nil, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		n := 0
		for _, err := range f.List(context.Background(), "") {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != count {
			b.Fatal(n)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/count, "ns/object")
}

// discard shows the cost of the layers alone.
type discard struct{ *blobtest.Memory }

func (discard) Put(_ context.Context, _ string, r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	return err
}

func benchS3(b *testing.B) blob.Store {
	s := newFakeS3(b)
	s.SetParts(8<<20, 0)
	return s
}

// cpuTime is what this process has used: it means something on a busy machine too.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var use unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &use); err != nil {
		b.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

func reportCPU(b *testing.B, begun time.Duration, sizeBytes int) {
	b.Helper()
	used := cpuTime(b) - begun
	b.ReportMetric(float64(sizeBytes)*float64(b.N)/1e6/used.Seconds(), "MB/cpu-s")
}
