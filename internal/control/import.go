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
	Kind   kurabe.SnapshotKind // "" where the record does not say: its name does
	Tags   []kurabe.Tag
	Source kurabe.SnapshotSource
	Facts  kurabe.SnapshotFacts
	Err    error
}

// ImportOutcome is what became of a snapshot that was found.
type ImportOutcome string

// The outcomes: written now, recorded before, and not written, with the reason.
const (
	ImportDone    ImportOutcome = "imported"
	ImportKnown   ImportOutcome = "known"
	ImportRefused ImportOutcome = "refused"
)

// ImportResult tells what became of one.
type ImportResult struct {
	Outcome  ImportOutcome
	ID       kurabe.SnapshotID
	Name     string // in the service, which may differ from the recorded one
	Instance string // name of the source
	Reason   string `json:",omitempty"`
}

// importedNamesMax bounds the names that are tried for one snapshot.
const importedNamesMax = 1000

// automatedPrefix begins the names of automated snapshots, and no others.
const automatedPrefix = "rds:"

// KnownSnapshot tells of a snapshot that is recorded; it need not be imported.
func (c *Control) KnownSnapshot(id kurabe.SnapshotID) (ImportResult, bool) {
	s, known := c.View.AnySnapshot(id)
	if !known {
		return ImportResult{}, false
	}
	r := ImportResult{Outcome: ImportKnown, ID: id, Name: s.Name()}
	if s.Spec != nil {
		r.Instance = s.Spec.Source.Name
	}
	return r, true
}

// ImportSnapshot writes the record of a snapshot that nobody here knows: a host then
// looks for the files. It may be repeated. An error says that the store did not take
// it just now.
func (c *Control) ImportSnapshot(ctx context.Context, f ImportedSnapshot) (ImportResult, error) {
	if r, known := c.KnownSnapshot(f.ID); known {
		return r, nil
	}
	r := ImportResult{Outcome: ImportDone, ID: f.ID, Name: f.Name, Instance: f.Source.Name}
	err := f.check()
	if err == nil {
		r.Name, err = c.importSnapshot(ctx, f)
	}
	var refused *kurabe.Error
	switch {
	case err == nil:
	case ctx.Err() != nil, errors.As(err, &refused) && refused.Code == kurabe.CodeUnavailable:
		return r, err
	default:
		r.Outcome, r.Reason = ImportRefused, err.Error()
	}
	return r, nil
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
	case f.Kind != "" && f.Kind != f.kindOfName():
		return fmt.Errorf("its kind is %.40q, which snapshots of that name are not", f.Kind)
	}
	_, err := foldSnapshotName("name", strings.TrimPrefix(f.Name, automatedPrefix))
	return err
}

// kindOfName is the kind that the name says: no user can take that of an automated one.
func (f ImportedSnapshot) kindOfName() kurabe.SnapshotKind {
	if strings.HasPrefix(f.Name, automatedPrefix) {
		return kurabe.SnapshotAutomated
	}
	return kurabe.SnapshotManual
}

// importSnapshot writes one record under the first name that is free. Quotas do not
// hold for it: it exists.
func (c *Control) importSnapshot(ctx context.Context, f ImportedSnapshot) (string, error) {
	spec := kurabe.SnapshotSpec{
		ID: f.ID, Revision: 1, Kind: f.kindOfName(), CreatedAt: f.Facts.TakenAt.UTC(), OriginalAt: f.Facts.TakenAt.UTC(),
		Source: f.Source, OptionGroup: f.Source.OptionGroup, Imported: true,
	}
	if kurabe.CheckTags(f.Tags) == nil { // a backup is not refused for the sake of what it is called
		spec.Tags = f.Tags
	}
	err := c.Update(ctx, func() (*store.Change, error) {
		if _, known := c.View.AnySnapshot(f.ID); known {
			return nil, nil // by another request
		}
		var err error
		if spec.Name, err = c.of(f.Source.Cluster).importedName(f.Name); err != nil {
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
		if _, taken := c.View.SnapshotByName(c.Key(try)); !taken {
			return try, nil
		}
		ending := fmt.Sprintf("-imported-%d", n)
		try = strings.TrimRight(name[:min(len(name), maxSnapshotName-len(ending))], "-") + ending
	}
	return "", kurabe.Errorf(kurabe.CodeSnapshotExists, "Cannot import the snapshot because snapshots with the identifiers %s and %s-imported-1 to %d exist.", name, name, importedNamesMax)
}
