package resulttest

import (
	"math"
	"time"

	"kurabe/lab/result"
	"kurabe/lab/study"
)

// changeKind is what is built in of a change.
type changeKind struct {
	name, title string
	sql         string
	ms          float64 // how long it takes
	slower      float64 // latency while it runs, relative to idle
	blocked     float64 // share of it during which nothing is answered
}

var changeKinds = []changeKind{
	{"sham", "no change", "SELECT pg_sleep(2)", 2000, 1, 0},
	{study.Twin("sham"), "", "SELECT pg_sleep(2)", 2000, 1, 0},
	{"add-index", "CREATE INDEX", "CREATE INDEX ON {table} (k)", 1800, 1.6, 0.85},
	{"add-index-recommended", "CREATE INDEX CONCURRENTLY", "CREATE INDEX CONCURRENTLY ON {table} (k)", 3200, 1.32, 0},
	{"add-column", "ADD COLUMN", "ALTER TABLE {table} ADD COLUMN extra integer", 14, 1.02, 0},
	{"change-type", "ALTER COLUMN TYPE", "ALTER TABLE {table} ALTER COLUMN k TYPE bigint", 6500, 1.2, 0.97},
}

const (
	alterRate  = 900.0
	alterIdle  = 15.0 // s
	alterAfter = 5.0
)

// alter has two workloads of open load, of four and of eight writers.
func (m *maker) alter(seed uint64) {
	s := study.Study{
		Name: "alter", Question: "Can writers go on while a table is altered?",
		Engines: []string{study.Postgres}, Baseline: "sham",
		Primary: study.Primary{Metric: "resp_p95@during/idle", Margin: 0.10},
		Metrics: []string{"gap_max@during", "resp_max@during", "tps@during/idle", "resp_p95@after/idle", "change_s"},
		Plan: study.Plan{
			BlocksMin: 6, BlocksMax: 12, Warm: study.Duration(5 * time.Second), WarmMax: study.Duration(30 * time.Second),
			Measure: study.Duration(alterIdle * float64(time.Second)), After: study.Duration(alterAfter * float64(time.Second)),
		},
	}
	for _, w := range []struct {
		name    string
		clients int
	}{{"writers-4", 4}, {"writers-8", 8}} {
		s.Workloads = append(s.Workloads, study.Workload{
			Name: w.name, Generator: study.GeneratorOwn, Kit: "writers", Mode: study.ModeOpen, Arrival: study.ArrivalPoisson,
			Clients: w.clients, Rate: alterRate * float64(w.clients) / 8, Rows: 1_000_000,
		})
	}
	for _, k := range changeKinds {
		v := study.Variant{Name: k.name, Title: k.title, Change: map[string][]string{study.Postgres: {k.sql}}}
		if k.name == study.Twin(s.Baseline) {
			v.TwinOf = s.Baseline
		}
		s.Variants = append(s.Variants, v)
	}
	m.begin(seed, s, study.Postgres)
	m.settings(map[string]string{"shared_buffers": "262144", "max_wal_size": "1024", "fsync": "on", "maintenance_work_mem": "65536"}, "data_directory")
	m.blocks(m.alterTrial)
}

func (m *maker) alterTrial(t *result.Trial) (again bool) {
	t.Status = result.StatusOK
	t.Canary = m.canary(false)
	t.Phases = []result.Phase{{Name: result.PhaseReset, Ms: 1400}, {Name: result.PhaseWarm, StartMs: 1400, Ms: 5000}}
	first := !m.o.Clean && t.Workload == "writers-8" && m.attempts(t) == 1
	if first && t.Block == 2 && t.Variant == "add-index" {
		t.Status, t.Reason = result.StatusFailed, "CREATE INDEX: ERROR: could not extend file (SQLSTATE 53100)"
		return true
	}
	if first && t.Block == 4 && t.Variant == "sham" {
		t.Status, t.Reason, again = result.StatusRepeated, "the canary fsync took 41 % longer after the trial than before it", true
		t.Canary = m.canary(true)
	}
	if first && t.Block == 6 && t.Variant == "change-type" {
		t.Status, t.Reason = result.StatusUnsettled, "latency still shifted after 30 s"
	}
	kind, rate := changeKinds[0], alterRate
	for _, k := range changeKinds {
		if k.name == t.Variant {
			kind = k
		}
	}
	if t.Workload == "writers-4" {
		rate /= 2
	}
	t.ChangeMs = math.Round(kind.ms*m.noise()*1000) / 1000
	idle := shape{median: 1.1 * math.Exp(m.drift), sigma: 0.35, slow: 0.004, slowness: 6}
	at := 6400.0
	for _, p := range []result.Phase{
		m.alterPhase(result.PhaseIdle, alterIdle, rate, idle, 1, 0),
		m.alterPhase(result.PhaseDuring, t.ChangeMs/1000, rate, idle, kind.slower/m.effect(kind.name, 1), kind.blocked),
		m.alterPhase(result.PhaseAfter, alterAfter, rate, idle, 1, 0),
	} {
		p.StartMs = at
		at += p.Ms
		t.Phases = append(t.Phases, p)
	}
	begin := t.Phases[3].StartMs
	for _, e := range []result.Event{
		{AtMs: begin, Kind: "change_begin", Text: kind.sql}, {AtMs: begin + t.ChangeMs, Kind: "change_end"},
		{AtMs: begin - 4000*m.rng.Float64(), Kind: "checkpoint", Text: "time"},
	} {
		e.Block, e.Variant, e.Workload = t.Block, t.Variant, t.Workload
		m.file.Events = append(m.file.Events, e)
	}
	return again
}

func (m *maker) alterPhase(name string, seconds, rate float64, idle shape, slower, blocked float64) result.Phase {
	response := idle
	response.median *= slower * m.noise()
	service := response
	service.median *= 0.93
	offered := max(int64(rate*seconds), 1)
	n := offered
	if blocked > 0 {
		// A second of arrivals waits for the end, what comes later is not sent.
		waiting := min(rate, blocked*float64(offered))
		n = max(int64((1-blocked)*float64(offered)+waiting), 1)
		response.slow, response.slowness = waiting/float64(n), blocked*seconds*1000/response.median/2
	}
	bins, slowest := m.bins(seconds, rate, idle)
	for i := range int(blocked * float64(len(bins))) {
		bins[i], slowest[i] = 0, 0
	}
	l := &result.Load{
		Transactions: n, Offered: offered, Skipped: offered - n, Seconds: seconds, Response: m.histogram(response, n), Service: m.histogram(service, n),
		Bins: bins, BinsMax: slowest, Prog: "kurabe 0.9.0", Generator: map[string]float64{"cpu_s": 0.0001 * float64(n), "lag_p99_ms": 0.07 * m.noise()},
	}
	c := costs{cpuMs: 0.5 * slower, switches: 9, walBytes: 1900, fsyncs: 0.8, writeBytes: 4100}
	return result.Phase{
		Name: name, Ms: seconds * 1000, Load: l, Probes: m.probes(c, n),
		Waits: map[string]int{"Lock:relation": int(blocked * seconds * 20), "IO:WALSync": 4 + m.rng.IntN(6), "Client:ClientRead": 20 + m.rng.IntN(20)},
	}
}
