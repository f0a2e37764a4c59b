package load

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"kurabe/lab/result"
	"kurabe/lab/study"
)

// A server that stalls for 0.8 s among arrivals every 5 ms: with omission, one request of
// 200 would be slow.
func TestNoCoordinatedOmission(t *testing.T) {
	t.Parallel()
	const stall = 800 * time.Millisecond
	var n atomic.Int64
	s := &fakeServer{answer: func(f *fakeSession, _ string) error {
		if n.Add(1) == 20 {
			return f.stall(stall)
		}
		return nil
	}}
	out := loadOf(t, s, openLoad(1, 200), Options{Measure: 1200 * time.Millisecond, Seed: 1})
	l := phase(t, out, result.PhaseMeasure).Load
	balanced(t, l)
	if l.Offered != 240 {
		t.Errorf("%d requests offered; the schedule has 240", l.Offered)
	}
	// 160 of 240 were due in the stall, evenly: half of those wait 0.4 s or more.
	if p := quantile(t, l.Response, 65); l.Skipped == 0 && p < 350 {
		t.Errorf("p65 of the responses is %g ms; those who waited are missing", p)
	}
	if p := quantile(t, l.Response, 100); p < 799 {
		t.Errorf("the slowest response is %g ms", p)
	}
	if countOf(t, l.Service) != l.Transactions || countOf(t, l.Response) != l.Transactions {
		t.Errorf("%d and %d values for %d transactions", countOf(t, l.Service), countOf(t, l.Response), l.Transactions)
	}
	if at := slices.Max(l.BinsMax); at < 799 {
		t.Errorf("the slowest bin says %g ms", at)
	}
}

// What waits too long is skipped: it is counted, and does not come as a burst.
func TestSkipped(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	s := &fakeServer{answer: func(f *fakeSession, _ string) error {
		if n.Add(1) == 1 {
			return f.stall(queueMax + 500*time.Millisecond)
		}
		return nil
	}}
	out := loadOf(t, s, openLoad(1, 1000), Options{Measure: 2 * time.Second, Seed: 1})
	l := phase(t, out, result.PhaseMeasure).Load
	balanced(t, l)
	if l.Offered != 2000 || l.Skipped < 450 {
		t.Errorf("offered %d, skipped %d; due were 2000, and 499 of them for more than %s", l.Offered, l.Skipped, queueMax)
	}
}

func TestUnanswered(t *testing.T) {
	t.Parallel()
	never := make(chan struct{})
	s := &fakeServer{answer: func(f *fakeSession, _ string) error { return f.hold(never) }}
	g := generator(t, openLoad(2, 100))
	g.drain = 10 * time.Millisecond
	out, err := g.load(context.Background(), s.opener(), Options{Measure: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	l := phase(t, out, result.PhaseMeasure).Load
	balanced(t, l)
	if l.Offered != 20 || l.Errors[codeUnanswered] != 2 || l.Skipped != 18 || s.open != 0 {
		t.Errorf("%+v, %d open", l, s.open)
	}
}

func TestErrorsAreCounted(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		err  error
		code string
	}{
		"postgres": {&pgconn.PgError{Code: "40001"}, "40001"},
		"mysql":    {&mysql.MySQLError{Number: 1213}, "1213"},
		"wrapped":  {errors.Join(errors.New("x"), &pgconn.PgError{Code: "57014"}), "57014"},
		"unknown":  {errGone, codeConnection},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var n, rolledBack atomic.Int64
			s := &fakeServer{answer: func(_ *fakeSession, text string) error {
				if text == "ROLLBACK" {
					rolledBack.Add(1)
				} else if text == "UPDATE b" && n.Add(1)%2 == 0 {
					return c.err
				}
				return nil
			}}
			w := openLoad(2, 500)
			w.Script = "BEGIN; UPDATE b; COMMIT;"
			l := phase(t, loadOf(t, s, w, Options{Measure: 200 * time.Millisecond}), result.PhaseMeasure).Load
			balanced(t, l)
			if l.Errors[c.code] != 50 || l.Transactions != 50 || rolledBack.Load() != 50 || s.opened != 2 {
				t.Errorf("%+v, rolled back %d, opened %d", l, rolledBack.Load(), s.opened)
			}
			if got := countOf(t, l.Statements["01 BEGIN"]); got != 100 {
				t.Errorf("%d values for 100 BEGIN", got)
			}
		})
	}
}

func TestLostConnectionIsReopened(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	s := &fakeServer{}
	s.answer = func(f *fakeSession, _ string) error {
		if n.Add(1) != 3 {
			return nil
		}
		f.interrupt()
		s.mu.Lock()
		s.refuse, s.until = errors.New("starting up"), 2
		s.mu.Unlock()
		return errGone
	}
	l := phase(t, loadOf(t, s, openLoad(1, 100), Options{Measure: 500 * time.Millisecond}), result.PhaseMeasure).Load
	balanced(t, l)
	if l.Errors[codeConnection] != 1 || l.Transactions != 49 || l.Generator["reconnects"] != 1 || l.Generator["reconnects_refused"] != 2 {
		t.Errorf("%+v", l)
	}
}

func TestConnectPerTransaction(t *testing.T) {
	t.Parallel()
	s := &fakeServer{}
	w := openLoad(2, 100)
	w.Script, w.Kit = "", "connect"
	l := phase(t, loadOf(t, s, w, Options{Measure: 200 * time.Millisecond}), result.PhaseMeasure).Load
	balanced(t, l)
	if s.opened != 20 || l.Transactions != 20 || countOf(t, l.Statements["00 CONNECT"]) != 20 || countOf(t, l.Statements["01 SELECT 1"]) != 20 {
		t.Errorf("%d opened, %+v", s.opened, l)
	}
}

func TestClosed(t *testing.T) {
	s := &fakeServer{answer: func(f *fakeSession, _ string) error { return f.stall(time.Millisecond) }}
	p := phase(t, loadOf(t, s, closedLoad(4), Options{Measure: 300 * time.Millisecond}), result.PhaseMeasure)
	l := p.Load
	if l.Response != "" || l.Offered != 0 || countOf(t, l.Service) != l.Transactions || l.Transactions == 0 {
		t.Errorf("%+v", l)
	}
	if len(l.Bins) != 3 || len(l.BinsMax) != 3 || math.Abs(l.Seconds-0.3) > 1e-6 || math.Abs(p.Ms-300) > 1e-3 {
		t.Errorf("%d bins in %g s", len(l.Bins), l.Seconds)
	}
}

func TestSeries(t *testing.T) {
	t.Parallel()
	for name, warm := range map[string]time.Duration{"warm": 50 * time.Millisecond, "cold": 0} {
		t.Run(name, func(t *testing.T) {
			s := &fakeServer{answer: func(f *fakeSession, _ string) error { return f.stall(100 * time.Microsecond) }}
			w := study.Workload{Name: "w", Generator: study.GeneratorOwn, Kit: "select-now", Mode: study.ModeSeries, Clients: 1, Requests: 100}
			l := phase(t, loadOf(t, s, w, Options{Warm: warm}), result.PhaseMeasure).Load
			if l.Transactions != 100 || countOf(t, l.Service) != 100 || l.Response != "" {
				t.Errorf("%+v", l)
			}
		})
	}
}

// A request that a change blocks belongs to the change, although its answer comes after.
func TestChange(t *testing.T) {
	t.Parallel()
	locked := make(chan struct{})
	var changing atomic.Bool
	blocked := make(chan struct{})
	var once sync.Once
	s := &fakeServer{answer: func(f *fakeSession, _ string) error {
		if !changing.Load() {
			return f.stall(time.Millisecond)
		}
		once.Do(func() { close(blocked) })
		return f.hold(locked)
	}}
	var entered []string
	o := Options{Warm: 50 * time.Millisecond, Measure: 200 * time.Millisecond, After: 200 * time.Millisecond, ChangeMax: time.Minute,
		Enter: func(phase string) error { entered = append(entered, phase); return nil },
		Change: func(context.Context) error {
			changing.Store(true)
			<-blocked
			time.AfterFunc(50*time.Millisecond, func() { changing.Store(false); close(locked) })
			return nil
		}}
	out := loadOf(t, s, closedLoad(1), o)
	if want := []string{"warm", "idle", "during", "after", ""}; !slices.Equal(entered, want) {
		t.Errorf("entered %q", entered)
	}
	if l := phase(t, out, result.PhaseDuring).Load; l.Transactions == 0 || quantile(t, l.Service, 100) < 49 {
		t.Errorf("during: %+v", l)
	}
	if l := phase(t, out, result.PhaseAfter).Load; quantile(t, l.Service, 0) > 1000 || len(l.Bins) != 2 {
		t.Errorf("after: %+v", l)
	}
	if phase(t, out, result.PhaseWarm).Load != nil {
		t.Error("the warm-up is measured")
	}
	if during := phase(t, out, result.PhaseDuring); out.ChangeMs <= 0 || during.Ms < out.ChangeMs {
		t.Errorf("the change took %g ms, its phase %g", out.ChangeMs, during.Ms)
	}
}

func TestEndsEarly(t *testing.T) {
	boom := errors.New("boom")
	hold := func(f *fakeSession, _ string) error { return f.hold(nil) }
	cases := map[string]struct {
		script string
		refuse bool
		o      Options
		want   string
	}{
		"context":         {o: Options{Measure: time.Hour}, want: "interrupted"},
		"change fails":    {o: Options{Measure: time.Millisecond, ChangeMax: time.Hour, Change: func(context.Context) error { return boom }}, want: "make the change: boom"},
		"probe fails":     {o: Options{Measure: time.Hour, Enter: func(string) error { return boom }}, want: `enter phase "measure": boom`},
		"script divides":  {script: "\\set a 0\n\\set b 1 / :a\nSELECT 1;", o: Options{Measure: time.Hour}, want: "script, line 2: division by zero"},
		"all refused":     {script: "SELECT 2;", o: Options{Measure: 20 * time.Millisecond}, want: "no transaction went well"},
		"server is gone":  {refuse: true, o: Options{Measure: time.Hour}, want: "session"},
		"change too long": {o: Options{Measure: time.Millisecond, ChangeMax: time.Millisecond, Change: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}, want: "deadline"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			s := &fakeServer{answer: hold}
			if name == "context" {
				s.answer = func(f *fakeSession, _ string) error { cancel(); return f.hold(nil) }
			}
			if name == "all refused" {
				s.answer = func(*fakeSession, string) error { return &pgconn.PgError{Code: "42P01"} }
			}
			if c.refuse {
				s.refuse = boom
			}
			w := closedLoad(3)
			if c.script != "" {
				w.Script = c.script
			}
			if _, err := generator(t, w).load(ctx, s.opener(), c.o); wrong(err, c.want) {
				t.Errorf("error = %v, want one with %q", err, c.want)
			}
			if s.open != 0 {
				t.Errorf("%d sessions are open", s.open)
			}
		})
	}
}

func TestWarm(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		settled   func([]float64) bool
		max       time.Duration
		unsettled bool
	}{
		"without a judge": {nil, 0, false},
		"settled":         {func(rates []float64) bool { return len(rates) > 0 }, time.Minute, false},
		"never":           {func([]float64) bool { return false }, 20 * time.Millisecond, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := Options{Warm: 10 * time.Millisecond, WarmMax: c.max, Measure: 10 * time.Millisecond, Settled: c.settled}
			out := loadOf(t, &fakeServer{}, openLoad(1, 100), o)
			if out.Unsettled != c.unsettled || len(out.Phases) != 2 {
				t.Errorf("%+v", out)
			}
		})
	}
}

// Whoever serves an arrival, its keys are the same: variants are compared in pairs.
func TestSameSeedSameWork(t *testing.T) {
	t.Parallel()
	work := func(clients int, seed uint64) []string {
		s := &fakeServer{keep: true}
		w := openLoad(clients, 500)
		w.Script = "\\set a random(1, 1000000)\nSELECT :a;"
		loadOf(t, s, w, Options{Measure: 200 * time.Millisecond, Seed: seed})
		slices.Sort(s.asked)
		return s.asked
	}
	one := work(1, 7)
	if len(one) != 100 || !slices.Equal(one, work(8, 7)) {
		t.Errorf("the same seed gave other work")
	}
	if slices.Equal(one, work(8, 8)) {
		t.Error("another seed gave the same work")
	}
	if n := len(slices.Compact(slices.Clone(one))); n < 99 {
		t.Errorf("%d of 100 keys differ", n)
	}
}

func TestSleepInScript(t *testing.T) {
	t.Parallel()
	w := openLoad(1, 10)
	w.Script = "BEGIN;\n\\sleep 20 ms\nCOMMIT;"
	l := phase(t, loadOf(t, &fakeServer{}, w, Options{Measure: 200 * time.Millisecond}), result.PhaseMeasure).Load
	if l.Transactions != 2 || quantile(t, l.Service, 0) < 19.9 {
		t.Errorf("%+v", l)
	}
}

func TestNewRefuses(t *testing.T) {
	cases := map[string]struct {
		change func(*study.Workload)
		want   string
	}{
		"kit":            {func(w *study.Workload) { w.Script, w.Kit = "", "tpce" }, "is none of kurabe's"},
		"kit and script": {func(w *study.Workload) { w.Kit = "connect" }, "kit and a script"},
		"nothing":        {func(w *study.Workload) { w.Script = "" }, "no kit and no script"},
		"mode":           {func(w *study.Workload) { w.Mode = "opne" }, "none of open"},
		"no rate":        {func(w *study.Workload) { w.Rate = 0 }, "rate"},
		"NaN":            {func(w *study.Workload) { w.Rate = math.NaN() }, "rate"},
		"clients":        {func(w *study.Workload) { w.Clients = clientsMax + 1 }, "clients"},
		"series of many": {func(w *study.Workload) { w.Mode, w.Requests, w.Clients = study.ModeSeries, 1, 2 }, "clients"},
		"protocol":       {func(w *study.Workload) { w.Protocol = "binary" }, "protocol"},
		"generator":      {func(w *study.Workload) { w.Generator = "jmeter" }, "generator"},
		"writers":        {func(w *study.Workload) { w.Script, w.Kit = "", "writers" }, "rows is missing"},
		"pgbench series": {func(w *study.Workload) {
			w.Generator, w.Mode, w.Clients, w.Requests = study.GeneratorPgbench, study.ModeSeries, 1, 1
		}, "no series"},
		"pgbench constant": {func(w *study.Workload) { w.Generator = study.GeneratorPgbench }, "poisson"},
		"pgbench kit": {func(w *study.Workload) {
			w.Generator, w.Arrival, w.Script, w.Kit = study.GeneratorPgbench, "", "", "writers"
		}, "none of pgbench's"},
		"sysbench script":   {func(w *study.Workload) { w.Generator, w.Arrival = study.GeneratorSysbench, "" }, "Lua"},
		"sysbench protocol": {func(w *study.Workload) { *w = sysbenchLoad(); w.Protocol = protocolExtended }, "protocol"},
		"sysbench connect":  {func(w *study.Workload) { *w = sysbenchLoad(); w.Connect = true }, "connect"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := openLoad(1, 10)
			c.change(&w)
			if _, err := New(w); wrong(err, c.want) {
				t.Errorf("error = %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestCheckEngine(t *testing.T) {
	w := openLoad(1, 10)
	w.Engines = []string{study.MariaDB}
	g := generator(t, w)
	if err := g.Check(study.MariaDB); err != nil {
		t.Error(err)
	}
	if err := g.Check(study.Postgres); wrong(err, "is for mariadb") {
		t.Error(err)
	}
	if err := (&pgbench{w}).Check(study.MariaDB); wrong(err, "cannot load mariadb") {
		t.Error(err)
	}
}

func TestKits(t *testing.T) {
	statements := map[string]int{"tpcb-like": 7, "simple-update": 5, "select-only": 1, "point-select": 1, "sysbench-like": 20,
		"tpcc-like": 33, "long-transaction": 13, "connect": 2, "select-now": 1, "writers": 6}
	for _, name := range Kits(study.GeneratorOwn) {
		t.Run(name, func(t *testing.T) {
			s := &fakeServer{keep: true}
			w := study.Workload{Name: "w", Generator: study.GeneratorOwn, Kit: name, Mode: study.ModeClosed, Clients: 1, Rows: 1000, Scale: 3}
			g := generator(t, w)
			if n := len(g.labels()); n != statements[name] {
				t.Errorf("%d statements: %q", n, g.labels())
			}
			loadOf(t, s, w, Options{Measure: 20 * time.Millisecond})
			for _, text := range s.asked {
				if strings.ContainsAny(text, "{}") || strings.Contains(text, " :") {
					t.Fatalf("something was not replaced: %s", text)
				}
			}
		})
	}
}
