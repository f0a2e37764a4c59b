package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"kurabe/internal/engine"
	"kurabe/internal/proc"
	"kurabe/internal/volume"
)

const (
	// heapAllIndexedBytesMax: up to this size of the data each row is also looked for
	// in the indexes, which reads every table once more for each of them.
	heapAllIndexedBytesMax = 4 << 30
	// amcheckMajorMin is the first version that can check tables.
	amcheckMajorMin = 14
	// Bounds of what is reported: the first damage says enough.
	problemsMax     = 50
	problemBytesMax = 500
)

// Check implements engine.Logger. The tables and indexes are checked by the running
// server (amcheck), then every page by its checksum (pg_checksums).
func (d *Driver) Check(ctx context.Context, i engine.Instance, dataDir string, r engine.CheckRequest) (engine.Checked, error) {
	c := &checking{}
	err := c.run(ctx, d, i, dataDir, r)
	// What could not be done because of damage is part of the finding, not a failure
	// of ours; what has another cause is one.
	if said := (*recoveryError)(nil); errors.As(err, &said) && ctx.Err() == nil {
		c.add(said.words)
		err = nil
	}
	if err != nil {
		return engine.Checked{}, fmt.Errorf("check: %w", err)
	}
	if len(c.problems) == 0 && c.marker.Before(r.Marker) {
		c.add(fmt.Sprintf("the marker row is of %s, and must not be older than %s", spell(c.marker), spell(r.Marker)))
	}
	return engine.Checked{Marker: c.marker, Problems: c.problems, Notes: c.notes()}, nil
}

func spell(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// checking is one check under way.
type checking struct {
	marker   time.Time
	problems []string
	alone    []string // indexes of which only the structure was checked
	foreign  []string // indexes that were not checked
}

func (c *checking) add(words string) {
	for text := range strings.Lines(words) {
		text = strings.TrimRight(text, "\n")
		if strings.TrimSpace(text) != "" && len(c.problems) < problemsMax {
			c.problems = append(c.problems, text[:min(len(text), problemBytesMax)])
		}
	}
}

func (c *checking) run(ctx context.Context, d *Driver, i engine.Instance, dataDir string, r engine.CheckRequest) (err error) {
	if majorOf(i.Version) < amcheckMajorMin {
		return fmt.Errorf("PostgreSQL %s is older than %d", i.Version.Version, amcheckMajorMin)
	}
	bytes, err := volume.UsedBytes(dataDir)
	if err != nil {
		return err
	}
	var visited error
	visit := func(ctx context.Context, p *private, conn *pgx.Conn) error {
		// Damage that keeps the tool from its work is found by the checksums, too.
		visited = c.visit(ctx, p, conn, bytes <= heapAllIndexedBytesMax)
		return ctx.Err()
	}
	if r.Replay != nil {
		err = d.replay(ctx, i, dataDir, *r.Replay, visit)
	} else {
		err = d.recoverSnapshot(ctx, i, dataDir, visit)
	}
	if err != nil {
		return err
	}
	p, err := d.openPrivate(ctx, i, dataDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	if err := c.sums(ctx, p); err != nil {
		return err
	}
	if visited != nil && len(c.problems) > 0 {
		c.add(visited.Error())
		return nil
	}
	return visited
}

// recoverSnapshot is what a start of an instance on the folder does, for a look.
func (d *Driver) recoverSnapshot(ctx context.Context, i engine.Instance, dataDir string, visit visitor) (err error) {
	p, err := d.openPrivate(ctx, i, dataDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	p.copied = true
	return p.run(ctx, nil, visit)
}

// visit asks the running server.
func (c *checking) visit(ctx context.Context, p *private, conn *pgx.Conn, thorough bool) error {
	err := c.tables(ctx, p, conn, thorough)
	var markerErr error
	if c.marker, markerErr = readMarker(ctx, conn); markerErr != nil {
		c.add(markerErr.Error())
	}
	return err
}

// sums runs pg_checksums on the stopped cluster.
func (c *checking) sums(ctx context.Context, p *private) error {
	if !p.control.checksums {
		return nil
	}
	_, err := p.tool(ctx, "pg_checksums", "--check", "--pgdata="+p.Seen(p.data))
	var failed *proc.ToolError
	if errors.As(err, &failed) && failed.Exit.Signal == 0 && strings.Contains(failed.Stderr, "checksum verification failed") {
		c.add(failed.Stderr)
		return nil
	}
	return err
}
