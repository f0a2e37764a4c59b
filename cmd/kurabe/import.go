package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"

	"kurabe"
	"kurabe/internal/blob"
	"kurabe/internal/control"
	"kurabe/internal/snapshot"
)

func importCommand() *cobra.Command {
	var f clientFlags
	var r repositoryFlags
	c := &cobra.Command{
		Use:   "import",
		Short: "Take up the snapshots that a repository of backups holds",
		Long: `Have the service look into its repository of backups, and into the folder of its
snapshots, for snapshots that it does not know, and offer them for restoring. So a new
machine gets back what an old one archived: start its service with the old one's
--backup-repository (and --backup-key-file), then run this.

With --backup-repository the command opens the repository itself first, and refuses to
go on unless the service uses the same one. It may be repeated.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.client()
			if err != nil {
				return err
			}
			query := url.Values{}
			if r.location != "" {
				id, err := r.identify(cmd.Context())
				if err != nil {
					return err
				}
				query.Set("repository", id)
			}
			body, err := c.post(cmd.Context(), "/kurabe/import", query)
			if err != nil {
				return err
			}
			var out control.Import
			if err := json.Unmarshal(body, &out); err != nil {
				return err
			}
			return printImport(os.Stdout, out)
		},
	}
	f.add(c)
	r.add(c)
	c.Flags().Lookup("backup-repository").Usage = "the repository that the service must use (default: whichever it uses)"
	return c
}

// identify opens the repository and tells its id.
func (f repositoryFlags) identify(ctx context.Context) (string, error) {
	location, err := f.place("")
	if err != nil {
		return "", err
	}
	key, err := f.key()
	if err != nil {
		return "", err
	}
	open, err := blob.Open(ctx, location, blob.Options{Key: key})
	if err != nil {
		return "", err
	}
	return open.ID, nil
}

func printImport(w io.Writer, out control.Import) error {
	for _, r := range out.Imported {
		fmt.Fprintf(w, "imported  %s  of %s (%s)\n", r.Name, r.Instance, r.ID)
	}
	for _, r := range out.Refused {
		fmt.Fprintf(w, "refused   %s  %s: %s\n", r.ID, r.Name, r.Reason)
	}
	fmt.Fprintf(w, "%d imported, %d known before, %d refused\n", len(out.Imported), len(out.Known), len(out.Refused))
	if len(out.Refused) > 0 {
		return fmt.Errorf("%d snapshots could not be imported", len(out.Refused))
	}
	return nil
}

// importTime is what an import may take of the answer's writeTimeout. One that was
// cut off goes on when it is asked again.
const importTime = 50 * time.Second

// importer answers POST /kurabe/import.
type importer struct {
	repository *repository
	archive    *snapshot.Archive // nil: snapshots are not archived
	local      snapshot.Store
	control    *control.Control
}

func (i importer) answer(r *http.Request) (any, error) {
	ctx, cancel := context.WithTimeout(r.Context(), importTime)
	defer cancel()
	if id := r.URL.Query().Get("repository"); id != "" {
		open, err := i.repository.get()
		if err != nil {
			return nil, &kurabe.Error{Code: kurabe.CodeUnavailable, Message: "the repository of backups cannot be used: " + err.Error(), Err: err}
		}
		if open.ID != id || i.archive == nil {
			return nil, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "The service does not keep snapshots in that repository but in %s; start it with the same --backup-repository.", i.repository.location)
		}
	}
	found, err := i.local.All()
	if err == nil && i.archive != nil {
		var archived []snapshot.Archived
		archived, err = i.archive.List(ctx)
		found = append(found, archived...)
	}
	if err != nil {
		return nil, &kurabe.Error{Code: kurabe.CodeUnavailable, Message: "the snapshots cannot be listed: " + err.Error(), Err: err}
	}
	return i.control.ImportSnapshots(ctx, importable(found))
}

// importable names each snapshot once; where one of two records cannot be read, the
// other counts.
func importable(found []snapshot.Archived) []control.ImportedSnapshot {
	var out []control.ImportedSnapshot
	at := map[kurabe.SnapshotID]int{}
	for _, f := range found {
		next := control.ImportedSnapshot{ID: f.ID, Name: f.Record.Name, Source: f.Record.Source, Facts: f.Record.Facts, Err: f.Err}
		if next.Err == nil && f.Record.Engine != f.Record.Source.Engine {
			next.Err = fmt.Errorf("its files are of %.40q, its source is of %.40q", f.Record.Engine, f.Record.Source.Engine)
		}
		n, twice := at[f.ID]
		switch {
		case !twice:
			at[f.ID] = len(out)
			out = append(out, next)
		case out[n].Err != nil:
			out[n] = next
		}
	}
	return out
}
