package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"
	"github.com/spf13/cobra"

	"kurabe"
	"kurabe/cmd/kurabe/client"
)

func logsCommand() *cobra.Command {
	var f client.Flags
	var follow, list bool
	r := logReader{out: os.Stdout}
	c := &cobra.Command{
		Use:   "logs NAME [FILE]",
		Short: "Show the log of a DB instance, and follow it",
		Long: `Show the last lines of a log file of a DB instance: of the newest one, or of FILE as --list
shows it. FILE may also be the beginning of a name, such as slowquery: then it is the newest of
these.

--follow goes on until Ctrl-C: with the next file after a rotation, with the log of the new
primary after a failover, and over a restart of the service. On a terminal, errors are coloured
(not with NO_COLOR).

  kurabe logs shop --list
  kurabe logs shop --follow
  kurabe logs ring-instance-2 slowquery -n 1000`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: f.InstanceNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if r.c, err = f.Client(); err != nil {
				return err
			}
			if r.instance = args[0]; len(args) == 2 {
				r.begin = args[1]
			}
			if list {
				return r.list(cmd.Context())
			}
			_, r.colours = onTerminal()
			return repeat(cmd.Context(), follow, r.look)
		},
	}
	f.Add(c)
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with new lines, until Ctrl-C")
	c.Flags().BoolVar(&list, "list", false, "list the log files, oldest first")
	c.Flags().Int32VarP(&r.lines, "lines", "n", 100, "begin with so many last lines, at most 10000")
	return c
}

// logReader shows a log from its last lines on.
type logReader struct {
	c               *client.Client
	out             io.Writer
	instance, begin string // begin is that of the file's name
	lines           int32
	colours         bool
	file, marker    string // what was read last, and how far
}

// files are the log files that FILE stands for, the newest last.
func (r *logReader) files(ctx context.Context) ([]types.DescribeDBLogFilesDetails, error) {
	var files []types.DescribeDBLogFilesDetails
	pages := rds.NewDescribeDBLogFilesPaginator(r.c.Client, &rds.DescribeDBLogFilesInput{DBInstanceIdentifier: aws.String(r.instance)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		files = append(files, page.DescribeDBLogFiles...)
	}
	// The one that is there under the name itself, or those that begin with it.
	exact := slices.ContainsFunc(files, func(f types.DescribeDBLogFilesDetails) bool { return aws.ToString(f.LogFileName) == r.begin })
	files = slices.DeleteFunc(files, func(f types.DescribeDBLogFilesDetails) bool {
		name := aws.ToString(f.LogFileName)
		return exact && name != r.begin || !strings.HasPrefix(name, r.begin)
	})
	slices.SortStableFunc(files, func(a, b types.DescribeDBLogFilesDetails) int {
		return int(max(min(aws.ToInt64(a.LastWritten)-aws.ToInt64(b.LastWritten), 1), -1))
	})
	return files, nil
}

func (r *logReader) list(ctx context.Context) error {
	files, err := r.files(ctx)
	if err != nil {
		return client.Friendly(err)
	}
	person, _ := onTerminal()
	table := tabwriter.NewWriter(r.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "FILE\tSIZE\tLAST WRITTEN")
	for _, f := range files {
		fmt.Fprintf(table, "%s\t%s\t%s\n", aws.ToString(f.LogFileName), kurabe.FormatBytes(aws.ToInt64(f.Size)), timeText(time.UnixMilli(aws.ToInt64(f.LastWritten)), person))
	}
	return table.Flush()
}

// look shows what is new. The file that was read is read to its end before the next one begins.
func (r *logReader) look(ctx context.Context) error {
	files, err := r.files(ctx)
	switch {
	case err != nil:
		return err
	case len(files) == 0 && r.file == "":
		return fmt.Errorf("DB instance %s has no log file %s", r.instance, r.begin)
	case len(files) == 0:
		return nil // a server that was just started
	}
	newest := aws.ToString(files[len(files)-1].LogFileName)
	if r.file == "" {
		if kind, _, ok := strings.Cut(newest, ".log"); ok {
			r.begin = kind + ".log" // and what follows it, not another log that is written meanwhile
		}
		r.file = newest
		return r.last(ctx)
	}
	var gone *types.DBLogFileNotFoundFault
	switch err := r.rest(ctx); {
	case errors.As(err, &gone):
		r.file = newest
		return r.otherServer(ctx)
	case err != nil:
		return err
	case r.file != newest:
		r.file, r.marker = newest, "0"
		return r.rest(ctx)
	}
	return nil
}

// otherServer begins with the last lines of a log of which nothing was read.
func (r *logReader) otherServer(ctx context.Context) error {
	fmt.Fprintf(os.Stderr, "kurabe: the log of another server of %s follows\n", r.instance)
	return r.last(ctx)
}

var errOtherServer = errors.New("no file with this marker")

// rotated returns the unread rest of a file that has another name by now.
func (r *logReader) rotated(ctx context.Context, marker string) (string, error) {
	all := *r
	all.begin, _, _ = strings.Cut(r.file, ".log")
	files, err := all.files(ctx)
	if err != nil {
		return "", err
	}
	for _, f := range slices.Backward(files) {
		if aws.ToString(f.LogFileName) == r.file {
			continue
		}
		text, next, _, err := r.portion(ctx, aws.ToString(f.LogFileName), marker)
		if err == nil && sameFile(marker, next) {
			return text, nil
		}
	}
	return "", errOtherServer
}

// sameFile says whether two markers are of one file: what is before the colon names it.
func sameFile(a, b string) bool {
	x, _, _ := strings.Cut(a, ":")
	y, _, _ := strings.Cut(b, ":")
	return x == y
}

func (r *logReader) portion(ctx context.Context, file, marker string) (text, next string, more bool, err error) {
	out, err := r.c.DownloadDBLogFilePortion(ctx, &rds.DownloadDBLogFilePortionInput{
		DBInstanceIdentifier: aws.String(r.instance), LogFileName: aws.String(file), Marker: aws.String(marker),
	})
	if err != nil {
		return "", "", false, err
	}
	return aws.ToString(out.LogFileData), aws.ToString(out.Marker), aws.ToBool(out.AdditionalDataPending), nil
}

// last shows the last lines of the file.
func (r *logReader) last(ctx context.Context) error {
	out, err := r.c.DownloadDBLogFilePortion(ctx, &rds.DownloadDBLogFilePortionInput{
		DBInstanceIdentifier: aws.String(r.instance), LogFileName: aws.String(r.file), NumberOfLines: aws.Int32(r.lines),
	})
	if err != nil {
		return err
	}
	r.marker = aws.ToString(out.Marker)
	return r.print(aws.ToString(out.LogFileData))
}

// rest shows what follows the marker. A file in the place of the one that was read is either what
// followed it, or that of another server, of which only the last lines are new to anybody.
func (r *logReader) rest(ctx context.Context) error {
	for more := true; more; {
		text, next, pending, err := r.portion(ctx, r.file, r.marker)
		if err != nil {
			return err
		}
		if r.marker != "0" && !sameFile(r.marker, next) {
			old, err := r.rotated(ctx, r.marker)
			switch {
			case errors.Is(err, errOtherServer):
				return r.otherServer(ctx)
			case err != nil:
				return err
			}
			text = old + text
		}
		r.marker, more = next, pending
		if err := r.print(text); err != nil {
			return err
		}
	}
	return nil
}

// print writes lines, those of errors in red.
func (r *logReader) print(text string) error {
	if !r.colours {
		_, err := io.WriteString(r.out, text)
		return err
	}
	for line := range strings.Lines(text) {
		colour := ""
		switch {
		case strings.Contains(line, "ERROR:"), strings.Contains(line, "FATAL:"), strings.Contains(line, "PANIC:"), strings.Contains(line, "[ERROR]"):
			colour = red
		case strings.Contains(line, "WARNING:"), strings.Contains(line, "[Warning]"):
			colour = yellow
		}
		body, ended := strings.CutSuffix(line, "\n")
		body = paint(colour, body)
		if ended {
			body += "\n"
		}
		if _, err := io.WriteString(r.out, body); err != nil {
			return err
		}
	}
	return nil
}
