package enginetest

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/proc"
)

// Damage says where the engine keeps what RunVerify spoils: the table "rows_kept", and
// the index "by_half" of another one, "ledger".
type Damage struct {
	// Table and Index are places in the data folder, read from the running server: a
	// file, and a byte of a page that is in use.
	Table, Index func(t *testing.T, b *Bed) (rel string, offset int64)
	// Says is what the engine's tools say of the index.
	Says []string
}

// RunVerify verifies snapshots of one instance, sound ones and damaged ones.
func RunVerify(t *testing.T, s Setup, d Damage) {
	b := NewBed(t, s)
	b.Satisfy(t)
	b.MustQuery(t, "CREATE TABLE ledger (n integer PRIMARY KEY, half integer)")
	b.MustQuery(t, "CREATE INDEX by_half ON ledger (half)")
	b.MustQuery(t, "CREATE TABLE rows_kept (n integer PRIMARY KEY)")
	b.MustQuery(t, "INSERT INTO rows_kept VALUES (1)")
	b.MustQuery(t, "INSERT INTO ledger WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 900) SELECT n, n / 2 FROM c")
	v := &verifyBed{Bed: b, damage: d}
	v.table, v.tableAt = d.Table(t, b)
	v.index, v.indexAt = d.Index(t, b)
	for _, p := range []struct {
		name string
		part func(*testing.T, *verifyBed)
	}{
		{"a sound snapshot is found to be so", verifiesSound},
		{"an end in the middle leaves nothing", verifyEnds},
		{"a missing file is found", verifyFindsMissing},
		{"a damaged page is found, and an index that was damaged in the source", verifyFindsPages},
	} {
		if !t.Run(p.name, func(t *testing.T) { p.part(t, v); v.nothingLeft(t) }) {
			t.FailNow()
		}
	}
}

type verifyBed struct {
	*Bed
	damage           Damage
	id               kurabe.SnapshotID
	table, index     string
	tableAt, indexAt int64
}

// nothingLeft demands that neither folder nor process is there.
func (b *verifyBed) nothingLeft(t *testing.T) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(b.Root, "scratch", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

func (b *verifyBed) data() string { return filepath.Join(b.Root, "snapshots", string(b.id), "data") }

func (b *verifyBed) verify(t *testing.T) kurabe.Verification {
	t.Helper()
	v, err := b.Snapshots().Verify(t.Context(), engine.VerifyRequest{Snapshot: b.id})
	if err != nil {
		t.Fatal(err)
	}
	if v.OK != (len(v.Problems) == 0) || v.At.IsZero() || v.Duration <= 0 {
		t.Errorf("%+v", v)
	}
	t.Logf("in %v: %q", v.Duration.Round(time.Millisecond), v.Problems)
	return v
}

// wantBad demands that a verification finds damage, in these words.
func (b *verifyBed) wantBad(t *testing.T, words ...string) {
	t.Helper()
	said := strings.Join(b.verify(t).Problems, "\n")
	for _, w := range words {
		if !strings.Contains(said, w) {
			t.Errorf("it does not say %q: %s", w, said)
		}
	}
}

func (b *verifyBed) takeSealed(t *testing.T) {
	t.Helper()
	b.id, _ = b.Take(t)
	if err := b.Snapshots().Seal(t.Context(), b.id); err != nil {
		t.Fatal(err)
	}
}

func verifiesSound(t *testing.T, b *verifyBed) {
	begin := time.Now()
	b.takeSealed(t)
	v := b.verify(t)
	if !v.OK || v.Marker.Before(begin.Add(-time.Second)) || v.Marker.After(time.Now()) {
		t.Errorf("%+v", v)
	}
	if _, err := b.Snapshots().Sealed(b.id); err != nil {
		t.Error(err)
	}
}

// verifyEnds ends a verification as soon as its server runs.
func verifyEnds(t *testing.T, b *verifyBed) {
	ctx, end := context.WithTimeout(t.Context(), passTime)
	defer end()
	done := make(chan error, 1)
	go func() {
		_, err := b.Snapshots().Verify(ctx, engine.VerifyRequest{Snapshot: b.id})
		done <- err
	}()
	data := filepath.Join(b.Root, "scratch", string(b.id), "data")
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		if pids, err := proc.Survivors(data); err == nil && len(pids) > 0 {
			break
		}
		select {
		case err := <-done:
			t.Fatalf("no server was seen: %v", err)
		case <-ticker.C:
		}
	}
	end()
	if err := <-done; err == nil {
		t.Error("it says nothing of having been ended")
	}
}

// turn turns a bit of a file.
func turn(t *testing.T, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var one [1]byte
	if _, err := f.ReadAt(one[:], at); err != nil {
		t.Fatal(err)
	}
	one[0] ^= 1
	if _, err := f.WriteAt(one[:], at); err != nil {
		t.Fatal(err)
	}
}

func verifyFindsMissing(t *testing.T, b *verifyBed) {
	if err := os.Remove(filepath.Join(b.data(), b.table)); err != nil {
		t.Fatal(err)
	}
	b.wantBad(t, "file "+b.table+" is missing")
}

// verifyFindsPages: of the index the sums are those of the damaged page, so only the
// engine's tools can find it; the table's page is turned in the snapshot.
func verifyFindsPages(t *testing.T, b *verifyBed) {
	b.Want.Goal = kurabe.GoalStopped
	b.Satisfy(t)
	turn(t, filepath.Join(b.Home().DataDir(), b.index), b.indexAt)
	b.takeSealed(t)
	turn(t, filepath.Join(b.data(), b.table), b.tableAt)
	b.wantBad(t, append(b.damage.Says, "the content of file "+b.table)...)
}
