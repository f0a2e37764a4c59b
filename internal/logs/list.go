package logs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kurabe"
	"kurabe/internal/volume"
)

// maxFiles bounds a listing: a year of hourly files.
const maxFiles = 10_000

// Source reads the logs of the instances of this host.
type Source struct {
	homes string
	now   func() time.Time
}

// New returns a Source over the folder that holds a home for each instance.
func New(homesDir string) *Source { return &Source{homes: homesDir, now: time.Now} }

// rule names the files of a log folder that begin with local: the file itself and
// what follows it after a dot (an hour, or the number of a rotation).
type rule struct{ local, name string }

var rules = map[kurabe.EngineName][]rule{
	kurabe.Postgres: {{"postgresql.log", "error/postgresql.log"}},
	kurabe.MariaDB: {
		{"mysql-error.log", "error/mysql-error.log"}, {"mysql-slowquery.log", "slowquery/mysql-slowquery.log"},
		{"mysql-general.log", "general/mysql-general.log"},
	},
}

// rdsName returns a file's name in RDS, "" when it is none that users see.
func rdsName(engine kurabe.EngineName, local string) string {
	for _, r := range rules[engine] {
		if rest, ok := strings.CutPrefix(local, r.local); ok && (rest == "" || rest[0] == '.') {
			return r.name + rest
		}
	}
	return ""
}

// List returns an instance's log files by name; none before its first start.
func (s *Source) List(ctx context.Context, id kurabe.InstanceID, engine kurabe.EngineName) ([]kurabe.LogFile, error) {
	var files []kurabe.LogFile
	err := s.each(ctx, id, engine, func(_, name string, info fs.FileInfo) bool {
		files = append(files, kurabe.LogFile{Name: name, SizeBytes: info.Size(), LastWritten: info.ModTime().UTC()})
		return len(files) < maxFiles
	})
	slices.SortFunc(files, func(a, b kurabe.LogFile) int { return strings.Compare(a.Name, b.Name) })
	return files, err
}

// each calls visit with every log file, its name here and in RDS, until visit
// says false.
func (s *Source) each(ctx context.Context, id kurabe.InstanceID, engine kurabe.EngineName, visit func(local, name string, info fs.FileInfo) bool) error {
	dir, err := s.dir(id)
	if err != nil {
		return err
	}
	entries, err := volume.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list logs: %w", err)
	}
	for _, entry := range entries {
		if ctx.Err() != nil {
			return fmt.Errorf("list logs: %w", ctx.Err())
		}
		name := rdsName(engine, entry.Name())
		if name == "" {
			continue
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // rotated away meanwhile
		}
		if err != nil {
			return fmt.Errorf("list logs: %w", err)
		}
		if info.Mode().IsRegular() && !visit(entry.Name(), name, info) {
			return nil
		}
	}
	return nil
}

// dir is an instance's log folder. Ids come from the store, not from users; one
// that is no plain name means that a record is corrupt.
func (s *Source) dir(id kurabe.InstanceID) (string, error) {
	if name := string(id); name == "" || name != filepath.Base(name) || !filepath.IsLocal(name) {
		return "", fmt.Errorf("list logs: %q is no instance id", id)
	}
	return filepath.Join(s.homes, string(id), "log"), nil
}
