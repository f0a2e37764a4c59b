//go:build integration

package integration

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"
	"github.com/jackc/pgx/v5/pgconn"

	"kurabe/internal/aws/sdkhttp"
	"kurabe/internal/harness"
)

// exported is how numbered statements appear in the exported log of an engine.
var exported = map[string]struct {
	log, stream, statement string
	line                   *regexp.Regexp
}{
	"postgres": {"postgresql", ".0", "SELECT\n number_%d", regexp.MustCompile(`ERROR:  column "number_(\d+)" does not exist`)},
	"mariadb":  {"general", "", "SELECT\n 'number_%d'", regexp.MustCompile(`Query\tSELECT\n 'number_(\d+)'$`)},
}

// exportedRequest asks for an instance that exports its logs, MariaDB's general log too.
func exportedRequest(t *testing.T, s *harness.Service, name, engine string) *rds.CreateDBInstanceInput {
	t.Helper()
	in := harness.Request(name, engine)
	in.EnableCloudwatchLogsExports = []string{"postgresql"}
	if engine != "mariadb" {
		return in
	}
	in.EnableCloudwatchLogsExports = []string{"error", "general", "slowquery"}
	versions, err := s.DescribeDBEngineVersions(t.Context(), &rds.DescribeDBEngineVersionsInput{Engine: in.Engine, DefaultOnly: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	in.DBParameterGroupName = aws.String(name)
	_, err = s.CreateDBParameterGroup(t.Context(), &rds.CreateDBParameterGroupInput{
		DBParameterGroupName: in.DBParameterGroupName, DBParameterGroupFamily: versions.DBEngineVersions[0].DBParameterGroupFamily, Description: aws.String("d"),
	})
	if err == nil {
		_, err = s.ModifyDBParameterGroup(t.Context(), &rds.ModifyDBParameterGroupInput{DBParameterGroupName: in.DBParameterGroupName, Parameters: []types.Parameter{
			{ParameterName: aws.String("general_log"), ParameterValue: aws.String("1"), ApplyMethod: types.ApplyMethodImmediate},
			{ParameterName: aws.String("log_output"), ParameterValue: aws.String("FILE"), ApplyMethod: types.ApplyMethodImmediate},
		}})
	}
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// exportedNumbers are those of the statements in the log group of an instance, in order, and the times of
// their events.
func exportedNumbers(ctx context.Context, i *harness.Instance, engine string) (list []int, times []int64, err error) {
	c := cloudwatchlogs.New(cloudwatchlogs.Options{Region: "us-east-1", BaseEndpoint: aws.String(i.Service.URL()), HTTPClient: sdkhttp.Client(), Credentials: i.Service.Client.Options().Credentials})
	of := exported[engine]
	in := &cloudwatchlogs.GetLogEventsInput{
		LogGroupName: aws.String("/aws/rds/instance/" + i.Name + "/" + of.log), LogStreamName: aws.String(i.Name + of.stream), StartFromHead: aws.Bool(true),
	}
	for {
		out, err := c.GetLogEvents(ctx, in)
		if err != nil {
			return nil, nil, err
		}
		for _, e := range out.Events {
			if m := of.line.FindStringSubmatch(aws.ToString(e.Message)); m != nil {
				n, _ := strconv.Atoi(m[1])
				list, times = append(list, n), append(times, aws.ToInt64(e.Timestamp))
			}
		}
		if aws.ToString(out.NextForwardToken) == aws.ToString(in.NextToken) {
			return list, times, nil
		}
		in.NextToken = out.NextForwardToken
	}
}

// TestLogExport: each statement is in the log group once, in order and with its time, although the
// service dies while statements are written.
func TestLogExport(t *testing.T) {
	s := harness.Start(t, harness.Options{})
	s.EachEngine(t, func(t *testing.T, engine string) {
		i := s.MustCreate(t, exportedRequest(t, s, "exported-"+engine, engine))
		session, begin := i.Open(t), time.Now()
		var want []int
		for n := range 3000 {
			err := session.Exec(t.Context(), fmt.Sprintf(exported[engine].statement, n))
			if (err == nil) != (engine == "mariadb") {
				t.Fatal(err)
			}
			want = append(want, n)
			switch n {
			case 500, 900, 1700:
				s.Kill(t)
				s.Launch(t)
			case 700, 1300, 2200:
				s.WaitReady(t)
			}
		}
		end := time.Now()
		var times []int64
		harness.Wait(t, 2*time.Minute, "every statement is exported", func() (why string) {
			var list []int
			var err error
			if list, times, err = exportedNumbers(t.Context(), i, engine); err != nil {
				return err.Error()
			}
			if len(list) < len(want) {
				return fmt.Sprintf("%d of %d", len(list), len(want))
			}
			if !slices.Equal(list, want) {
				t.Fatalf("exported %v", list)
			}
			return ""
		})
		if first, last := time.UnixMilli(times[0]), time.UnixMilli(times[len(times)-1]); first.Before(begin.Add(-2*time.Second)) || last.After(end.Add(2*time.Second)) || !slices.IsSorted(times) {
			t.Errorf("times from %v to %v; statements from %v to %v", first, last, begin, end)
		}
		i.Delete(t)
	})
}

// TestLogExportOverFailover: the stream goes on with the new primary's statements; none that a client
// has an answer to is missing, and none is there twice.
func TestLogExportOverFailover(t *testing.T) {
	s := harness.Start(t, harness.Options{})
	s.NeedEngine(t, "postgres", s.Engines(t))
	in := harness.MultiAZRequest("exported-pair", "postgres")
	in.EnableCloudwatchLogsExports = []string{"postgresql"}
	i := s.MustCreate(t, in)
	i.WaitWhole(t)
	n, answered := 0, map[int]bool{}
	say := func(count int) {
		session := i.Open(t)
		for range count {
			n++
			var answer *pgconn.PgError
			if err := session.Exec(t.Context(), fmt.Sprintf(exported["postgres"].statement, n)); errors.As(err, &answer) && answer.Code == "42703" {
				answered[n] = true
			} else if err == nil {
				t.Fatal("the statement did not fail")
			}
		}
		session.Close()
	}
	for range 2 {
		say(200)
		writer, _ := i.Pair(t)
		if err := i.AskFailover(t); err != nil {
			t.Fatal(err)
		}
		harness.Wait(t, 2*time.Minute, "the standby is the primary", func() string {
			if now, _ := i.Pair(t); now.ID == writer.ID {
				return "it is not"
			}
			return ""
		})
		i.WaitWhole(t)
	}
	say(200)
	harness.Wait(t, 2*time.Minute, "every statement is exported", func() string {
		list, _, err := exportedNumbers(t.Context(), i, "postgres")
		if err != nil {
			return err.Error()
		}
		if !slices.IsSorted(list) || len(slices.Compact(slices.Clone(list))) != len(list) {
			t.Fatalf("exported %v", list)
		}
		for one := range answered {
			if !slices.Contains(list, one) {
				return fmt.Sprintf("%d is missing; there are %d", one, len(list))
			}
		}
		return ""
	})
	i.Delete(t)
}
