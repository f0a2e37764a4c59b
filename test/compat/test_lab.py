"""Every figure of the lab computed again by code that shares nothing with it, from raw
files: made-up ones of known effect and all that are published under docs/studies."""

import csv
import fractions
import functools
import io
import math
import os
import pathlib
import re
import statistics
import subprocess
import tempfile
import types

import pytest

import harness
import labfile
import labstat

STUDIES = sorted((harness.ROOT / "docs" / "studies").glob("*.jsonl"))
MADE = ["blocks-5", "blocks-6", "blocks-12", "blocks-19", "blocks-24", "alter-6", "alter-12", "primaries", "no-twin", "noisy", "all-verdicts"]
HIGHER_IS_BETTER = ["tps", "qps"]
MAX_UNSETTLED = 0.25
RESAMPLES = 10_000  # some 0.7 s for 24 blocks
LAB_RESAMPLES = 9_999
DOUBT = 5  # standard errors; the draws are seeded, so what passes once passes always


@pytest.fixture(scope="session")
def made():
    """Files of lab/result/resulttest, as the program's own code writes them."""
    go = os.environ.get("GO") or subprocess.run([harness.ROOT / "scripts" / "go.sh"], capture_output=True, text=True, check=True).stdout
    with tempfile.TemporaryDirectory(prefix="kurabe-lab-") as folder:
        subprocess.run([*go.split(), "run", "./test/labfile", folder], cwd=harness.ROOT, check=True)
        paths = {p.stem: p for p in pathlib.Path(folder).iterdir()}
        assert sorted(paths) == sorted(MADE), "test/labfile makes other files"
        yield paths


@pytest.fixture(params=[*MADE, *STUDIES], ids=lambda p: getattr(p, "stem", p))
def path(request):
    if isinstance(request.param, str):
        return request.getfixturevalue("made")[request.param]
    return request.param


def lab(*args, fails=False):
    done = subprocess.run([harness.BINARY, "lab", *args], capture_output=True, text=True, timeout=60)
    assert (done.returncode != 0) == fails, f"{args}: {done.stdout[-2000:]}{done.stderr}"
    return done.stderr if fails else done.stdout


@functools.cache
def exported(path):
    return list(csv.DictReader(io.StringIO(lab("export", path, "--format", "csv"))))


@functools.cache
def recomputed(path):
    """Estimates by workload, variant and metric."""
    rows = csv.DictReader(io.StringIO(lab("recompute", path)), delimiter="\t", quoting=csv.QUOTE_NONE)
    return {(r["workload"], r["variant"], r["metric"]): r for r in rows}


# A file of tens of megabytes is parsed once for all tests of it.
read = functools.cache(labfile.File)


def test_the_export_says_what_the_trials_say(path):
    file, rows = read(path), exported(path)
    assert len(rows) == len(file.trials)
    names = list(rows[0])[10:] if rows else []
    for number, (trial, row) in enumerate(zip(file.trials, rows), 1):
        same = {k: str(trial[k]) for k in ("block", "position", "variant", "workload", "seed", "start", "status")}
        assert row.items() >= same.items()
        assert (row["trial"], row["counts"], row["reason"]) == (str(number), str(labfile.counts(trial)).lower(), trial.get("reason", ""))
        for name in names:
            want, got = labfile.values(trial, name), row[name]
            agrees = any(math.isclose(w, float(got), rel_tol=1e-9) for w in want) if got else not want
            assert agrees, f"trial {number}, {name}: {got!r}, not one of {want}"
    # And no metric that some trial has was left out.
    plain = set(labfile.PER_TRANSACTION) | {"tps", "qps", "errors_share", "skipped_share", "gap_max"}
    plain |= {f"{kind}_{figure}" for kind in ("resp", "serv") for figure in ("avg", "max", "min", *labfile.PERCENTILES)}
    phases = ["@idle", "@during", "@after"] if any(n.endswith("@during") for n in names) else [""]
    for name in [n + phase for n in plain for phase in phases] + [m for _, _, m in cells(path)]:
        assert name in names or not any(labfile.counts(t) and labfile.values(t, name) for t in file.trials), name


def pairs_of(path, workload, variant, metric):
    """What baseline and variant measured in the same blocks: two lists, and how many of
    the trials were unsettled and how many blocks have a 0."""
    cells = {}
    for row in exported(path):
        if row["counts"] == "true" and row["workload"] == workload:
            cells[row["variant"], int(row["block"])] = row  # the last one of a block
    baseline = read(path).baseline
    p = types.SimpleNamespace(a=[], b=[], unsettled=0, zero=0)
    for block in sorted({b for _, b in cells}):
        x, y = cells.get((baseline, block)), cells.get((variant, block))
        if not (x and y and x.get(metric) and y.get(metric)):
            continue
        a, b = float(x[metric]), float(y[metric])
        if a <= 0 or b <= 0:
            p.zero += 1
            continue
        p.a.append(a)
        p.b.append(b)
        p.unsettled += (x["status"] == "unsettled") + (y["status"] == "unsettled")
    p.logs = [math.log(b / a) for a, b in zip(p.a, p.b)]
    # Ratios as fractions, turned to be above 1: in logarithms, rounding would part equal ranks.
    exact = [fractions.Fraction(str(b)) / fractions.Fraction(str(a)) for a, b in zip(p.a, p.b)]
    p.signed = [r if r > 1 else -1 / r for r in exact if r != 1]
    return p


def number(row, name):
    """A figure, None where there is none."""
    value = float(row[name])
    return None if math.isnan(value) else value


def close(got, want, what):
    """Six digits are printed."""
    assert got == want or None not in (got, want) and math.isclose(got, want, rel_tol=2e-5, abs_tol=1e-12), f"{what}: {got}, not {want}"


def cells(path):
    file = read(path)
    asked = [(w, file.primary(w)["metric"]) for w in file.workloads()]
    asked += [(w, m) for m in file.metrics() for w in file.workloads() if m != file.primary(w)["metric"]]
    return [(w, v, m) for w, m in asked for v in file.compared()]


def test_the_estimates_follow_from_the_trials(path):
    rows = recomputed(path)
    assert list(rows) == cells(path)
    for key, row in rows.items():
        p = pairs_of(path, *key)
        n = len(p.logs)
        assert int(row["pairs"]) == n, key
        if n == 0:
            assert number(row, "ratio") is None
            continue
        close(number(row, "ratio"), math.exp(labstat.hodges_lehmann(p.logs)), key)
        close(number(row, "baseline_median"), statistics.median(p.a), key)
        close(number(row, "variant_median"), statistics.median(p.b), key)
        close(number(row, "sd"), statistics.stdev(p.logs) if n > 1 else None, key)
        close(number(row, "p"), labstat.signed_rank_p(p.signed), key)
        if n < 20:
            low, high, level = labstat.signed_rank_interval(p.logs) or (None, None, 0)
            close(number(row, "low"), None if low is None else math.exp(low), key)
            close(number(row, "high"), None if high is None else math.exp(high), key)
            close(number(row, "level"), level, key)
        assert row["method"] == ("HL+walsh" if n < 20 else "HL+BCa")


def test_the_bootstrap_agrees(path):
    """One metric of each workload: others differ in their numbers only."""
    file, rows = read(path), recomputed(path)
    for key, row in rows.items():
        if not file.decides(key) or row["method"] != "HL+BCa":
            continue
        assert float(row["level"]) == labstat.LEVEL
        ends = labstat.bca_ends(pairs_of(path, *key).logs, str(key), RESAMPLES, DOUBT, LAB_RESAMPLES)
        for name, (least, most) in zip(("low", "high"), ends):
            least, most = math.exp(least - 1e-5), math.exp(most + 1e-5)
            assert least <= float(row[name]) <= most, f"{key}, {name}: {row[name]} is not within {least} and {most}"


def test_the_adjustment_for_many_estimates(path):
    """Holm's, over all that are neither of the primary metric nor of the twin."""
    file, rows = read(path), recomputed(path)
    family = [k for k in rows if not file.decides(k) and k[1] != file.twin and number(rows[k], "p") is not None]
    adjusted = labstat.holm([float(rows[k]["p"]) for k in family])
    for i, key in enumerate(family):
        close(float(rows[key]["holm"]), adjusted[i], key)
    for key in rows.keys() - set(family):
        assert rows[key]["holm"] == rows[key]["p"]


def test_the_verdicts_follow_from_the_intervals(path):
    file, rows = read(path), recomputed(path)
    seen = set()
    for key, row in rows.items():
        if not file.decides(key):
            assert row["verdict"] == "", "only the primary metric has verdicts"
            continue
        workload, variant, _ = key
        got = row["verdict"]
        assert got == verdict(path, workload, variant), (workload, variant, row)
        assert got != "withheld" or row["why"], "a verdict is withheld without a reason"
        seen.add(got)
    if path.stem == "all-verdicts":
        assert seen >= {"costs", "no material cost", "improves", "undecided"}
    if path.stem == "no-twin":
        assert seen == {"withheld"}
    if path.stem == "noisy":
        assert seen >= {"costs", "undecided"} and "no material cost" not in seen
    if path.stem == "blocks-5":
        assert seen == {"direction only"}


def verdict(path, workload, variant):
    file = read(path)
    primary = file.primary(workload)
    p = pairs_of(path, workload, variant, primary["metric"])
    own, twin = ratio(path, workload, variant), ratio(path, workload, file.twin)
    noise = labstat.floor(twin, primary["margin"])
    higher = primary["metric"].partition("@")[0] in HIGHER_IS_BETTER
    judged = labstat.verdict_over(own, primary["margin"], noise or 0, higher)
    if not p.logs or p.zero:
        return "withheld"
    if judged == "direction only":
        return judged
    if p.unsettled > MAX_UNSETTLED * 2 * len(p.logs) or noise is None:
        return "withheld"
    if variant != file.twin and verdict(path, workload, file.twin) == "withheld":
        return "withheld"
    return judged


def ratio(path, workload, variant):
    row = recomputed(path)[workload, variant, read(path).primary(workload)["metric"]]
    return (*(number(row, name) for name in ("ratio", "low", "high")), int(row["pairs"]))


def test_assignments_of_signs_are_counted_right():
    for ranks in [(1, 2, 3, 4, 5, 6), (2, 2, 5, 5, 5, 8, 11), tuple(range(1, 13))]:
        assert labstat.assignments(ranks) == labstat.every_assignment(ranks)


UNIT = re.compile(r"Unit (\S+) better=(higher|lower)")
LINE = re.compile(r"Benchmark\S+/variant=(\S+)-\d+ (\d+)((?: \S+ \S+)+)")


def test_the_benchmark_format_has_the_same_numbers(path):
    rows = [r for r in exported(path) if r["counts"] == "true"]
    text = lab("export", path, "--format", "go")
    units = dict(UNIT.fullmatch(line).groups() for line in text.splitlines() if line.startswith("Unit "))
    found = [LINE.fullmatch(line) for line in text.splitlines() if line.startswith("Benchmark")]
    assert len(found) == len(rows) and all(found)
    # By variant, the baseline first; within one, in the order of execution.
    first = [read(path).baseline, *read(path).compared()]
    rows.sort(key=lambda r: first.index(r["variant"]))
    for match, row in zip(found, rows):
        assert match[1] == row["variant"]
        numbers, names = match[3].split()[::2], match[3].split()[1::2]
        assert [float(n) for n in numbers] == [float(x) for x in list(row.values())[10:] if x]
        for name in names:
            assert (units[name] == "higher") == (name.partition("@")[0] in HIGHER_IS_BETTER)


def change_a_digit(lines, at):
    # Of a count in the middle of the trial: still a valid one.
    text, n = re.subn(rb'("transactions":)(\d)', lambda m: m[1] + (b"2" if m[2] == b"1" else b"1"), lines[at], count=1)
    assert n == 1 and text != lines[at]
    return [*lines[:at], text, *lines[at + 1 :]]


TAMPERING = {
    "a digit is changed": (change_a_digit, 1),
    "a line is removed": (lambda lines, at: lines[:at] + lines[at + 1 :], 0),
    "two lines are swapped": (lambda lines, at: [*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]], 0),
    "a line is there twice": (lambda lines, at: lines[: at + 1] + lines[at:], 1),
}


@pytest.mark.parametrize("what", TAMPERING)
def test_tampering_is_found(made, tmp_path, what):
    change, later = TAMPERING[what]
    lines = made["blocks-6"].read_bytes().splitlines(keepends=True)
    trials = [i for i, line in enumerate(lines) if line.startswith(b'{"t":"trial"') and b'"transactions"' in line]
    for at in (trials[0], trials[len(trials) // 2], trials[-1]):
        spoilt = tmp_path / "spoilt.jsonl"
        spoilt.write_bytes(b"".join(change(lines, at)))
        # The line after a changed one is the first that does not fit what is before it.
        said = lab("recompute", spoilt, fails=True)
        assert f"line {at + 1 + later}" in said and "the chain is broken" in said, said
        with pytest.raises(AssertionError, match=f"line {at + 1 + later}"):
            labfile.File(spoilt)
