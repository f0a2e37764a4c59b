//go:build bench

package volume

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// processor reports the time of processors that a round takes: the clock on the wall is that
// of all who share the machine.
func processor(b *testing.B, do func(n int)) {
	b.Helper()
	var spent int64
	for n := 0; b.Loop(); n++ {
		before := usage(b)
		do(n)
		spent += usage(b) - before
	}
	b.ReportMetric(float64(spent)/float64(b.N)/1e6, "cpu-ms/op")
}

func usage(b *testing.B) int64 {
	b.Helper()
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return r.Utime.Nano() + r.Stime.Nano()
}

// tree20k is a tree of 20 000 files of 8 KiB in 40 folders.
func tree20k(b *testing.B) string {
	b.Helper()
	dir := filepath.Join(b.TempDir(), "tree")
	text := make([]byte, 8<<10)
	for d := range 40 {
		sub := filepath.Join(dir, fmt.Sprintf("base/%d", d))
		if err := os.MkdirAll(sub, 0o700); err != nil {
			b.Fatal(err)
		}
		for f := range 500 {
			if err := os.WriteFile(filepath.Join(sub, fmt.Sprint(f)), text, 0o600); err != nil {
				b.Fatal(err)
			}
		}
	}
	return dir
}

func BenchmarkUsedBytes(b *testing.B) {
	dir := tree20k(b)
	processor(b, func(int) {
		if _, err := UsedBytes(dir); err != nil {
			b.Fatal(err)
		}
	})
}

func BenchmarkOwnBytes(b *testing.B) {
	dir := tree20k(b)
	processor(b, func(int) {
		if _, err := OwnBytes(dir); err != nil {
			b.Fatal(err)
		}
	})
}

func BenchmarkCopyTree(b *testing.B) {
	dir := tree20k(b)
	processor(b, func(n int) {
		if err := CopyTree(b.Context(), dir, fmt.Sprintf("%s.copy%d", dir, n), CopyOptions{UID: os.Getuid(), GID: os.Getgid()}); err != nil {
			b.Fatal(err)
		}
	})
}

func BenchmarkTransfer(b *testing.B) {
	dir := tree20k(b)
	processor(b, func(n int) {
		if _, _, err := Transfer(b.Context(), dir, fmt.Sprintf("%s.copy%d", dir, n), TransferOptions{Owner: &Owner{os.Getuid(), os.Getgid()}, Cached: true}); err != nil {
			b.Fatal(err)
		}
	})
}
