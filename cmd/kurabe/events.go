package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"
	"github.com/spf13/cobra"

	"kurabe/cmd/kurabe/client"
)

// eventsAgain is how far before the newest event that was shown the next look begins: an event is
// stored a moment after its time.
const eventsAgain = time.Minute

const eventsKept = 14 * 24 * time.Hour

func eventsCommand() *cobra.Command {
	var f client.Flags
	since := client.Span(time.Hour)
	var follow bool
	w := eventWriter{out: os.Stdout, seen: map[string]time.Time{}}
	c := &cobra.Command{
		Use:   "events [NAME]",
		Short: "Show what happened to DB instances, clusters, snapshots and parameter groups",
		Long: `Show what happened to DB instances, clusters, snapshots and parameter groups, oldest first.
With NAME, only the events of what has this name now. Events are kept for 14 days.

On a terminal, times are local and failures are coloured (not with NO_COLOR). In a pipe, each
event is a line of time (RFC 3339, UTC), type, name, categories and message, with a tab between
them. --follow goes on until Ctrl-C, also over a restart of the service.

  kurabe events shop --since 24h
  kurabe events --category failover --category failure --follow`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: f.InstanceNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if since == 0 || since > client.Span(eventsKept) {
				return errors.New("--since is more than 0 and at most 14 days")
			}
			c, err := f.Client()
			if err != nil {
				return err
			}
			if len(args) == 1 {
				w.name = strings.ToLower(args[0])
			}
			w.person, w.colours = onTerminal()
			w.from = time.Now().Add(-time.Duration(since))
			return repeat(cmd.Context(), follow, func(ctx context.Context) error { return w.look(ctx, c) })
		},
	}
	f.Add(c)
	c.Flags().Var(&since, "since", "how far to look back: 30m, 24h, 7d")
	c.Flags().StringArrayVar(&w.categories, "category", nil, `only events of this category, such as "low storage"; may be repeated`)
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with new events, until Ctrl-C")
	return c
}

// eventWriter writes each event once.
type eventWriter struct {
	out             io.Writer
	name            string
	categories      []string
	person, colours bool
	from            time.Time
	seen            map[string]time.Time // what was written, as far as it may come again
}

func (w *eventWriter) look(ctx context.Context, c *client.Client) error {
	pages := rds.NewDescribeEventsPaginator(c.Client, &rds.DescribeEventsInput{StartTime: aws.Time(w.from), EventCategories: w.categories})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, e := range page.Events {
			if err := w.write(e); err != nil {
				return err
			}
		}
	}
	for key, at := range w.seen {
		if at.Before(w.from) {
			delete(w.seen, key)
		}
	}
	return nil
}

func (w *eventWriter) write(e types.Event) error {
	at := aws.ToTime(e.Date)
	key := at.Format(time.RFC3339Nano) + aws.ToString(e.SourceArn) + aws.ToString(e.Message)
	if _, known := w.seen[key]; known || w.name != "" && aws.ToString(e.SourceIdentifier) != w.name {
		return nil
	}
	w.seen[key] = at
	if from := at.Add(-eventsAgain); from.After(w.from) {
		w.from = from
	}
	categories := strings.Join(e.EventCategories, ", ")
	if !w.person {
		message := strings.NewReplacer("\n", " ", "\t", " ").Replace(aws.ToString(e.Message))
		_, err := fmt.Fprintf(w.out, "%s\t%s\t%s\t%s\t%s\n", timeText(at, false), e.SourceType, aws.ToString(e.SourceIdentifier), categories, message)
		return err
	}
	colour, faint := "", ""
	if w.colours {
		colour, faint = eventColour(e.EventCategories), dim
	}
	_, err := fmt.Fprintf(w.out, "%s  %-16s %s  %s\n", paint(faint, timeText(at, true)), aws.ToString(e.SourceIdentifier),
		paint(colour, aws.ToString(e.Message)), paint(faint, "("+categories+")"))
	return err
}

// eventColour shows what needs a look.
func eventColour(categories []string) string {
	for _, c := range categories {
		switch c {
		case "failure", "low storage":
			return red
		case "failover", "availability":
			return yellow
		case "recovery", "creation", "restoration":
			return green
		}
	}
	return ""
}
