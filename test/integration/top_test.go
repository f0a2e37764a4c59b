//go:build integration

package integration

import (
	"context"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe/internal/harness"
)

// The live view shows who blocks whom, also where the session that blocks is within no statement.
func TestTopShowsWhoBlocksWhom(t *testing.T) {
	s := harness.Start(t, harness.Options{})
	s.EachEngine(t, func(t *testing.T, engine string) {
		in := harness.Request("locked-"+engine, engine)
		in.EnablePerformanceInsights = aws.Bool(true)
		i := s.MustCreate(t, in)
		i.Query(t, "CREATE TABLE held (id INT PRIMARY KEY, n INT)")
		i.Query(t, "INSERT INTO held VALUES (1, 0)")
		begin := map[string]string{"postgres": "BEGIN", "mariadb": "START TRANSACTION"}[engine]
		holder, waiter := i.Open(t), i.Open(t)
		ask := func(session harness.Session, statement string) string {
			t.Helper()
			rows, err := session.Rows(t.Context(), statement)
			if err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
			if len(rows) == 0 {
				return ""
			}
			return rows[0]
		}
		held, waits := ask(holder, harness.BackendSQL(engine)), ask(waiter, harness.BackendSQL(engine))
		ask(holder, begin)
		ask(holder, "UPDATE held SET n = 1 WHERE id = 1")
		if engine == "mariadb" {
			ask(waiter, "SET SESSION innodb_lock_wait_timeout = 3600")
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { // ends below
			defer close(done)
			_, _ = waiter.Rows(ctx, "UPDATE held SET n = n + 41 WHERE id = 1")
		}()
		lock := map[string]string{"postgres": "Lock:transactionid", "mariadb": "Lock:InnoDB row lock"}[engine]
		lines := []*regexp.Regexp{
			regexp.MustCompile(fmt.Sprintf(`(?m)^ *%s +%s +idle +1\b`, held, i.User)),
			regexp.MustCompile(fmt.Sprintf(`(?m)^ *%s +\d+ %s +%s +%s UPDATE held SET n = n \+ 41 WHERE id = 1$`, waits, i.User, lock, held)),
			regexp.MustCompile(fmt.Sprintf(`(?m)^ *\d\.\d\d .*UPDATE held SET n = n \+ \? WHERE id = \? +%s \d`, lock)),
		}
		harness.Wait(t, 2*time.Minute, "the live view shows the lock", func() string {
			picture, err := kurabeCommand(s, harness.Binary(t), "top", i.Name, "--once")
			if err != nil {
				return err.Error()
			}
			for _, line := range lines {
				if !line.MatchString(picture) {
					return fmt.Sprintf("no line %s in\n%s", line, picture)
				}
			}
			t.Log(picture)
			return ""
		})
		ask(holder, "COMMIT")
		<-done
		cancel()
		if n := i.Query(t, "SELECT n FROM held"); n != "42" {
			t.Errorf("n is %s", n)
		}
		if _, err := s.DeleteDBInstance(t.Context(), &rds.DeleteDBInstanceInput{DBInstanceIdentifier: &i.Name, SkipFinalSnapshot: aws.Bool(true)}); err != nil {
			t.Error(err)
		}
	})
}
