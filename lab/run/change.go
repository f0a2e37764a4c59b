package run

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"kurabe/lab/dial"
	"kurabe/lab/study"
)

// toolOutputMax is what is kept of what a tool says.
const toolOutputMax = 4 << 10

// change is what a variant does to a table while the load runs.
type change struct {
	statements []string
	tool       string
	server     dial.Server
	table      string
}

// newChange gives nil for a variant without one.
func newChange(engine string, v study.Variant, w study.Workload, s dial.Server) *change {
	statements := study.Statements(v.Change, engine)
	if len(statements) == 0 {
		return nil
	}
	c := &change{tool: v.Tool, server: s, table: w.Table()}
	for _, text := range statements {
		c.statements = append(c.statements, strings.ReplaceAll(text, "{table}", c.table))
	}
	return c
}

// make makes the change.
func (c *change) make(ctx context.Context) error {
	switch c.tool {
	case "":
		return execAll(ctx, c.server, c.statements)
	case study.ToolPtOSC:
		return c.ptOSC(ctx)
	}
	return fmt.Errorf("no such tool: %s", c.tool)
}

// ptOSC has Percona's tool make it. A statement is what follows ALTER TABLE {table}.
// The password is in a file of ours: arguments are for everybody to read.
func (c *change) ptOSC(ctx context.Context) error {
	path, err := exec.LookPath(study.ToolPtOSC)
	if err != nil {
		return fmt.Errorf("%w; it is in the package percona-toolkit", err)
	}
	dir, err := os.MkdirTemp("", "kurabe-lab-ptosc-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	defaults := filepath.Join(dir, "my.cnf")
	text := fmt.Sprintf("[client]\nuser=%s\npassword=\"%s\"\nhost=%s\nport=%d\n", c.server.User, strings.ReplaceAll(string(c.server.Password), `"`, `\"`), c.server.Host, c.server.Port)
	if c.server.TLS {
		text += "ssl\n"
	}
	if err := os.WriteFile(defaults, []byte(text), 0o600); err != nil {
		return err
	}
	for _, alter := range c.statements {
		dsn := fmt.Sprintf("F=%s,h=%s,P=%s,D=%s,t=%s", defaults, c.server.Host, strconv.Itoa(c.server.Port), c.server.Database, c.table)
		cmd := exec.CommandContext(ctx, path, "--alter", alter, "--execute", "--no-version-check", "--no-check-replication-filters", "--recursion-method=none", dsn)
		cmd.WaitDelay = 10 * time.Second
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it drops its triggers
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s: %w: %s", study.ToolPtOSC, err, out[max(0, len(out)-toolOutputMax):])
		}
	}
	return nil
}
