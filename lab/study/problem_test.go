package study

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// problemCase replaces a part of a study, or adds to its end when from is empty, and has
// the whole error that this gives.
type problemCase struct{ name, from, to, want string }

var formProblems = []problemCase{
	{"unknown key", "question:", "qestion: x\nquestion:", `orders.yaml:2:1: qestion: no such key; there are name, question, engines, primary, metrics, baseline, variants, workloads, plan, published, quick, as_published`},
	{"unknown key of a workload", "    rate: 100", "    rate: 100\n    rats: 1", `orders.yaml:16:5: workloads[0].rats: no such key; there are name, title, generator, engines, primary, kit, script, setup, protocol, connect, mode, clients, rate, arrival, requests, scale, rows`},
	{"the twin is not written", "  - name: b", "  - name: b\n    twin_of: a", `orders.yaml:9:5: variants[1].twin_of: no such key; there are name, title, parameters, sql, class, storage_type, iops, storage_gib, endpoint, activity_stream, change, tool, changed, engines, needs`},
	{"missing key", "question: What does it cost?\n", "", `orders.yaml:1:1: question: is missing`},
	{"missing key inside", "    mode: open\n", "", `orders.yaml:11:5: workloads[0].mode: is missing`},
	{"duplicate key", "baseline: a", "baseline: a\nbaseline: b", `orders.yaml:6:1: baseline: is here twice, first in line 5; remove one`},
	{"text for a number", "clients: 4", "clients: many", `orders.yaml:16:5: workloads[0].clients: "many" is a text; a whole number belongs here`},
	{"fraction for a whole number", "clients: 4", "clients: 1.5", `orders.yaml:16:5: workloads[0].clients: "1.5" is a number; a whole number belongs here`},
	{"number for a text", "name: orders", "name: 5", `orders.yaml:1:1: name: "5" is a number; a text, in quotes, belongs here`},
	{"too large a number", "clients: 4", "clients: 99999999999999999999", `orders.yaml:16:5: workloads[0].clients: "99999999999999999999" is a number; a whole number belongs here`},
	{"list for a text", "baseline: a", "baseline: [a]", `orders.yaml:5:1: baseline: is a list; a text belongs here`},
	{"text for a list", "engines: [postgres]", "engines: postgres", `orders.yaml:3:1: engines: is a text; a list belongs here, as [a, b] or lines that begin with -`},
	{"list for a mapping", "primary: {metric: tps, margin: 0.03}", "primary: [tps]", "orders.yaml:4:1: primary: is a list; a mapping, lines of `key: value`, belongs here"},
	{"no value", "baseline: a", "baseline:", `orders.yaml:5:1: baseline: has no value; give one, or leave the key out`},
	{"number for a duration", "measure: 10s", "measure: 10", `orders.yaml:22:3: plan.measure: "10" is no duration; write a number with its unit, such as 30s or 2m`},
	{"zero without unit", "warm: 1s", "warm: 0", `orders.yaml:20:3: plan.warm: "0" is no duration; write a number with its unit, such as 30s or 2m`},
	{"anchor", "name: orders", "name: &x orders", `orders.yaml:1:1: name: anchors (&x) are not read; write it out where it is wanted`},
	{"tag", "name: orders", "name: !!str orders", `orders.yaml:1:1: name: tags (!!str) are not read`},
}

var headProblems = []problemCase{
	{"name", "name: orders", "name: Orders", `orders.yaml:1:1: name: "Orders" must be of small letters, digits and -, beginning with a letter, 40 at the most`},
	{"unknown engine", "engines: [postgres]", "engines: [postgres, oracle]", `orders.yaml:3:21: engines[1]: "oracle" is none of postgres, mariadb, mysql`},
	{"no engine", "engines: [postgres]", "engines: []", `orders.yaml:3:1: engines: names no engine; choose from postgres, mariadb, mysql`},
	{"engine twice", "engines: [postgres]", "engines: [postgres, postgres]", `orders.yaml:3:21: engines[1]: "postgres" is here twice; remove one`},
	{"engine of a variant", "  - name: b", "  - name: b\n    engines: [mysql]", `orders.yaml:9:15: variants[1].engines[0]: "mysql" is not among the study's engines, postgres; add it there or remove it here`},
	{"metric", "metric: tps", "metric: speed", `orders.yaml:4:11: primary.metric: "speed" is no metric`},
	{"metric of a phase", "metric: tps", `metric: "resp_p95@during/idle"`, `orders.yaml:4:11: primary.metric: "resp_p95@during/idle" is of a phase, and no variant makes a change; remove what follows @, or give the variants a change`},
	{"metric twice", "baseline: a", "metrics: [resp_p95, tps]\nbaseline: a", `orders.yaml:5:21: metrics[1]: "tps" is here twice, or the primary one; remove it`},
	{"margin", "margin: 0.03", "margin: 3", `orders.yaml:4:24: primary.margin: 3 is outside of 0 to 1; it is a share, 0.03 for three percent`},
	{"margin that is no number", "margin: 0.03", "margin: .nan", `orders.yaml:4:24: primary.margin: NaN is outside of 0 to 1; it is a share, 0.03 for three percent`},
	{"metric of a workload", "    kit: tpcb-like", "    primary: {metric: speed, margin: 0.1}\n    kit: tpcb-like", `orders.yaml:13:15: workloads[0].primary.metric: "speed" is no metric`},
	{"margin of a workload", "    kit: tpcb-like", "    primary: {metric: tps, margin: 1}\n    kit: tpcb-like", `orders.yaml:13:28: workloads[0].primary.margin: 1 is outside of 0 to 1; it is a share, 0.03 for three percent`},
	{"workload without a margin", "    kit: tpcb-like", "    primary: {metric: tps}\n    kit: tpcb-like", `orders.yaml:13:5: workloads[0].primary.margin: is missing`},
	{"missing baseline", "baseline: a", "baseline: c", `orders.yaml:5:1: baseline: "c" is none of the variants; name one of a, b`},
	{"variant twice", "  - name: b", "  - name: a", `orders.yaml:8:5: variants[1].name: "a" is the name of variants[0] already; give each its own`},
	{"name of a variant", "  - name: b", "  - name: b′", `orders.yaml:8:5: variants[1].name: "b′" must be of letters, digits, ., _, + and -, 60 at the most`},
	{"parameter", "{work_mem: 1}", "{Work Mem: 1}", `orders.yaml:9:18: variants[1].parameters.Work Mem: "Work Mem" is no name of a parameter; write it in small letters, as SHOW does`},
	{"parameter without value", "{work_mem: 1}", "{work_mem: }", `orders.yaml:9:18: variants[1].parameters.work_mem: has no value; give one, or leave the key out`},
	{"sql of another engine", "parameters: {work_mem: 1}", "sql: {mysql: [SELECT 1]}", `orders.yaml:9:11: variants[1].sql.mysql: "mysql" is none of the engines that it is for, postgres`},
	{"empty sql", "parameters: {work_mem: 1}", `sql: [SELECT 1, " "]`, `orders.yaml:9:21: variants[1].sql[1]: is empty; write a statement, or remove the line`},
	{"class", "parameters: {work_mem: 1}", "class: large", `orders.yaml:9:5: variants[1].class: "large" is no class; one looks like db.t3.medium`},
	{"iops without storage", "parameters: {work_mem: 1}", "iops: 1000", `orders.yaml:9:5: variants[1].iops: needs storage_type, such as io1: others take no number of IOPS`},
	{"endpoint", "parameters: {work_mem: 1}", "endpoint: envoy", `orders.yaml:9:5: variants[1].endpoint: "envoy" is none of pgbouncer, haproxy, proxy, HOST:PORT`},
	{"proxy without need", "parameters: {work_mem: 1}", "endpoint: proxy", `orders.yaml:9:5: variants[1].endpoint: proxy is the service's own; add needs: proxy, so that a target without one says so`},
	{"need", "parameters: {work_mem: 1}", "needs: good luck", `orders.yaml:9:5: variants[1].needs: "good luck" is no feature; name activity-stream, proxy, superuser or a library of the server, as pgaudit`},
	{"stream without need", "parameters: {work_mem: 1}", "activity_stream: sync", `orders.yaml:8:5: variants[1].needs: "" must be activity-stream with an activity stream, so that a target without one says so`},
	{"tool without change", "parameters: {work_mem: 1}", "tool: pt-online-schema-change", `orders.yaml:9:5: variants[1].tool: makes a change, and there is none; add change, or remove the tool`},
}

var workloadProblems = []problemCase{
	{"unknown generator", "generator: kurabe", "generator: wrk", `orders.yaml:12:5: workloads[0].generator: "wrk" is none of kurabe, pgbench, sysbench`},
	{"unknown kit", "kit: tpcb-like", "kit: tpcc", `orders.yaml:13:5: workloads[0].kit: "tpcc" is none of tpcb-like, simple-update, select-only, point-select, sysbench-like, tpcc-like, long-transaction, connect, select-now, writers`},
	{"kit of another generator", "generator: kurabe", "generator: sysbench", `orders.yaml:13:5: workloads[0].kit: "tpcb-like" is none of oltp_read_write, oltp_read_only, oltp_write_only, oltp_point_select, oltp_update_index, oltp_update_non_index, oltp_insert, oltp_delete`},
	{"unknown mode", "mode: open", "mode: opne", `orders.yaml:14:5: workloads[0].mode: "opne" is none of open, closed, series`},
	{"unknown arrival", "rate: 100", "rate: 100\n    arrival: burst", `orders.yaml:16:5: workloads[0].arrival: "burst" is none of poisson, constant`},
	{"unknown protocol", "rate: 100", "rate: 100\n    protocol: binary", `orders.yaml:16:5: workloads[0].protocol: "binary" is none of simple, extended, prepared`},
	{"open without rate", "    rate: 100\n", "", `orders.yaml:11:5: workloads[0].rate: open load needs a rate, transactions a second; about 60 % of what closed load reaches is a good one`},
	{"rate with closed", "mode: open", "mode: closed", `orders.yaml:15:5: workloads[0].rate: is of open load: closed sends when the answer is there; remove it, or use mode: open`},
	{"arrival with closed", "mode: open\n    rate: 100", "mode: closed\n    arrival: poisson", `orders.yaml:15:5: workloads[0].arrival: is of open load: closed sends when the answer is there; remove it, or use mode: open`},
	{"series without requests", "mode: open\n    rate: 100\n    clients: 4", "mode: series\n    clients: 1", `orders.yaml:11:5: workloads[0].requests: 0 is outside of 1 to 10000000; a series says how many it is of`},
	{"series of many clients", "mode: open\n    rate: 100", "mode: series\n    requests: 10", `orders.yaml:16:5: workloads[0].clients: 4: a series is of one client; write 1`},
	{"requests without series", "rate: 100", "rate: 100\n    requests: 5", `orders.yaml:16:5: workloads[0].requests: is of a series, and this load lasts as long as the plan says; remove the key`},
	{"script together with kit", "rate: 100", "rate: 100\n    script: SELECT 1", `orders.yaml:16:5: workloads[0].script: is there together with kit; remove one`},
	{"neither script nor kit", "    kit: tpcb-like\n", "", `orders.yaml:11:5: workloads[0]: has neither kit nor script; give one`},
	{"setup of a kit", "rate: 100", "rate: 100\n    setup: [SELECT 1]", `orders.yaml:16:5: workloads[0].setup: makes the data of a script, and a kit makes its own; remove it, or write a script`},
	{"script by sysbench", "generator: kurabe\n    kit: tpcb-like", "generator: sysbench\n    script: SELECT 1", `orders.yaml:13:5: workloads[0].script: sysbench runs its own kits only; use generator: kurabe`},
	{"connections by sysbench", "generator: kurabe\n    kit: tpcb-like", "generator: sysbench\n    kit: oltp_insert\n    connect: true", `orders.yaml:14:5: workloads[0].connect: sysbench keeps its connections; use generator: kurabe`},
	{"series by pgbench", "generator: kurabe\n    kit: tpcb-like\n    mode: open\n    rate: 100\n    clients: 4", "generator: pgbench\n    kit: tpcb-like\n    mode: series\n    requests: 9\n    clients: 1", `orders.yaml:14:5: workloads[0].mode: pgbench runs open or closed only; use one of these, or generator: kurabe`},
	{"constant arrival by pgbench", "generator: kurabe", "generator: pgbench\n    arrival: constant", `orders.yaml:13:5: workloads[0].arrival: pgbench knows poisson only; use that, or generator: kurabe`},
	{"rows by pgbench", "generator: kurabe", "generator: pgbench\n    rows: 5", `orders.yaml:13:5: workloads[0].rows: pgbench counts its data by scale, 100,000 rows each; use scale`},
	{"rows together with scale", "rate: 100", "rate: 100\n    rows: 5\n    scale: 5", `orders.yaml:16:5: workloads[0].rows: is there together with scale, and both say how much data there is; remove one`},
	{"writers without rows", "kit: tpcb-like", "kit: writers", `orders.yaml:11:5: workloads[0].rows: the kit writers needs the number of rows of its table`},
	{"clients", "clients: 4", "clients: 0", `orders.yaml:16:5: workloads[0].clients: 0 is outside of 1 to 2000`},
	{"rate", "rate: 100", "rate: -1", `orders.yaml:15:5: workloads[0].rate: -1 is outside of 0 to 1000000`},
	{"infinite rate", "rate: 100", "rate: .inf", `orders.yaml:15:5: workloads[0].rate: +Inf is outside of 0 to 1000000`},
	{"rows", "rate: 100", "rate: 100\n    rows: 1000000001", `orders.yaml:16:5: workloads[0].rows: 1000000001 is outside of 0 to 1000000000`},
	{"scale", "rate: 100", "rate: 100\n    scale: -1", `orders.yaml:16:5: workloads[0].scale: -1 is outside of 0 to 100000`},
	{"workload twice", "plan:", "  - {name: w, generator: kurabe, kit: tpcb-like, mode: closed, clients: 1}\nplan:", `orders.yaml:17:6: workloads[1].name: "w" is the name of workloads[0] already; give each its own`},
}

var planProblems = []problemCase{
	{"more blocks at the least than at the most", "blocks_min: 6", "blocks_min: 13", `orders.yaml:18:3: plan.blocks_min: 13 is more than blocks_max, 12; make it less or equal`},
	{"short measure", "measure: 10s", "measure: 999ms", `orders.yaml:22:3: plan.measure: 999ms is outside of 1s to 24h`},
	{"long measure", "measure: 10s", "measure: 25h", `orders.yaml:22:3: plan.measure: 25h is outside of 1s to 24h`},
	{"warm-up", "warm: 1s", "warm: 3s", `orders.yaml:21:3: plan.warm_max: 2s is less than warm, 3s; make it more or equal`},
	{"half-width", "warm: 1s", "warm: 1s\n  target_halfwidth: 2", `orders.yaml:21:3: plan.target_halfwidth: 2 is outside of 0 to 1; it is a share, 0.02 for ±2 %, and 0 measures blocks_max`},
	{"after without change", "warm: 1s", "warm: 1s\n  after: 2s", `orders.yaml:21:3: plan.after: is how long the load goes on after a change, and no variant makes one; remove the key`},
	{"published variant", "", "published: [{source: s, variant: c, label: l, values: {tps: 1}}]\n", `orders.yaml:23:25: published[0].variant: "c" is no variant of the study`},
	{"published metric", "", "published: [{source: s, variant: a, label: l, values: {ratio: 1, speed: 1}}]\n", `orders.yaml:23:66: published[0].values.speed: "speed" is no metric`},
	{"quick without baseline", "", "quick: {variants: [b]}\n", `orders.yaml:23:9: quick.variants: leaves the baseline, "a", out; add it`},
	{"quick workload", "", "quick: {workloads: [x]}\n", `orders.yaml:23:21: quick.workloads[0]: "x" is no workload of the study`},
	{"quick scale", "", "quick: {scale: 0.00001}\n", `orders.yaml:23:9: quick.scale: 1e-05 is outside of 0.0001 to 10000`},
	{"quick plan", "", "quick: {plan: {measure: 1ms}}\n", `orders.yaml:23:16: quick.plan.measure: 1ms is outside of 1s to 24h`},
	{"put", "", "as_published: {put_variants: [{name: a, iops: 5}]}\n", `orders.yaml:23:41: as_published.put_variants[0].iops: needs storage_type, such as io1: others take no number of IOPS`},
	{"plan of a section", "", "quick: {plan: {blocks_max: 5}}\n", `orders.yaml:23:9: quick.plan.blocks_min: 6 is more than blocks_max, 5; make it less or equal`},
}

func TestParseProblems(t *testing.T) {
	for _, c := range slices.Concat(formProblems, headProblems, workloadProblems, planProblems) {
		t.Run(c.name, func(t *testing.T) { problem(t, valid, c.from, c.to, c.want) })
	}
}

func TestParseProblemsOfEngines(t *testing.T) {
	two := strings.Replace(valid, "engines: [postgres]", "engines: [postgres, mariadb]", 1)
	cases := []problemCase{
		{"pgbench", "generator: kurabe", "generator: pgbench", `orders.yaml:12:5: workloads[0].generator: pgbench speaks to postgres only, and the workload is for mariadb, too; give it engines: [postgres]`},
		{"extended protocol", "rate: 100", "rate: 100\n    protocol: extended", `orders.yaml:16:5: workloads[0].protocol: extended is of postgres only, and the workload is for mariadb, too; use simple or prepared, or give it engines: [postgres]`},
		{"pgbouncer", "parameters: {work_mem: 1}", "endpoint: pgbouncer", `orders.yaml:9:5: variants[1].endpoint: pgbouncer speaks to postgres only, and the variant is for mariadb, too; give it engines: [postgres]`},
		{"baseline of one", "  - name: a", "  - name: a\n    engines: [mariadb]", `orders.yaml:8:5: variants[0].engines: the baseline is compared with on every engine of the study; remove the key`},
		{"no workload for one", "generator: kurabe", "generator: kurabe\n    engines: [mariadb]", `orders.yaml:3:11: engines[0]: no workload is for postgres; add one, or remove the engine`},
		{"section that limits the baseline", "plan:", "quick: {put_variants: [{name: a, engines: [mariadb]}]}\nplan:", `orders.yaml:17:1: quick: makes a study that is wrong: variants[0].engines: the baseline is compared with on every engine of the study; remove the key`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { problem(t, two, c.from, c.to, c.want) })
	}
}

func TestParseProblemsOfChanges(t *testing.T) {
	if _, err := Parse("orders.yaml", []byte(changed), Options{}); err != nil {
		t.Fatal(err)
	}
	cases := []problemCase{
		{"variant without", "    change: {\"\": [SELECT 1]}\n", "", `orders.yaml:7:5: variants[0].change: there is none for postgres; other variants make a change while the load runs, so each does (a baseline one without effect, as SELECT 1)`},
		{"for all and for one", "[SELECT 1]}", "[SELECT 1], postgres: [SELECT 2]}", `orders.yaml:8:5: variants[0].change: is there for all engines and for postgres; write it for each, or once`},
		{"pgbench", "generator: kurabe\n    kit: writers\n    rows: 10", "generator: pgbench\n    kit: tpcb-like", `orders.yaml:13:5: workloads[0].generator: pgbench cannot have a change made while it runs, and the variants make one; use generator: kurabe
orders.yaml:14:5: workloads[0].kit: a change names {table}, which is the table of the kit writers; use kit: writers with rows`},
		{"series", "mode: open\n    rate: 100\n    clients: 4", "mode: series\n    requests: 9\n    clients: 1", `orders.yaml:16:5: workloads[0].mode: a series ends by itself, and the variants make a change while the load runs; use open or closed`},
		{"another kit", "kit: writers\n    rows: 10", "kit: tpcb-like", `orders.yaml:14:5: workloads[0].kit: a change names {table}, which is the table of the kit writers; use kit: writers with rows`},
		{"no after", "  after: 1s\n", "", `orders.yaml:19:1: plan.after: 0s is outside of 1s to 24h`},
		{"tool on postgres", "  - name: b\n", "  - name: b\n    tool: pt-online-schema-change\n", `orders.yaml:10:5: variants[1].tool: pt-online-schema-change speaks to mariadb and mysql only; give the variant engines: [mariadb]`},
		{"unknown tool", "  - name: b\n", "  - name: b\n    tool: gh-ost\n", `orders.yaml:10:5: variants[1].tool: "gh-ost" is none of pt-online-schema-change`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { problem(t, changed, c.from, c.to, c.want) })
	}
	t.Run("tool told too much", func(t *testing.T) {
		maria := strings.Replace(changed, "engines: [postgres]", "engines: [mariadb]", 1)
		problem(t, maria, `["DROP TABLE {table}"]}`, "[alter table t ADD x int]}\n    tool: pt-online-schema-change",
			`orders.yaml:10:5: variants[1].change: "alter table t ADD x int": the tool is told what follows ALTER TABLE {table}; leave that out`)
	})
}

// problem parses text with a part replaced, or with more at its end when from is empty,
// and wants exactly that error.
func problem(t *testing.T, text, from, to, want string) {
	t.Helper()
	switch {
	case from == "":
		text += to
	case !strings.Contains(text, from):
		t.Fatalf("the case replaces what is not there: %q", from)
	default:
		text = strings.Replace(text, from, to, 1)
	}
	_, err := Parse("orders.yaml", []byte(text), Options{CheckMetric: metrics})
	if got := fmt.Sprint(err); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
