//go:build integration

package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"kurabe/internal/harness"
)

// followed is the output of kurabe logs --follow.
type followed struct {
	*harness.Log
	engine string
}

// followLog starts kurabe logs on an instance's log of statements; it ends with the test.
func followLog(t *testing.T, i *harness.Instance) followed {
	t.Helper()
	args := []string{"logs", i.Name, "--follow", "-n", "10000"}
	if i.Engine == "mariadb" {
		args = []string{"logs", i.Name, "general", "--follow", "-n", "10000"}
	}
	f, c := followed{&harness.Log{}, i.Engine}, clientCommand(i.Service, harness.Binary(t), args...)
	c.Stdout, c.Stderr = f, f
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return f
}

// wait waits until the newest answered statement is shown, and demands that every one was, once and in order.
func (f followed) wait(t *testing.T, c *numbered) {
	t.Helper()
	harness.Wait(t, 3*time.Minute, "every statement is shown", func() string {
		shown := 0
		for _, m := range inText[f.engine].FindAllStringSubmatch(f.String(), -1) {
			n, _ := strconv.Atoi(m[1])
			if n != shown+1 {
				t.Fatalf("number %d is shown after %d", n, shown)
			}
			shown = n
		}
		if shown < c.said {
			return fmt.Sprintf("%d of %d; the end is %q", shown, c.said, tail(f.String(), 500))
		}
		return ""
	})
}

func tail(text string, most int) string { return text[max(0, len(text)-most):] }

// sayMany says statements in a session of its own, each of which is answered.
func (c *numbered) sayMany(t *testing.T, count int) {
	t.Helper()
	session := c.Open(t)
	defer session.Close()
	for range count {
		if !c.say(t.Context(), session) {
			t.Fatalf("statement %d has no answer", c.said)
		}
	}
}

// TestLogsAreFollowed: kurabe logs --follow shows each statement once and in order, over rotations by the
// server (PostgreSQL) or the service (MariaDB), a restart of the service and a failover; so does the export.
func TestLogsAreFollowed(t *testing.T) {
	onceIsEnough(t)
	s := harness.Start(t, harness.Options{})
	address := strings.TrimPrefix(s.URL(), "http://")
	s.EachEngine(t, func(t *testing.T, engine string) {
		in := exportedRequest(t, s, "followed-"+engine, engine)
		in.MultiAZ = aws.Bool(true)
		c := newNumbered(t, s.MustCreate(t, in))
		c.WaitWhole(t)
		writer, standby := c.Pair(t)
		f := followLog(t, c.Instance)
		c.sayMany(t, 50)
		f.wait(t, c)

		before := logFileCount(t, writer)
		rotate(t, c, writer)
		c.sayMany(t, 50)
		f.wait(t, c)
		if now := logFileCount(t, writer); now <= before {
			t.Errorf("there are %d log files, and were %d before the rotation", now, before)
		}

		s.Kill(t)
		s.Start(t, "--listen", address)
		c.sayMany(t, 50)
		f.wait(t, c)

		c.WaitWhole(t)
		failover(t, c.Instance, false)
		c.sayMany(t, 50)
		f.wait(t, c)
		if !strings.Contains(f.String(), "the log of another server of "+c.Name+" follows") {
			t.Error("the change of the server is not said")
		}
		c.waitExported(t, 0, writer.Home(), standby.Home())
		c.Delete(t)
	})
}

// failover has the standby of an instance take over, by order or because its primary is killed, and the pair be whole
// again.
func failover(t *testing.T, i *harness.Instance, kill bool) {
	t.Helper()
	writer, _ := i.Pair(t)
	if kill {
		must(t, harness.KillServers(writer))
	} else {
		must(t, i.AskFailover(t))
	}
	login := i.Login(t)
	harness.Wait(t, 3*time.Minute, "the standby is the primary", func() string {
		if now, err := i.Service.WriterOf(t.Context(), i.ID, login); err != nil || now.ID == writer.ID {
			return fmt.Sprint("it is not; ", err)
		}
		return ""
	})
	i.WaitWhole(t)
}

func logFileCount(t *testing.T, m harness.Member) int {
	t.Helper()
	files, err := os.ReadDir(filepath.Join(m.Home(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

// rotate has PostgreSQL go on in a file of another name, as it does each hour, and the service rotate
// MariaDB's general log, because that has grown large.
func rotate(t *testing.T, c *numbered, m harness.Member) {
	t.Helper()
	if c.Engine == "postgres" {
		must(t, m.Do(t.Context(), "ALTER SYSTEM SET log_filename = 'postgresql.log.%Y-%m-%d-%H.next'", "SELECT pg_reload_conf()"))
		return
	}
	const rotatedBytes, each = 32 << 20, 1 << 20
	session := c.Open(t)
	defer session.Close()
	large := "SELECT '" + strings.Repeat("x", each) + "'"
	for range rotatedBytes/each + 1 {
		must(t, session.Exec(t.Context(), large))
	}
	harness.Wait(t, 3*time.Minute, "the general log is rotated", func() string {
		files, err := filepath.Glob(filepath.Join(m.Home(), "log", "mysql-general.log.*"))
		if err != nil || len(files) == 0 {
			// The next look of the service is soon after a write.
			return fmt.Sprint(session.Exec(t.Context(), "SELECT 'a later write'"), err)
		}
		return ""
	})
}
