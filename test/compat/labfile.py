"""A result file of the lab, read by docs/guide/lab.md alone: its chain of hashes, and
every metric of every trial computed again."""

import functools
import hashlib
import json
import math

import hdr

Histogram = functools.cache(hdr.Histogram)
PERCENTILES = {"p50": 50, "p90": 90, "p95": 95, "p99": 99, "p999": 99.9}
LEAST_REQUESTS = {"p99": 10_000, "p999": 100_000}
# Totals of a probe, and the factor to the unit of the metric.
PER_TRANSACTION = {
    "cpu_per_tx": ("cpu_s", 1000), "context_switches_per_tx": ("context_switches", 1), "wal_per_tx": ("wal_bytes", 1),
    "fsyncs_per_tx": ("fsyncs", 1), "read_bytes_per_tx": ("read_bytes", 1), "write_bytes_per_tx": ("write_bytes", 1),
    "lock_waits_per_tx": ("lock_waits", 1), "lock_wait_s_per_tx": ("lock_wait_s", 1),
}  # fmt: skip
BORDERS = {"CONNECT", "BEGIN", "START TRANSACTION", "COMMIT", "END", "ROLLBACK"}


class File:
    def __init__(self, path):
        lines = path.read_bytes().split(b"\n")
        assert lines.pop() == b"", "the last line has no end"
        records = [json.loads(line) for line in lines]
        previous = ""
        for number, (line, record) in enumerate(zip(lines, records), 1):
            assert record["prev"] == previous, f"line {number}: the chain is broken"
            previous = hashlib.sha256(line).hexdigest()[:32]
        self.study, *rest = records
        assert self.study["t"] == "study" and self.study["format"] == "kurabe-lab/1"
        self.trials = [r for r in rest if r["t"] == "trial"]

    @property
    def definition(self):
        return self.study["definition"]

    @property
    def baseline(self):
        return self.definition["baseline"]

    @property
    def twin(self):
        return self.baseline + "′"

    def has(self, part):
        """Whether the target and its engine can have a variant or a workload."""
        unsupported = part["name"] in self.study.get("unsupported", {})
        return not unsupported and self.study["engine"] in part.get("engines", [self.study["engine"]])

    def metrics(self):
        first = self.definition["primary"]["metric"]
        return [first] + [m for m in self.definition.get("metrics", []) if m != first]

    def primary(self, workload):
        """What decides under a workload: its own metric and margin, or the study's."""
        own = [w.get("primary") for w in self.definition["workloads"] if w["name"] == workload]
        return own[0] or self.definition["primary"]

    def decides(self, key):
        """Whether an estimate, by workload, variant and metric, is of the primary metric."""
        return key[2] == self.primary(key[0])["metric"]

    def compared(self):
        """Variants that are compared with the baseline, the twin first."""
        return [self.twin] + [v["name"] for v in self.definition["variants"] if self.has(v) and v["name"] not in (self.baseline, self.twin)]

    def workloads(self):
        return [w["name"] for w in self.definition["workloads"] if self.has(w)]


def counts(trial):
    return trial["status"] in ("ok", "unsettled")


def values(trial, metric):
    """What a metric of a trial may be: none when it was not measured; two of a percentile
    whose rank is no whole number, as it may be rounded either way."""
    if metric == "change_s":
        return [trial["change_ms"] / 1000] if trial.get("change_ms", 0) > 0 else []
    base, phases = split(metric)
    by_name = {p["name"]: p for p in trial.get("phases") or []}
    names = phases or ["measure" if "measure" in by_name else "idle"]
    found = [of_phase(by_name.get(name), base) for name in names]
    if len(found) == 1:
        return found[0]
    return [a / b for a in found[0] for b in found[1] if b]


def split(metric):
    """A metric's name and the phases behind its @, one or two; a statement may hold an @."""
    end = metric.rindex(":avg") if metric.startswith("stmt:") else 0
    base, at, phases = metric[end:].partition("@")
    return metric[:end] + base, phases.split("/") if at else []


def of_phase(phase, metric):
    load = (phase or {}).get("load")
    if load is None:
        return []
    done, errors, offered = load["transactions"], sum(load.get("errors", {}).values()), load.get("offered", 0)
    if metric.startswith("stmt:"):
        name = metric.removeprefix("stmt:").removesuffix(":avg")
        if name in load.get("statements", {}):
            return [Histogram(load["statements"][name]).mean() / 1000]
        return given(load.get("summary", {}), "statement " + name)
    if metric in PER_TRANSACTION:
        probe, factor = PER_TRANSACTION[metric]
        return [total * factor / done for total in given(phase.get("probes", {}), probe) if done]
    if metric == "tps":
        return [done / load["seconds"]] if load["seconds"] else []
    if metric == "errors_share":
        return [errors / (errors + done)] if errors + done else []
    if metric == "skipped_share":
        return [load.get("skipped", 0) / offered] if offered else []
    if metric == "qps":
        return statement_rate(load)
    if metric == "gap_max":
        return longest_gap(load.get("bins", []))
    return latency(load, *metric.split("_"))


def statement_rate(load):
    """Statements a second; what begins or ends a transaction is none. Where a generator
    tells averages only, each transaction has each of its statements."""
    answered = {name: Histogram(text).total for name, text in load.get("statements", {}).items()}
    if not answered:
        names = [name.removeprefix("statement ") for name in load.get("summary", {}) if name.startswith("statement ")]
        answered = dict.fromkeys(names, load["transactions"])
    answered = [n for name, n in answered.items() if name.partition(" ")[2].rstrip("; ").upper() not in BORDERS]
    return [sum(answered) / load["seconds"]] if answered and load["seconds"] else []


def given(numbers, name):
    return [numbers[name]] if name in numbers else []


def longest_gap(bins):
    marks = "".join("x" if n else "-" for n in bins)
    return [100 * max(map(len, marks.split("x")))] if bins else []


def latency(load, kind, figure):
    least = LEAST_REQUESTS.get(figure, 0)
    text = load.get("service", "")
    if kind == "resp":
        text = load.get("response", "") or text
    if not text:
        # A generator's own summary of open load counts from the schedule.
        if kind == "serv" and load.get("offered", 0) or load["transactions"] < least:
            return []
        return given(load.get("summary", {}), figure)
    h = Histogram(text)
    if h.total < max(least, 1):
        return []
    if figure in PERCENTILES:
        rank = PERCENTILES[figure] / 100 * h.total
        return [h.at_rank(max(1, r)) / 1000 for r in sorted({math.floor(rank + 0.5), math.ceil(rank)})]
    return [{"avg": h.mean, "min": h.least, "max": h.most}[figure]() / 1000]
