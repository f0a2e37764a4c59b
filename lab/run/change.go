package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"kurabe/lab/dial"
	"kurabe/lab/result"
	"kurabe/lab/study"
)

// change is what a variant does to a table while the load runs.
type change struct {
	statements []string
	changed    []string // questions that are answered by yes when it is made
	tool       string
	server     dial.Server
	clients    int    // of the load
	table      string // of the load; "" when nothing names it
	shape      string // of that table before
	session    *dial.Session
	watch      *lockWatch

	mu     sync.Mutex // guards events: the watch has a goroutine of its own
	events []moment
}

// moment is an event of a change, before the trial gives it a place.
type moment struct {
	at         time.Time
	kind, text string
}

// newChange gives nil for a variant without one.
func newChange(engine string, v study.Variant, w study.Workload, s dial.Server) *change {
	statements := study.Statements(v.Change, engine)
	if len(statements) == 0 {
		return nil
	}
	c := &change{tool: v.Tool, server: s, clients: w.Clients}
	if w.Kit == study.KitWriters {
		c.table = w.Table()
	}
	named := func(list []string) []string {
		var out []string
		for _, text := range list {
			out = append(out, strings.ReplaceAll(text, "{table}", w.Table()))
		}
		return out
	}
	c.statements, c.changed = named(statements), named(study.Statements(v.Changed, engine))
	return c
}

// open makes ready what must not be part of the change's time: a connection takes longer
// than many a change.
func (c *change) open(ctx context.Context) error {
	var err error
	if c.session, err = dial.Open(ctx, c.server); err != nil {
		return err
	}
	if c.watch, err = openWatch(ctx, c.session, c.server, c.tool); err != nil {
		return fmt.Errorf("watch the change: %w", err)
	}
	if c.shape, err = shape(ctx, c.session, c.server.Engine, c.table); err != nil {
		return fmt.Errorf("look at the table: %w", err)
	}
	return nil
}

func (c *change) close() {
	if c.watch != nil {
		c.watch.session.Close()
	}
	if c.session != nil {
		c.session.Close()
	}
}

// make makes the change.
func (c *change) make(ctx context.Context) (failure error) {
	c.tell(result.EventChangeBegin, strings.Join(c.statements, "; "))
	watching, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { c.watch.run(watching, c.tell) })
	defer func() {
		cancel()
		watch.Wait()
	}()
	defer func() { c.tell(result.EventChangeEnd, "") }()
	switch c.tool {
	case "":
		return c.execute(ctx)
	case study.ToolPtOSC:
		return c.ptOSC(ctx)
	}
	return fmt.Errorf("no such tool: %s", c.tool)
}

func (c *change) execute(ctx context.Context) error {
	for n, text := range c.statements {
		if n > 0 {
			c.tell(result.EventStep, text)
		}
		if err := c.session.Exec(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// textMax bounds what an event repeats of a statement or a tool's line.
const textMax = 200

// tell notes what happens.
func (c *change) tell(kind, text string) {
	if len(text) > textMax {
		text = strings.ToValidUTF8(text[:textMax], "") + "…"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.events) < eventsMax {
		c.events = append(c.events, moment{time.Now(), kind, text})
	}
}

// eventsMax bounds the events of one change: a tool may say much.
const eventsMax = 1000

// verify asks the server whether the change is there. It is called when the load has
// ended: a change that an engine took for done and did not make must not be measured. A
// question that cannot be answered, as for a column that is not there, is a no.
func (c *change) verify(ctx context.Context) error {
	for _, question := range c.changed {
		rows, err := c.session.Rows(ctx, question)
		if err != nil {
			return fmt.Errorf("the change was not made: %w", err)
		}
		if len(rows) != 1 || len(rows[0]) != 1 || !yes(rows[0][0]) {
			return fmt.Errorf("the change was not made: the answer to %q is %v and not 1", question, rows)
		}
	}
	return nil
}

// yes says whether an answer is; PostgreSQL has a type for that.
func yes(text string) bool { return text == "1" || text == "t" || text == "true" }

// shape is a table's columns and indexes as the server describes them. PostgreSQL keeps
// the places of columns that were dropped, which are part of it.
func shape(ctx context.Context, s *dial.Session, engine, table string) (string, error) {
	if table == "" {
		return "", nil
	}
	questions := []string{"SHOW CREATE TABLE " + dial.Ident(engine, table)}
	if engine == study.Postgres {
		literal := dial.Literal(engine, table)
		questions = []string{
			"SELECT attname, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute WHERE attrelid = " + literal + "::regclass AND attnum > 0 ORDER BY attnum",
			"SELECT indexdef FROM pg_indexes WHERE tablename = " + literal + " AND schemaname = current_schema() ORDER BY indexname",
		}
	}
	var b strings.Builder
	for _, question := range questions {
		rows, err := s.Rows(ctx, question)
		if err != nil {
			return "", err
		}
		for _, row := range rows {
			b.WriteString(strings.Join(row, " ") + "\n")
		}
	}
	return b.String(), nil
}

// errNotReset says that a trial did not begin where the others did.
var errNotReset = errors.New("the table is not as the first trial found it: the change of a trial before was not undone")

// same compares a table's shape before a change with that of the first trial.
func (r *runner) same(c *change) error {
	if r.shapes == nil {
		r.shapes = map[string]string{}
	}
	first, seen := r.shapes[c.table]
	if !seen {
		r.shapes[c.table] = c.shape
		return nil
	}
	if first != c.shape {
		return fmt.Errorf("%w:\n%s", errNotReset, c.shape)
	}
	return nil
}
