//go:build integration

package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe/internal/harness"
	"kurabe/lab/result"
)

const auditStudy = `
name: audited
question: Is what is said to be logged logged?
engines: [postgres]
primary: {metric: tps, margin: 0.03}
baseline: "off"
variants:
  - {name: "off"}
  - name: pgaudit
    parameters: {shared_preload_libraries: "pg_stat_statements,pgaudit", pgaudit.log: all}
    sql: {postgres: [CREATE EXTENSION IF NOT EXISTS pgaudit]}
  - {name: stream, title: activity stream, needs: activity-stream, activity_stream: sync}
workloads:
  - {name: tpcb, generator: pgbench, kit: tpcb-like, protocol: simple, mode: closed, clients: 2, scale: 1}
plan: {blocks_min: 2, blocks_max: 2, warm: 1s, warm_max: 1s, measure: 1s}
`

// labOnService are the flags of a run on a service of the tests.
func labOnService(s *harness.Service) []string {
	return []string{"--target", "kurabe", "--endpoint", s.URL(), "--data", s.Data, "--class", harness.Class("micro")}
}

// The cost of an audit is that of lines that are really written: they are in the log of
// the instance while the trial runs.
func TestLabAudit(t *testing.T) {
	onceIsEnough(t)
	s := shared(t)
	s.NeedEngine(t, "postgres", s.Engines(t))
	dir := harness.Folder(t, false)
	if err := os.WriteFile(filepath.Join(dir, "audited.yaml"), []byte(auditStudy), 0o600); err != nil {
		t.Fatal(err)
	}
	c := labCommand(t, dir, append([]string{"run", "audited.yaml", "--out", "run.jsonl"}, labOnService(s)...)...)
	said := &harness.Log{}
	c.Stdout, c.Stderr = said, said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	var err error
	audited, over := false, false
	harness.Wait(t, 5*time.Minute, "the run has ended", func() string {
		audited = audited || auditedNow(t, s)
		select {
		case err = <-ended:
			over = true
		default:
		}
		if !over {
			return "it goes on: " + said.String()
		}
		return ""
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	f, err := result.Read(filepath.Join(dir, "run.jsonl"))
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	if why := f.Study.Unsupported["stream"]; !strings.Contains(why, "no activity streams") {
		t.Errorf("activity streams: %q", why)
	}
	if why := f.Study.Unsupported["pgaudit"]; why != "" {
		if !strings.Contains(why, "-pgaudit") {
			t.Errorf("it does not name the package: %s", why)
		}
		t.Skip(why)
	}
	if !audited {
		t.Error("no line of pgaudit was seen in the log of a trial's instance")
	}
	if have := f.Settings["pgaudit"]; have["pgaudit.log"] != "all" || !strings.Contains(have["shared_preload_libraries"], "pgaudit") {
		t.Errorf("settings under pgaudit: %q, %q", have["pgaudit.log"], have["shared_preload_libraries"])
	}
	everyStatementIsTimed(t, f)
	out := said.String()
	for _, want := range []string{"Average latency of each statement", "UPDATE pgbench_tellers", "not supported"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	nothingOfTheLab(t, s)
}

// everyStatementIsTimed demands the seven of pgbench's transaction of each trial.
func everyStatementIsTimed(t *testing.T, f *result.File) {
	t.Helper()
	statements := result.Statements(f)
	for n := range f.Trials {
		trial := &f.Trials[n]
		for _, name := range statements {
			if ms, ok := result.Value(trial, result.StatementMetric(name)); trial.Counts() && (!ok || ms <= 0) {
				t.Errorf("block %d, %s: %s took %v", trial.Block, trial.Variant, name, ms)
			}
		}
	}
	if len(statements) != 7 {
		t.Errorf("statements %q", statements)
	}
}

// auditedNow looks into the logs of the lab's instances. Any may be gone meanwhile.
func auditedNow(t *testing.T, s *harness.Service) bool {
	t.Helper()
	all, err := s.DescribeDBInstances(t.Context(), &rds.DescribeDBInstancesInput{})
	if err != nil {
		return false
	}
	for _, i := range all.DBInstances {
		if !strings.HasPrefix(aws.ToString(i.DBInstanceIdentifier), "kurabe-lab-") {
			continue
		}
		files, err := s.DescribeDBLogFiles(t.Context(), &rds.DescribeDBLogFilesInput{DBInstanceIdentifier: i.DBInstanceIdentifier})
		if err != nil {
			continue
		}
		for _, f := range files.DescribeDBLogFiles {
			portion, err := s.DownloadDBLogFilePortion(t.Context(), &rds.DownloadDBLogFilePortionInput{
				DBInstanceIdentifier: i.DBInstanceIdentifier, LogFileName: f.LogFileName, Marker: aws.String("0"),
			})
			if err != nil {
				continue
			}
			text := aws.ToString(portion.LogFileData)
			if strings.Contains(text, "AUDIT: SESSION") && strings.Contains(text, "UPDATE pgbench_accounts") {
				return true
			}
		}
	}
	return false
}
