//go:build fault

package fault

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kurabe/internal/harness"
)

// TestPieceOfTheLogIsLost: one piece of the log is damaged in the repository and one
// is removed, under a running service. A restore that needs the damaged one fails with
// the reason and shows no database; a verification finds it. The missing one is
// noticed, and a snapshot ends the gap.
func TestPieceOfTheLogIsLost(t *testing.T) {
	t.Parallel()
	s := harness.Start(t, harness.Options{Args: []string{"--copy-rate", "0"}})
	var beds []*logBed
	var last []time.Time // needs the piece that is removed
	for _, engine := range s.Engines(t) {
		b := newLogBed(t, s, engine)
		var moments []time.Time
		for range 4 {
			b.pour(t, pieceBytes)
			moments = append(moments, b.grows(t))
		}
		b.pour(t, pieceBytes)
		b.grows(t)
		b.pushed(t)
		pieces := b.pieces(t)
		if len(pieces) < len(moments) {
			t.Fatalf("only %d pieces in the repository: %v", len(pieces), pieces)
		}
		damageFile(t, pieces[1])
		b.fails(t, moments[2])
		b.untrusted(t)
		beds, last = append(beds, b), append(last, moments[3])
	}
	mark := s.Log.Mark()
	for _, b := range beds { // it takes up to a minute until that is seen
		pieces := b.pieces(t)
		if err := os.Remove(pieces[len(pieces)-2]); err != nil {
			t.Fatal(err)
		}
	}
	for n, b := range beds {
		b.i.WaitEvent(t, "has a gap, and its latest restorable time stands still")
		b.said(t, mark, "a piece of the log is missing in the repository", "step=take-snapshot")
		b.grows(t)
		after := b.grows(t) // the moment before may be one before the snapshot
		b.unnoticed(t)
		b.refused(t, last[n], "its log has a gap there")
		b.exact(t, after)
		b.i.Delete(t)
	}
	noOrphans(t, s)
}

// pieces are those of the instance's log in the repository, in their order.
func (b *logBed) pieces(t *testing.T) []string {
	t.Helper()
	all, _ := filepath.Glob(filepath.Join(b.s.Data, "repository", "logs", b.i.ID, "*", "*", "*-*")) // the pattern is well formed
	all = slices.DeleteFunc(all, func(p string) bool { return strings.HasSuffix(p, ".marks") })
	slices.Sort(all)
	return all
}

// damageFile damages the middle of a file as a disk does: size and times stay.
func damageFile(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, 64)
	at := info.Size() / 2
	if _, err := f.ReadAt(block, at); err != nil {
		t.Fatal(err)
	}
	for n := range block {
		block[n] ^= 0x5a
	}
	if _, err := f.WriteAt(block, at); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
}

// fails asks for a moment that cannot be restored any more: the reason is told, and
// nobody is shown a database.
func (b *logBed) fails(t *testing.T, at time.Time) {
	t.Helper()
	i, err := b.ask(t, "damaged-"+b.i.Engine, at)
	if err != nil {
		t.Fatalf("restore to %s: %v", at, err)
	}
	text := i.WaitEvent(t, "cannot be restored, and nothing of it is offered")
	if !strings.Contains(text, "damaged") {
		t.Errorf("the reason is %q", text)
	}
	if d := i.Describe(t); d.Endpoint != nil || fmt.Sprint(*d.DBInstanceStatus) == "available" {
		t.Errorf("it is %s, its endpoint %v", *d.DBInstanceStatus, d.Endpoint)
	}
	i.Delete(t)
}

// untrusted has the newest backup verified, and demands that the damage is found.
func (b *logBed) untrusted(t *testing.T) {
	t.Helper()
	out, err := b.verify(t)
	if err == nil || !strings.Contains(out, "damaged") {
		t.Errorf("the verification says %v:\n%s", err, out)
	}
	b.i.WaitEvent(t, "cannot be trusted")
}
