package mariadb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/conf"
	"kurabe/internal/engine/mariadb/sqltext"
	"kurabe/internal/proc"
	"kurabe/internal/volume"
)

// Bounds of what a check reports: the first problems tell what to do.
const (
	problemsMax     = 20
	problemBytesMax = 500
)

// pageTool sums up the pages of a file that no server has open.
const pageTool = "innochecksum"

// problems are those that were found, bounded.
type problems []string

func (p *problems) add(text string) {
	text = strings.TrimSpace(strings.ToValidUTF8(text, "?"))
	if text != "" && len(*p) < problemsMax {
		*p = append(*p, text[:min(len(text), problemBytesMax)])
	}
}

// Check implements engine.Logger: the server's own check of every table, the sums of
// every page, and the marker.
func (d *Driver) Check(ctx context.Context, i engine.Instance, dataDir string, r engine.CheckRequest) (engine.Checked, error) {
	checked, err := d.check(ctx, i, dataDir, r)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return checked, fmt.Errorf("check: %w", err)
	}
	return checked, nil
}

func (d *Driver) check(ctx context.Context, i engine.Instance, dataDir string, r engine.CheckRequest) (engine.Checked, error) {
	var checked engine.Checked
	if r.Replay != nil {
		if err := d.Replay(ctx, i, dataDir, *r.Replay); err != nil {
			return checked, err
		}
	}
	s, err := openPrivate(ctx, i, dataDir)
	if err != nil {
		return checked, err
	}
	var found problems
	err = s.check(ctx, &checked, &found)
	var died *serverDied
	if errors.As(err, &died) && ctx.Err() == nil {
		found.add(err.Error())
		err = nil
	}
	if err == nil {
		err = s.End(ctx)
	}
	// The server is gone, so its files are at rest.
	if err == nil {
		err = s.checkPages(ctx, &found)
	}
	err = errors.Join(err, s.close())
	if err == nil && checked.Marker.IsZero() && !r.Marker.IsZero() {
		found.add("the marker is missing")
	}
	if err == nil && !checked.Marker.IsZero() && checked.Marker.Before(r.Marker) {
		found.add(fmt.Sprintf("the marker is of %s, older than %s", checked.Marker.UTC(), r.Marker.UTC()))
	}
	checked.Problems = found
	return checked, err
}

func (s *privateServer) check(ctx context.Context, checked *engine.Checked, found *problems) error {
	if err := s.settle(ctx); err != nil {
		return fmt.Errorf("recover the snapshot: %w", err)
	}
	if err := s.launch(ctx, privateOptions{account: true, options: []conf.Option{bufferPool(s.i, privateCheckPool)}}); err != nil {
		return fmt.Errorf("start a private server: %w", err)
	}
	err := s.checkTables(ctx, checked, found)
	if err == nil {
		var rows []map[string]string
		if rows, err = s.rows(ctx, markerSQL); err == nil && len(rows) == 1 {
			checked.Marker, err = parseMarker(rows[0]["comment"])
		}
	}
	if err == nil {
		return s.stop(ctx)
	}
	if !s.Process.Alive() && ctx.Err() == nil {
		return fmt.Errorf("%w: %w", s.died(), err)
	}
	return err
}

// checkTables is what mariadb-check does: CHECK TABLE reads every index, and what it
// says that is not OK is a problem, or why the table cannot be checked.
func (s *privateServer) checkTables(ctx context.Context, checked *engine.Checked, found *problems) error {
	tables, err := s.rows(ctx, `SELECT TABLE_SCHEMA AS s, TABLE_NAME AS t FROM information_schema.TABLES
 WHERE TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED', 'SEQUENCE')
 AND TABLE_SCHEMA NOT IN ('information_schema', 'performance_schema') ORDER BY 1, 2`)
	if err != nil {
		return err
	}
	for _, table := range tables {
		said, err := s.rows(ctx, "CHECK TABLE "+sqltext.Name(table["s"])+"."+sqltext.Name(table["t"])+" EXTENDED")
		if err != nil {
			return fmt.Errorf("check table %s.%s: %w", table["s"], table["t"], err)
		}
		t := judge(said)
		for _, p := range t.problems {
			found.add(p)
		}
		if t.unchecked != "" {
			checked.Notes = append(checked.Notes, table["s"]+"."+table["t"]+" was not checked: "+t.unchecked)
		}
	}
	if more := len(checked.Notes) - problemsMax; more > 0 {
		checked.Notes = append(checked.Notes[:problemsMax-1], fmt.Sprintf("%d more tables were not checked", more+1))
	}
	return nil
}

// checkPages sums up every page of InnoDB's tables, also those that no index leads to. The
// files are the engine's user's, and so is the tool that reads them.
func (s *privateServer) checkPages(ctx context.Context, found *problems) error {
	tool, err := findPageTool(s.i)
	if err != nil {
		return err
	}
	return volume.WalkDir(s.Dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || !holdsPages(entry.Name()) || len(*found) >= problemsMax {
			return err
		}
		name, err := filepath.Rel(s.Dir, path)
		if err != nil {
			return err
		}
		_, err = s.Run(ctx, proc.Tool{Name: pageTool, Argv: []string{tool, s.Seen(path)}, Dir: "/"})
		var failed *proc.ToolError
		if errors.As(err, &failed) {
			found.add(name + ": " + failed.Error())
			return nil
		}
		return err
	})
}

// holdsPages says of a name whether the tool can judge the file. The system's own has
// the doublewrite buffer, whose pages are of other files or of none.
func holdsPages(name string) bool { return strings.HasSuffix(name, ".ibd") }

func findPageTool(i engine.Instance) (string, error) {
	prefix := filepath.Dir(i.Version.BinDir)
	for _, dir := range []string{"bin", "sbin"} {
		if path := filepath.Join(prefix, dir, pageTool); conf.Exists(path) {
			return path, nil
		}
	}
	return "", fmt.Errorf("a check needs the program %s, which is not installed beside %s", pageTool, conf.ServerPath(i.Version.BinDir))
}
