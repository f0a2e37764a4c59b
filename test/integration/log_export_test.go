//go:build integration

package integration

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	logtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
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
	of := exported[engine]
	return numbersIn(ctx, i.Service, "/aws/rds/instance/"+i.Name+"/"+of.log, i.Name+of.stream, of.line)
}

func logsClient(s *harness.Service) *cloudwatchlogs.Client {
	return cloudwatchlogs.New(cloudwatchlogs.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(s.URL()), HTTPClient: sdkhttp.Client(), Credentials: s.Client.Options().Credentials, Retryer: aws.NopRetryer{},
	})
}

// numbersIn are those that a pattern finds in the events of a stream, in order, and the times of the events.
func numbersIn(ctx context.Context, s *harness.Service, group, stream string, line *regexp.Regexp) (list []int, times []int64, err error) {
	in := &cloudwatchlogs.GetLogEventsInput{LogGroupName: &group, LogStreamName: &stream, StartFromHead: aws.Bool(true)}
	for c := logsClient(s); ; {
		out, err := c.GetLogEvents(ctx, in)
		if err != nil {
			return nil, nil, err
		}
		for _, e := range out.Events {
			if m := line.FindStringSubmatch(aws.ToString(e.Message)); m != nil {
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

// numbered is a client that says numbered statements, and remembers those with an answer.
type numbered struct {
	*harness.Instance
	login    harness.Login
	mu       sync.Mutex // guards what follows
	said     int
	answered []int
}

func newNumbered(t *testing.T, i *harness.Instance) *numbered {
	return &numbered{Instance: i, login: i.Login(t)}
}

func (c *numbered) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.answered)
}

// say says the next statement, and whether its session still serves.
func (c *numbered) say(ctx context.Context, session harness.Session) bool {
	c.mu.Lock()
	c.said++
	n := c.said
	c.mu.Unlock()
	err := session.Exec(ctx, fmt.Sprintf(exported[c.Engine].statement, n))
	var answer *pgconn.PgError
	if c.Engine == "postgres" && !(errors.As(err, &answer) && answer.Code == "42703") || c.Engine == "mariadb" && err != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answered = append(c.answered, n)
	return true
}

// start has it say statements until it is stopped, over the ends of its sessions.
func (c *numbered) start(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() {
		for ; ctx.Err() == nil; harness.Pause(ctx, 50*time.Millisecond) {
			session, err := harness.Open(ctx, c.login)
			if err != nil {
				continue
			}
			for c.say(ctx, session) && ctx.Err() == nil {
				harness.Pause(ctx, 2*time.Millisecond)
			}
			session.Close()
		}
	})
	var once sync.Once
	stop = func() { once.Do(func() { cancel(); run.Wait() }) }
	t.Cleanup(stop)
	return stop
}

// waitMore waits for so many more answers.
func (c *numbered) waitMore(t *testing.T, more int) {
	t.Helper()
	want := c.count() + more
	harness.Wait(t, 3*time.Minute, "statements are answered", func() string {
		if n := c.count(); n < want {
			return fmt.Sprintf("%d of %d", n, want)
		}
		return ""
	})
}

// lastWords is how many answered statements a server of PostgreSQL that is killed may not have in its log:
// they are in the pipe to the process that writes it.
const lastWords = 10

// waitExported waits until every statement that a log file of a server has, or that was answered, is
// exported, once and in order. kills is how many servers were killed meanwhile.
func (c *numbered) waitExported(t *testing.T, kills int, homes ...string) (times []int64) {
	t.Helper()
	c.mu.Lock()
	want := map[int]bool{}
	for _, n := range c.answered {
		want[n] = true
	}
	c.mu.Unlock()
	lost, inFiles := 0, map[int]bool{}
	for _, home := range homes {
		for _, n := range numbersInFiles(t, filepath.Join(home, "log"), c.Engine) {
			inFiles[n] = true
		}
	}
	for n := range want {
		if kills > 0 && c.Engine == "postgres" && !inFiles[n] {
			delete(want, n)
			lost++
		}
	}
	if lost > kills*lastWords {
		t.Fatalf("%d answered statements are not in the log files", lost)
	}
	harness.Wait(t, 3*time.Minute, "every statement is exported", func() string {
		list, at, err := exportedNumbers(t.Context(), c.Instance, c.Engine)
		if err != nil {
			return err.Error()
		}
		have := map[int]bool{}
		for n, one := range list {
			if n > 0 && one <= list[n-1] {
				t.Fatalf("exported %d after %d, event %d of %d", one, list[n-1], n, len(list))
			}
			have[one] = true
		}
		for n := range want {
			if !have[n] {
				return fmt.Sprintf("%d is missing; %d of %d are there", n, len(list), len(want))
			}
		}
		for n := range inFiles {
			if !have[n] {
				return fmt.Sprintf("%d is in a log file and missing", n)
			}
		}
		times = at
		return ""
	})
	return times
}

// numbersInFiles are those of the statements in the log files of a server.
func numbersInFiles(t *testing.T, dir, engine string) (list []int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.log*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("log files in %s: %v, %v", dir, files, err)
	}
	find := inText[engine]
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range find.FindAllSubmatch(text, -1) {
			n, _ := strconv.Atoi(string(m[1]))
			list = append(list, n)
		}
	}
	return list
}

// inText finds the numbered statements in the text of a log file.
var inText = map[string]*regexp.Regexp{
	"postgres": regexp.MustCompile(`ERROR:  column "number_(\d+)" does not exist`),
	"mariadb":  regexp.MustCompile(`(?m)Query\tSELECT\n 'number_(\d+)'$`),
}

// kills are how often the service dies in TestLogExport and TestLogEventsUnderKills.
const kills = 8

// killAtRandom kills the service at moments by chance, and starts it again at once.
func killAtRandom(t *testing.T, s *harness.Service) {
	t.Helper()
	for range kills {
		harness.After(t, rand.N(1500*time.Millisecond))
		s.Kill(t)
		s.Start(t)
	}
}

// TestLogExport: each statement is in the log group once, in order and with its time, although the
// service is killed while it appends them, at moments by chance.
func TestLogExport(t *testing.T) {
	s := harness.Start(t, harness.Options{})
	s.EachEngine(t, func(t *testing.T, engine string) {
		c := newNumbered(t, s.MustCreate(t, exportedRequest(t, s, "exported-"+engine, engine)))
		begin := time.Now()
		stop := c.start(t)
		killAtRandom(t, s)
		c.waitMore(t, 100)
		stop()
		end := time.Now()
		times := c.waitExported(t, 0, c.Home())
		if first, last := time.UnixMilli(times[0]), time.UnixMilli(times[len(times)-1]); first.Before(begin.Add(-2*time.Second)) || last.After(end.Add(2*time.Second)) || !slices.IsSorted(times) {
			t.Errorf("times from %v to %v; statements from %v to %v", first, last, begin, end)
		}
		c.Delete(t)
	})
}

// TestLogEventsUnderKills: events of a client that were taken are there once and in order, although the
// service is killed while it appends them, at moments by chance. A batch without an answer is there whole, or not.
func TestLogEventsUnderKills(t *testing.T) {
	s := harness.Start(t, harness.Options{})
	group, stream := aws.String("/app/killed"), aws.String("one")
	_, err := logsClient(s).CreateLogGroup(t.Context(), &cloudwatchlogs.CreateLogGroupInput{LogGroupName: group})
	if err == nil {
		_, err = logsClient(s).CreateLogStream(t.Context(), &cloudwatchlogs.CreateLogStreamInput{LogGroupName: group, LogStreamName: stream})
	}
	if err != nil {
		t.Fatal(err)
	}
	const batch = 100
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	taken, batches := map[int]bool{}, 0
	var run sync.WaitGroup
	run.Go(func() {
		for ; ctx.Err() == nil; batches++ {
			in := cloudwatchlogs.PutLogEventsInput{LogGroupName: group, LogStreamName: stream}
			for n := range batch {
				in.LogEvents = append(in.LogEvents, logtypes.InputLogEvent{Timestamp: aws.Int64(time.Now().UnixMilli()), Message: aws.String(fmt.Sprintf("number_%d", batches*batch+n))})
			}
			if _, err := logsClient(s).PutLogEvents(ctx, &in); err == nil {
				taken[batches] = true
			} else {
				harness.Pause(ctx, 20*time.Millisecond)
			}
		}
	})
	killAtRandom(t, s)
	harness.After(t, time.Second)
	cancel()
	run.Wait()
	list, _, err := numbersIn(t.Context(), s, *group, *stream, regexp.MustCompile(`^number_(\d+)$`))
	if err != nil {
		t.Fatal(err)
	}
	have := map[int]int{}
	for n, one := range list {
		if n > 0 && one <= list[n-1] {
			t.Fatalf("%d after %d, event %d of %d", one, list[n-1], n, len(list))
		}
		have[one/batch]++
	}
	for n := range batches {
		if have[n] != batch && (taken[n] || have[n] != 0) {
			t.Errorf("batch %d, taken %v, has %d events", n, taken[n], have[n])
		}
	}
	if len(taken) < kills {
		t.Errorf("%d batches of %d were taken", len(taken), batches)
	}
	t.Logf("%d batches were taken, %d more are there", len(taken), len(have)-len(taken))
}

// TestLogExportOverFailover: the stream goes on with the new primary's statements, after a failover by
// order and after the death of the primary; none that a client has an answer to is missing, and none is there twice.
func TestLogExportOverFailover(t *testing.T) {
	s := harness.Start(t, harness.Options{})
	s.EachEngine(t, func(t *testing.T, engine string) {
		in := exportedRequest(t, s, "exported-pair-"+engine, engine)
		in.MultiAZ = aws.Bool(true)
		c := newNumbered(t, s.MustCreate(t, in))
		c.WaitWhole(t)
		first, second := c.Pair(t)
		stop := c.start(t)
		for _, kill := range []bool{false, true, false} {
			c.waitMore(t, 200)
			failover(t, c.Instance, kill)
			c.waitMore(t, 200)
		}
		stop()
		c.waitExported(t, 1, first.Home(), second.Home())
		c.Delete(t)
	})
}

// TestLogExportOverALostHost: while the host of the primary is away, the stream has the new primary's
// statements, and after its return also those that it had not exported; none is there twice.
func TestLogExportOverALostHost(t *testing.T) {
	onceIsEnough(t)
	b := newApartBed(t)
	b.service.EachEngine(t, func(t *testing.T, engine string) {
		p := b.create(t, engine, func(in *rds.CreateDBInstanceInput) {
			wanted := exportedRequest(t, b.service, aws.ToString(in.DBInstanceIdentifier), engine)
			in.EnableCloudwatchLogsExports, in.DBParameterGroupName = wanted.EnableCloudwatchLogsExports, wanted.DBParameterGroupName
		})
		c := newNumbered(t, p.Instance)
		writer, standby := p.roles(t)
		homes := []string{writer.member(t, p.ID).Home(), standby.member(t, p.ID).Home()}
		stop := c.start(t)
		c.waitMore(t, 200)
		writer.lose(t)
		c.mu.Lock()
		last := c.said
		c.mu.Unlock()
		c.waitMore(t, 200)
		harness.Wait(t, 3*time.Minute, "the new primary's statements are exported", func() string {
			list, _, err := exportedNumbers(t.Context(), c.Instance, engine)
			if err != nil || len(list) == 0 || list[len(list)-1] <= last {
				return fmt.Sprintf("there are %d, %v", len(list), err)
			}
			if list[0] <= last {
				t.Fatalf("statement %d of a host that is away is there", list[0])
			}
			return ""
		})
		writer.Start(t)
		p.givenUp(t, writer)
		c.waitMore(t, 200)
		stop()
		c.waitExported(t, 1, homes...)
		p.pulse.Stop()
		p.Delete(t)
	})
}
