package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"kurabe/cmd/kurabe/client"
	ownapi "kurabe/internal/api/kurabe"
	"kurabe/internal/control"
	"kurabe/internal/importer"
	"kurabe/internal/service"
)

func importCommand() *cobra.Command {
	var f client.Flags
	var r service.RepositoryConfig
	c := &cobra.Command{
		Use:   "import",
		Short: "Import snapshots from the backup repository",
		Long: `Find snapshots in the backup repository and in the snapshot folder that the service has no
record of, and make them available for restores. To recover on a new machine, start a service
with the --backup-repository (and --backup-key-file) of the old one, then run this.

The import runs in the service; the command shows its progress, or that of an import that
already runs. Ctrl-C ends the command and not the import. An import that a stop of the service
interrupted is resumed by the next "kurabe import".

With --backup-repository the command first checks that the service uses this repository.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.Client()
			if err != nil {
				return err
			}
			var in ownapi.StartImportInput
			if r.Location != "" {
				id, err := r.Identify(cmd.Context())
				if err != nil {
					return err
				}
				in.RepositoryID = id
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return followImport(ctx, c, in)
		},
	}
	f.Add(c)
	addRepositoryFlags(c.Flags(), &r)
	c.Flags().Lookup("backup-repository").Usage = "the repository that the service must use (default: whichever it uses)"
	return c
}

// followImport has the service import, and shows what comes of it until it is done.
func followImport(ctx context.Context, c *client.Client, in ownapi.StartImportInput) error {
	out, err := client.Ask[ownapi.ImportOutput](ctx, c, "StartImport", in)
	if err != nil {
		return err
	}
	v := out.Import
	p := client.NewProgress(os.Stderr, "import")
	shown := 0
	for {
		if p.Terminal && len(v.Results) > 0 {
			fmt.Fprint(os.Stderr, "\r\033[K")
		}
		printImported(os.Stdout, v.Results)
		shown += len(v.Results)
		if !v.Running && shown >= v.Told {
			p.End()
			return endOfImport(os.Stdout, v)
		}
		switch {
		case v.Waiting != "":
			p.Show("waiting to go on: " + v.Waiting)
		case p.Terminal:
			p.Show(fmt.Sprintf("%d imported, %d known before, %d refused", v.Imported, v.Known, v.Refused))
		}
		select {
		case <-ctx.Done():
			p.End()
			fmt.Fprintln(os.Stderr, "the import goes on in the service; repeat the command to follow it")
			return ctx.Err()
		case <-time.After(client.PollEvery):
		}
		if out, err = client.Ask[ownapi.ImportOutput](ctx, c, "DescribeImport", ownapi.DescribeImportInput{Job: v.Job, From: shown}); err != nil {
			p.End()
			return fmt.Errorf("%w; what was imported stays: repeat the command to go on", err)
		}
		v = out.Import
	}
}

func printImported(w io.Writer, results []control.ImportResult) {
	for _, r := range results {
		if r.Outcome == control.ImportRefused {
			fmt.Fprintf(w, "refused   %s  %s: %s\n", r.ID, r.Name, r.Reason)
			continue
		}
		fmt.Fprintf(w, "imported  %s  of %s (%s)\n", r.Name, r.Instance, r.ID)
	}
}

func endOfImport(w io.Writer, v importer.Progress) error {
	fmt.Fprintf(w, "%d imported, %d known before, %d refused\n", v.Imported, v.Known, v.Refused)
	switch {
	case v.Failed != "":
		return fmt.Errorf("the import did not come to its end; repeat it to go on: %s", v.Failed)
	case v.Refused > 0:
		return fmt.Errorf("%d snapshots could not be imported", v.Refused)
	}
	return nil
}
