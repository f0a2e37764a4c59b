//go:build integration

package integration

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe/internal/harness"
)

// "kurabe top" says how load is turned on, and then shows a row lock: its wait event, and which
// statement waits for which.
func TestTop(t *testing.T) {
	s := harness.Start(t, harness.Options{})
	event := map[string]string{"postgres": "Lock:transactionid", "mariadb": "Lock:InnoDB row lock"}
	for _, i := range one(t, s) {
		said, err := kurabeCommand(s, harness.Binary(t), "top", i.Name, "--once")
		if err != nil || !strings.Contains(said, "--enable-performance-insights") {
			t.Fatal(err, said)
		}
		i.Modify(t, func(in *rds.ModifyDBInstanceInput) { in.EnablePerformanceInsights = aws.Bool(true) })
		holder, waiter := i.Open(t), i.Open(t)
		for _, statement := range []string{
			"CREATE TABLE stock (id INT PRIMARY KEY, n INT)", "INSERT INTO stock VALUES (1, 0)", "BEGIN", "UPDATE stock SET n = 7 WHERE id = 1",
		} {
			must(t, holder.Exec(t.Context(), statement))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*sampleTime)
		ended := make(chan error, 1)
		go func() {
			for { // MariaDB gives a wait up after 50 s
				err := waiter.Exec(ctx, "DELETE FROM stock WHERE id = 1")
				if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "Lock wait timeout") {
					ended <- err
					return
				}
			}
		}()
		wait := event[strings.TrimPrefix(i.Name, "one-")]
		harness.Wait(t, sampleTime, "the lock in the picture of "+i.Name, func() string {
			said, err := kurabeCommand(s, harness.Binary(t), "top", i.Name, "--once")
			must(t, err)
			loads, blocked, _ := strings.Cut(said, "BLOCKED")
			if lineWith(loads, "DELETE FROM stock", wait) && lineWith(blocked, "DELETE FROM stock", "UPDATE stock SET n") {
				return ""
			}
			return said
		})
		must(t, holder.Exec(t.Context(), "ROLLBACK"))
		select {
		case err := <-ended:
			must(t, err)
		case <-time.After(sampleTime):
			t.Error("the waiting statement does not end")
		}
		cancel()
	}
}

// lineWith says whether one line of a text has all words.
func lineWith(text string, words ...string) bool {
	for line := range strings.Lines(text) {
		all := true
		for _, word := range words {
			all = all && strings.Contains(line, word)
		}
		if all {
			return true
		}
	}
	return false
}
