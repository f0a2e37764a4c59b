//go:build integration

package mariadb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/mariadb/binlog"
	"kurabe/internal/volume"
)

// logBed is a serving instance that writes a binary log.
func logBed(t *testing.T, settings map[string]string) *enginetest.Bed {
	t.Helper()
	b := enginetest.NewBed(t, setup(t, enginetest.Reachable(t)))
	b.Want.Log = true
	b.Set(settings)
	b.Satisfy(t)
	return b
}

// stream fetches a log as the service does: a mark at each full second, and what
// lies before it into files.
type stream struct {
	dir  string
	log  engine.Log
	at   kurabe.LogPosition
	kept []kurabe.LogMark
}

func openStream(t *testing.T, b *enginetest.Bed) *stream {
	t.Helper()
	s := &stream{dir: t.TempDir()}
	s.open(t, b)
	var err error
	if s.at, err = s.log.Begin(t.Context()); err != nil || s.at.Offset != 0 {
		t.Fatal(s.at, err)
	}
	return s
}

func (s *stream) open(t *testing.T, b *enginetest.Bed) {
	t.Helper()
	var err error
	if s.log, err = b.Driver.(*Driver).OpenLog(t.Context(), b.Instance()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.log.Close() })
}

// reopen goes on with another session, as after a restart.
func (s *stream) reopen(t *testing.T, b *enginetest.Bed) {
	t.Helper()
	_ = s.log.Close()
	s.open(t, b)
	if err := s.log.Resume(t.Context(), s.at); err != nil {
		t.Fatal(err)
	}
}

// mark marks this moment and fetches what lies before.
func (s *stream) mark(t *testing.T) kurabe.LogMark {
	t.Helper()
	m, err := s.log.Mark(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.fetch(t.Context(), m.Position); err != nil {
		t.Fatal(err)
	}
	s.kept = append(s.kept, m)
	return m
}

func (s *stream) fetch(ctx context.Context, to kurabe.LogPosition) error {
	for s.at.Compare(to) < 0 {
		file, err := os.OpenFile(filepath.Join(s.dir, s.at.File), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		next, err := s.log.Copy(ctx, s.at, to, file)
		info, statErr := file.Stat()
		if err := errors.Join(err, statErr, file.Close()); err != nil {
			return err
		}
		if next.File == s.at.File && info.Size() != next.Offset {
			return fmt.Errorf("%d bytes of %s are kept", info.Size(), next)
		}
		if next == s.at {
			return fmt.Errorf("it stops at %s before %s", next, to)
		}
		s.at = next
	}
	return nil
}

// request asks for a moment, as the service does with the marks it has kept.
func (s *stream) request(t *testing.T, from kurabe.LogPosition, at time.Time) engine.ReplayRequest {
	t.Helper()
	r := engine.ReplayRequest{Dir: filepath.Join(enginetest.Reachable(t), "log"), From: from, At: at}
	for _, m := range s.kept {
		if !m.Until.After(at) {
			r.Before = m
		}
		if !m.At.Before(at) {
			r.After = m
			break
		}
	}
	if err := os.Mkdir(r.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	names, err := binlog.List(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		p := kurabe.LogPosition{File: name}
		if p.Compare(kurabe.LogPosition{File: from.File}) < 0 || p.Compare(kurabe.LogPosition{File: r.After.Position.File}) > 0 {
			continue
		}
		text, err := os.ReadFile(filepath.Join(s.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if name == r.After.Position.File {
			text = text[:r.After.Position.Offset]
		}
		if err := os.WriteFile(filepath.Join(r.Dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// freshCopy is a copy of a snapshot's data folder, and a new instance for it.
func freshCopy(t *testing.T, b *enginetest.Bed, id kurabe.SnapshotID) (*enginetest.Bed, string) {
	t.Helper()
	n := b.From(t, id)
	n.Want.Log = true
	home := n.Home()
	owner := &volume.Owner{UID: os.Getuid(), GID: os.Getgid()}
	if n.Account() != nil {
		owner = &volume.Owner{UID: n.Account().UID, GID: n.Account().GID}
	}
	if err := volume.EnsureDir(home.Dir, 0o750, os.Getuid(), owner.GID); err != nil {
		t.Fatal(err)
	}
	fresh := home.DataDir() + ".fresh.tmp"
	_, _, err := volume.Transfer(t.Context(), filepath.Join(b.Root, "snapshots", string(id), "data"), fresh, volume.TransferOptions{Owner: owner})
	if err != nil {
		t.Fatal(err)
	}
	return n, fresh
}

// restore brings a snapshot to a moment and serves what came of it.
func restore(t *testing.T, b *enginetest.Bed, id kurabe.SnapshotID, r engine.ReplayRequest) *enginetest.Bed {
	t.Helper()
	n, fresh := freshCopy(t, b, id)
	driver := b.Driver.(*Driver)
	begin := time.Now()
	if err := driver.Replay(t.Context(), n.Instance(), fresh, r); err != nil {
		t.Fatal(err)
	}
	t.Logf("replayed to %v in %v", r.At.Format("05.000"), time.Since(begin).Round(time.Millisecond))
	entries, err := os.ReadDir(fresh)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.Contains(e.Name(), "relay") || strings.Contains(e.Name(), "master.info") || e.Name() == privateDir || strings.HasPrefix(e.Name(), binlog.BaseName) {
			t.Errorf("%s is left", e.Name())
		}
	}
	if err := driver.Adopt(n.Instance(), fresh); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(fresh, n.Home().DataDir()); err != nil {
		t.Fatal(err)
	}
	n.Satisfy(t)
	return n
}
