package resulttest

import (
	"math"
	"time"

	"kurabe/lab/result"
	"kurabe/lab/study"
)

// logKind is what is built in of a variant: ratios to the baseline.
type logKind struct {
	name, title string
	parameters  map[string]string
	tps         float64
	tail        float64 // of the share of slow transactions
	bytes       float64 // written, per transaction
}

var logKinds = []logKind{
	{"off", "general_log=OFF", map[string]string{"general_log": "0"}, 1, 1, 1},
	{study.Twin("off"), "", map[string]string{"general_log": "0"}, 1, 1, 1},
	{"file", "to a file", map[string]string{"general_log": "1", "log_output": "FILE"}, 0.975, 1.2, 1.6},
	{"table-csv", "to a table, CSV", map[string]string{"general_log": "1", "log_output": "TABLE"}, 0.63, 2, 1.9},
	{"table-myisam", "to a table, MyISAM", map[string]string{"general_log": "1", "log_output": "TABLE"}, 0.70, 1.8, 2},
	{"table-aria", "to a table, Aria", map[string]string{"general_log": "1", "log_output": "TABLE"}, 0.68, 1.9, 2.1},
	{"slow-log", "slow log of everything", map[string]string{"slow_query_log": "1", "long_query_time": "0"}, 0.955, 1.3, 1.7},
	{"activity-stream", "activity stream", nil, 1, 1, 1},
}

const (
	logMeasure = 20 * time.Second
	logTps     = 1200.0
	logClients = 8
)

var logStatements = []string{"BEGIN", "SELECT c FROM sbtest1", "UPDATE sbtest1", "COMMIT"}

// generalLog has two workloads of closed load: one of a generator that prints only a
// summary, one of the lab's own with histograms and bins.
func (m *maker) generalLog(seed uint64) {
	s := study.Study{
		Name: "general-log", Question: "What does it cost to log every statement?",
		Engines: []string{study.MariaDB, study.MySQL}, Baseline: "off",
		Primary: study.Primary{Metric: "tps", Margin: 0.03},
		Metrics: []string{"resp_avg", "resp_p95", "resp_p99", "resp_p999", "cpu_per_tx", "write_bytes_per_tx"},
		Plan: study.Plan{
			BlocksMin: 6, BlocksMax: 24, Warm: study.Duration(5 * time.Second), WarmMax: study.Duration(30 * time.Second),
			Measure: study.Duration(logMeasure),
		},
		Workloads: []study.Workload{
			{Name: "sysbench", Title: "sysbench oltp_read_write, 8 threads", Generator: study.GeneratorSysbench, Kit: "oltp_read_write", Mode: study.ModeClosed, Clients: logClients, Scale: 10},
			{Name: "own", Title: "sysbench-like, 8 clients", Generator: study.GeneratorOwn, Kit: "sysbench-like", Mode: study.ModeClosed, Clients: logClients, Scale: 10},
		},
		Published: []study.Published{
			{Source: "MySQL general_log, 2016, a virtual machine", Variant: "file", Workload: "sysbench", Label: "ON, FILE", Values: map[string]float64{"ratio": 0.95}},
			{Source: "MySQL general_log, 2016, a virtual machine", Variant: "table-csv", Workload: "sysbench", Label: "ON, TABLE, CSV", Values: map[string]float64{"ratio": 0.59}},
			{Source: "MySQL general_log, 2016, a virtual machine", Variant: "table-myisam", Workload: "sysbench", Label: "ON, TABLE, MyISAM", Values: map[string]float64{"ratio": 0.67}},
		},
	}
	for _, k := range logKinds {
		v := study.Variant{Name: k.name, Title: k.title, Parameters: k.parameters}
		switch k.name {
		case study.Twin(s.Baseline):
			v.TwinOf = s.Baseline
		case "activity-stream":
			v.Needs = "activity-stream"
		}
		s.Variants = append(s.Variants, v)
	}
	if m.o.Primaries {
		s.Workloads[1].Primary = &study.Primary{Metric: "resp_p50", Margin: 0.1}
	}
	m.begin(seed, s, study.MariaDB)
	m.file.Study.Unsupported = map[string]string{"activity-stream": "this target has no activity streams"}
	m.settings(map[string]string{
		"innodb_buffer_pool_size": "1073741824", "innodb_flush_log_at_trx_commit": "1", "log_output": "TABLE",
		"general_log": "0", "slow_query_log": "0", "long_query_time": "10", "version": "10.11.11-MariaDB",
	}, "datadir")
	m.blocks(m.logTrial)
}

func (m *maker) logTrial(t *result.Trial) (again bool) {
	t.Status = result.StatusOK
	t.Canary = m.canary(false)
	warm := result.Phase{Name: result.PhaseWarm, StartMs: 1210, Ms: 6000}
	t.Phases = []result.Phase{{Name: result.PhaseReset, Ms: 1210}, warm}
	if !m.o.Clean && t.Workload == "own" && m.attempts(t) == 1 {
		switch {
		case t.Block == 3 && t.Variant == "table-csv":
			t.Status, t.Reason = result.StatusFailed, "the server ended the session: Error 1021: Disk full (/tmp)"
			return true
		case t.Block == 5 && t.Variant == "file":
			t.Status, t.Reason = result.StatusRepeated, "steal was 6.1 % of the processor, more than 3 %"
			t.Canary, again = m.canary(true), true
		case t.Block == 7 && t.Variant == "table-aria":
			t.Status, t.Reason = result.StatusUnsettled, "throughput still shifted after 30 s"
			t.Phases[1].Ms = 30_000
		}
	}
	start := t.Phases[1].StartMs + t.Phases[1].Ms
	t.Phases = append(t.Phases, m.logMeasure(t, start, again))
	if m.rng.Float64() < 0.2 {
		m.file.Events = append(m.file.Events, result.Event{
			Block: t.Block, Variant: t.Variant, Workload: t.Workload,
			AtMs: math.Round(start + 1000 + m.rng.Float64()*15_000), Kind: "checkpoint", Text: "log is at 80 % of its size",
		})
	}
	return again
}

func (m *maker) logMeasure(t *result.Trial, start float64, disturbed bool) result.Phase {
	kind := logKinds[0]
	for _, k := range logKinds {
		if k.name == t.Variant {
			kind = k
		}
	}
	tps := logTps * m.effect(kind.name, kind.tps) * math.Exp(m.drift) * m.noise()
	if disturbed {
		tps *= 0.8
	}
	seconds := logMeasure.Seconds()
	n := int64(tps * seconds)
	whole := shape{sigma: 0.3, slow: 0.02 * kind.tail, slowness: 5, median: 1}
	whole.median = logClients / tps * 1000 / whole.mean() // Little's law
	l := &result.Load{Transactions: n, Seconds: seconds, Errors: map[string]int64{"1213": m.rng.Int64N(3)}}
	if t.Workload == "sysbench" {
		l.Prog = "sysbench 1.0.20"
		l.Summary = map[string]float64{
			"avg": whole.mean(), "p95": whole.median * 1.64 * m.noise(), "max": whole.median * whole.slowness * 3 * m.noise(), "min": whole.median * 0.4 * m.noise(),
		}
	} else {
		l.Prog = "kurabe 0.9.0"
		l.Service = m.histogram(whole, n)
		l.Statements = m.statements(logStatements, whole, n)
		l.Bins, l.BinsMax = m.bins(seconds, tps, whole)
		l.Generator = map[string]float64{"cpu_s": 0.00012 * float64(n), "lag_p99_ms": 0.06 * m.noise()}
	}
	c := costs{cpuMs: 0.9 / m.effect(kind.name, kind.tps), switches: 14, walBytes: 3100, fsyncs: 0.31, readBytes: 0, writeBytes: 9000 * kind.bytes}
	return result.Phase{
		Name: result.PhaseMeasure, StartMs: start, Ms: seconds * 1000, Load: l, Probes: m.probes(c, n),
		Waits: map[string]int{"wait/io/file/innodb/innodb_log_file": 40 + m.rng.IntN(20), "wait/synch/mutex/sql/LOCK_log": max(0, int(120*(1-m.effect(kind.name, kind.tps))*m.noise())), "cpu": 130 + m.rng.IntN(30)},
	}
}
