package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"

	"kurabe"
	"kurabe/internal/volume"
)

// catalogFormat rises when the meaning of a saved catalogue changes, so that an
// old one is read from the engine again.
const catalogFormat = 2

type savedCatalog struct {
	Format  int
	BinDir  string
	Catalog kurabe.Catalog
}

// Prepare makes a version ready: its default template exists and its parameters
// are known. What an earlier service prepared is used again.
func (l *Lifecycle) Prepare(ctx context.Context, v kurabe.EngineVersion) (kurabe.Catalog, error) {
	locale := ""
	if len(v.Locales) > 0 {
		locale = v.Locales[0]
	}
	r, err := l.EnsureTemplate(ctx, v, locale)
	if err != nil {
		return kurabe.Catalog{}, err
	}
	path := filepath.Join(filepath.Dir(r.Dir), "catalog.json")
	var saved savedCatalog
	if data, err := volume.ReadFile(path); err == nil && json.Unmarshal(data, &saved) == nil &&
		saved.Format == catalogFormat && saved.BinDir == v.BinDir && len(saved.Catalog.Parameters) > 0 {
		return withOwn(saved.Catalog), nil
	}
	catalog, err := l.c.Driver.ReadCatalog(ctx, r)
	if err != nil {
		return catalog, fmt.Errorf("read the parameters of %s %s: %w", v.Engine, v.Version, err)
	}
	data, err := json.Marshal(savedCatalog{catalogFormat, v.BinDir, catalog})
	if err != nil {
		return catalog, err
	}
	return withOwn(catalog), volume.AtomicWrite(path, data, 0o600)
}

// Stop ends the server of an instance cleanly, outside any assignment: the
// service is asked to leave nothing running.
func (l *Lifecycle) Stop(ctx context.Context, a kurabe.Assignment) error {
	i := l.instance(a)
	return l.stop(ctx, i)
}
