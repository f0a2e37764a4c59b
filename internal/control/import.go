package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kurabe"
	"kurabe/internal/store"
)

// ImportedSnapshot is a complete snapshot that was found outside the records, or why
// what was found cannot be used.
type ImportedSnapshot struct {
	ID     kurabe.SnapshotID
	Name   string
	Source kurabe.SnapshotSource
	Facts  kurabe.SnapshotFacts
	Err    error
}

// Import tells what became of each snapshot that was found.
type Import struct {
	Imported []ImportResult // written now
	Known    []ImportResult // recorded before
	Refused  []ImportResult // not written, with the reason
}

// ImportResult is one of them.
type ImportResult struct {
	ID       kurabe.SnapshotID
	Name     string // in the service, which may differ from the recorded one
	Instance string // name of the source
	Reason   string `json:",omitempty"`
}

// importedNamesMax bounds the names that are tried for one snapshot.
const importedNamesMax = 1000

// automatedPrefix begins the names of automated snapshots, and no others.
const automatedPrefix = "rds:"

// ImportSnapshots writes the records of snapshots that nobody here knows: a host then
// looks for the files. It may be repeated. An error says that the store did not take
// them all; what was written stays.
func (c *Control) ImportSnapshots(ctx context.Context, found []ImportedSnapshot) (Import, error) {
	var out Import
	for _, f := range found {
		r := ImportResult{ID: f.ID, Name: f.Name, Instance: f.Source.Name}
		if s, known := c.View.AnySnapshot(f.ID); known {
			if name := s.Name(); name != "" {
				r.Name = name
			}
			out.Known = append(out.Known, r)
			continue
		}
		err := f.check()
		if err == nil {
			r.Name, err = c.importSnapshot(ctx, f)
		}
		var refused *kurabe.Error
		switch {
		case err == nil:
			out.Imported = append(out.Imported, r)
		case ctx.Err() != nil, errors.As(err, &refused) && refused.Code == kurabe.CodeUnavailable:
			return out, err
		default:
			r.Reason = err.Error()
			out.Refused = append(out.Refused, r)
		}
	}
	return out, nil
}

// check refuses a record from which no instance could be made: anybody may have
// written it.
func (f ImportedSnapshot) check() error {
	s := f.Source
	switch {
	case f.Err != nil:
		return f.Err
	case !slices.Contains([]kurabe.EngineName{kurabe.Postgres, kurabe.MariaDB}, s.Engine):
		return fmt.Errorf("its engine %.40q is not known", s.Engine)
	case s.Instance == "" || s.Name == "" || s.MasterUsername == "" || s.Settings.EngineVersion == "" || s.Settings.Class == "":
		return errors.New("its record lacks what a restore needs of the source")
	case f.Facts.TakenAt.IsZero():
		return errors.New("its record does not say when it was taken")
	case strings.HasPrefix(f.Name, automatedPrefix):
		_, err := foldSnapshotName("name", strings.TrimPrefix(f.Name, automatedPrefix))
		return err
	}
	_, err := foldSnapshotName("name", f.Name)
	return err
}

// importSnapshot writes one record under the first name that is free. Quotas do not
// hold for it: it exists.
func (c *Control) importSnapshot(ctx context.Context, f ImportedSnapshot) (string, error) {
	spec := kurabe.SnapshotSpec{
		ID: f.ID, Revision: 1, Kind: kurabe.SnapshotManual, CreatedAt: f.Facts.TakenAt.UTC(), OriginalAt: f.Facts.TakenAt.UTC(),
		Source: f.Source, OptionGroup: f.Source.OptionGroup, Imported: true,
	}
	if strings.HasPrefix(f.Name, automatedPrefix) {
		spec.Kind = kurabe.SnapshotAutomated
	}
	err := c.update(ctx, func() (*store.Change, error) {
		if _, known := c.View.AnySnapshot(f.ID); known {
			return nil, nil // by another request
		}
		var err error
		if spec.Name, err = c.importedName(f.Name); err != nil {
			return nil, err
		}
		return store.NewChange().CreateSnapshot(spec), nil
	})
	return spec.Name, err
}

// importedName is the recorded name, or NAME-imported-N when that is taken.
func (c *Control) importedName(name string) (string, error) {
	name = strings.ToLower(name)
	try := name
	for n := 1; n <= importedNamesMax; n++ {
		if _, taken := c.View.SnapshotByName(try); !taken {
			return try, nil
		}
		ending := fmt.Sprintf("-imported-%d", n)
		try = strings.TrimRight(name[:min(len(name), maxSnapshotName-len(ending))], "-") + ending
	}
	return "", kurabe.Errorf(kurabe.CodeSnapshotExists, "Cannot import the snapshot because snapshots with the identifiers %s and %s-imported-1 to %d exist.", name, name, importedNamesMax)
}
