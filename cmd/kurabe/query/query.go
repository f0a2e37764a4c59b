package query

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"kurabe/cmd/kurabe/client"
)

var logs = client.JSONService{Name: "logs", Target: "Logs_20140328", Version: "1.1"}

// The requests and answers of the service "logs", as its JSON has them.
type (
	groupsAsk struct {
		LogGroupNamePrefix string `json:"logGroupNamePrefix"`
		NextToken          string `json:"nextToken,omitempty"`
	}
	groupsAnswer struct {
		LogGroups []struct{ LogGroupName string }
		NextToken string
	}
	startAsk struct {
		LogGroupNames []string `json:"logGroupNames"`
		QueryString   string   `json:"queryString"`
		StartTime     int64    `json:"startTime"`
		EndTime       int64    `json:"endTime"`
		Limit         int      `json:"limit,omitempty"`
	}
	queryID struct {
		ID string `json:"queryId"`
	}
	field   struct{ Field, Value string }
	results struct {
		Status     string
		Results    [][]field
		Statistics struct{ RecordsMatched, RecordsScanned, BytesScanned float64 }
	}
	malformed struct {
		QueryCompileError struct {
			Message  string
			Location struct{ StartCharOffset, EndCharOffset int }
		}
	}
)

// pollEvery is how often the results are asked for.
const pollEvery = 200 * time.Millisecond

// Command is "kurabe query".
func Command() *cobra.Command {
	var f client.Flags
	var groups []string
	since, until := client.Span(time.Hour), client.Span(0)
	var limit int
	c := &cobra.Command{
		Use:   "query [NAME] QUERY",
		Short: "Search and count the exported logs of an instance or cluster, or any log groups",
		Long: `Ask a query of CloudWatch Logs Insights of the exported logs of a DB instance or cluster,
or of the log groups that --group names. The rows are a table on a terminal, lines with tabs
elsewhere; the first line has the names of the columns. Ctrl-C stops the query.

  kurabe query shop 'filter @message like /ERROR/ | sort @timestamp desc | limit 20'
  kurabe query shop 'filter @message like /duration/ | parse "duration: * ms" as ms
                     | stats count(*), pct(ms, 99) by bin(5m)' --since 24h
  kurabe query --group app 'stats count(*) by level'`,
		Args: func(_ *cobra.Command, args []string) error {
			want, what := 2, "the name of a DB instance or cluster, and a query"
			if len(groups) > 0 {
				want, what = 1, "a query; --group stands for the name"
			}
			if len(args) != want {
				return fmt.Errorf("give %s (see kurabe query --help)", what)
			}
			return nil
		},
		ValidArgsFunction: f.InstanceNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.Client()
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, unix.SIGTERM)
			defer stop()
			if len(groups) == 0 {
				if groups, err = exported(ctx, c, args[0]); err != nil {
					return err
				}
			}
			now := time.Now()
			ask := startAsk{LogGroupNames: groups, QueryString: args[len(args)-1], StartTime: now.Add(-time.Duration(since)).Unix(), EndTime: now.Add(-time.Duration(until)).Unix(), Limit: limit}
			r, err := run(ctx, c, ask)
			if err != nil {
				return err
			}
			out := bufio.NewWriter(os.Stdout)
			write(out, r.Results, terminalColumns())
			return out.Flush()
		},
	}
	f.Add(c)
	c.Flags().StringSliceVar(&groups, "group", nil, "log group to ask instead of those of an instance; several are separated by commas")
	c.Flags().Var(&since, "since", "how long ago the time begins: 30m, 24h, 7d")
	c.Flags().Var(&until, "until", "how long ago the time ends")
	c.Flags().IntVar(&limit, "limit", 0, "rows at most (default 10000)")
	return c
}

// exported are the log groups of an instance or cluster.
func exported(ctx context.Context, c *client.Client, name string) (list []string, err error) {
	for _, kind := range []string{"instance", "cluster"} {
		ask := groupsAsk{LogGroupNamePrefix: "/aws/rds/" + kind + "/" + name + "/"}
		for {
			page, err := client.AskService[groupsAnswer](ctx, c, logs, "DescribeLogGroups", ask)
			if err != nil {
				return nil, err
			}
			for _, g := range page.LogGroups {
				list = append(list, g.LogGroupName)
			}
			if ask.NextToken = page.NextToken; ask.NextToken == "" {
				break
			}
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no log of %s is in a log group yet: that of a new export is there some ten seconds after its first line; to export a log, modify %s with CloudwatchLogsExportConfiguration (EnableLogTypes); or name a log group with --group", name, name)
	}
	return list, nil
}

// run starts a query and waits for its end.
func run(ctx context.Context, c *client.Client, ask startAsk) (r *results, err error) {
	id, err := client.AskService[queryID](ctx, c, logs, "StartQuery", ask)
	if err != nil {
		return nil, pointed(err, ask.QueryString)
	}
	progress := client.NewProgress(os.Stderr, "query")
	defer func() {
		if progress.Terminal {
			progress.End()
		}
	}()
	for {
		if r, err = client.AskService[results](ctx, c, logs, "GetQueryResults", id); err != nil {
			if ctx.Err() != nil {
				break
			}
			return nil, err
		}
		if progress.Terminal {
			progress.Show(fmt.Sprintf("%s, %.0f of %.0f events match, %.1f MB read, %d rows", r.Status, r.Statistics.RecordsMatched, r.Statistics.RecordsScanned, r.Statistics.BytesScanned/1e6, len(r.Results)))
		}
		if r.Status == "Complete" {
			return r, nil
		}
		if r.Status != "Scheduled" && r.Status != "Running" {
			return nil, errors.New(failure(r))
		}
		select {
		case <-time.After(pollEvery):
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
	}
	const stopTime = 5 * time.Second
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	if _, err := client.AskService[struct{}](last, c, logs, "StopQuery", id); err != nil {
		return nil, fmt.Errorf("stop the query: %w", err)
	}
	return nil, errors.New("the query was stopped")
}

// failure is why a query has failed: the last row says so.
func failure(r *results) string {
	if n := len(r.Results); n > 0 && len(r.Results[n-1]) == 1 {
		return "the query ended as " + r.Status + ": " + r.Results[n-1][0].Value
	}
	return "the query ended as " + r.Status
}

// pointed shows where the mistake of a query stands.
func pointed(err error, query string) error {
	var said client.Refused
	var m malformed
	if !errors.As(err, &said) || json.Unmarshal(said.Body, &m) != nil || m.QueryCompileError.Message == "" {
		return err
	}
	return errors.New(m.QueryCompileError.Message + "\n" + caret(query, m.QueryCompileError.Location.StartCharOffset, m.QueryCompileError.Location.EndCharOffset))
}

// caret shows the line of a place in a query, which counts characters, with marks below it.
func caret(query string, start, end int) string {
	runes := []rune(query)
	start = max(0, min(start, len(runes)))
	end = max(start, min(end, len(runes)))
	from, to := start, start
	for from > 0 && runes[from-1] != '\n' {
		from--
	}
	for to < len(runes) && runes[to] != '\n' {
		to++
	}
	indent := strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, string(runes[from:start]))
	return "  " + string(runes[from:to]) + "\n  " + indent + strings.Repeat("^", max(1, min(end, to)-start))
}
