package volume

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestAwaitClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pages")
	writer, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	soon, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := AwaitClosed(soon, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("while it is open for writing: %v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- AwaitClosed(t.Context(), path) }()
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	reader, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := AwaitClosed(t.Context(), path); err != nil {
		t.Errorf("while it is read: %v", err)
	}
	// No lease is left that would hold up a writer.
	again, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if err := awaitDirect(path); err != nil {
		t.Errorf("without leases: %v", err)
	}
	if err := AwaitClosed(t.Context(), path+".no"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("of no file: %v", err)
	}
}
