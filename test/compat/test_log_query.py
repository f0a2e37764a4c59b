"""Logs Insights: queries over log groups that a client filled."""

import json
import re
import subprocess
import time
import uuid

import pytest
from botocore.exceptions import ClientError

import harness
from harness import wait_for

PUBLISHED = (
    "fields @timestamp, t1, t2, t2 - t1 | filter @message like /INFO/ | stats avg(t2 - t1), max(t2 - t1), min(t2 - t1), "
    "pct(t2 - t1, 90), pct(t2 - t1, 50), count(t2 - t1)"
)
# Of a published measurement of a proxy, in ms: average, largest, smallest, 90th and 50th percentile.
DIRECT = (3.7202, 36.359, 2.9731, 3.3582, 3.1785)
PROXY = (6.3538, 154.8245, 4.0161, 5.8598, 4.456)


@pytest.fixture(scope="session")
def logs(server):
    return server.client("logs")


@pytest.fixture
def group(logs):
    name = f"query-{uuid.uuid4().hex[:8]}"
    logs.create_log_group(logGroupName=name)
    logs.create_log_stream(logGroupName=name, logStreamName="s")
    yield name
    logs.delete_log_group(logGroupName=name)


def put(logs, group, messages, stream="s"):
    start = int(time.time() * 1000) - len(messages)
    for n in range(0, len(messages), 5000):
        events = [{"timestamp": start + n + i, "message": m} for i, m in enumerate(messages[n : n + 5000])]
        logs.put_log_events(logGroupName=group, logStreamName=stream, logEvents=events)


def span():
    now = int(time.time())
    return {"startTime": now - 3600, "endTime": now}


def ended(logs, query_id):
    def done():
        got = logs.get_query_results(queryId=query_id)
        return got if got["status"] not in ("Scheduled", "Running") else None

    return wait_for("the end of a query", done, 60)


def ask(logs, query, *groups, **more):
    started = logs.start_query(logGroupNames=list(groups), queryString=query, **{**span(), **more})
    got = ended(logs, started["queryId"])
    assert got["status"] == "Complete", got
    return got


def rows(got):
    return [{f["field"]: f["value"] for f in row} for row in got["results"]]


def refused(call, code, *words):
    with pytest.raises(ClientError) as caught:
        call()
    error = caught.value.response["Error"]
    assert error["Code"] == code and all(w in error["Message"] for w in words), error
    return caught.value.response


def calls(avg, most, least, p90, p50):
    """Durations of a hundred calls with these figures."""
    low, middle = (least + p50) / 2, (p50 + p90) / 2
    list_ = [least, *[low] * 48, p50, *[middle] * 39, p90, *[0] * 9, most]
    high = (100 * avg - sum(list_)) / 9
    assert high >= p90
    return [high if d == 0 else d for d in list_]


def lambda_lines(durations):
    for n, d in enumerate(durations):
        call = str(uuid.UUID(int=n))
        yield f"START RequestId: {call} Version: $LATEST\n"
        t1 = 1000.5 + 97 * n
        yield f"2020-07-01T12:00:{n % 60:02d}.123Z\t{call}\tINFO\t" + json.dumps({"t1": t1, "t2": t1 + d}) + "\n"
        yield f"END RequestId: {call}\n"
        yield f"REPORT RequestId: {call}\tDuration: {d:.2f} ms\tBilled Duration: 100 ms\tMemory Size: 128 MB\tMax Memory Used: 73 MB\t\n"


@pytest.mark.parametrize("figures", [DIRECT, PROXY], ids=["direct", "proxy"])
def test_published_query(logs, group, figures):
    put(logs, group, list(lambda_lines(calls(*figures))))
    got = ask(logs, PUBLISHED, group)
    columns = ["avg(t2 - t1)", "max(t2 - t1)", "min(t2 - t1)", "pct(t2 - t1, 90)", "pct(t2 - t1, 50)", "count(t2 - t1)"]
    (row,) = got["results"]
    assert [f["field"] for f in row] == columns
    assert [float(f["value"]) for f in row] == [*figures, 100]
    assert got["statistics"]["recordsMatched"] == 100 and got["statistics"]["recordsScanned"] == 400 and got["statistics"]["bytesScanned"] > 10_000


def test_rows_and_records(logs, group):
    put(logs, group, [json.dumps({"n": n, "user": {"name": f"u{n % 3}"}}) for n in range(50)])
    got = ask(logs, "fields n, user.name as who | filter n >= 10 | sort n desc | limit 3", group)
    assert [(r["n"], r["who"]) for r in rows(got)] == [("49", "u1"), ("48", "u0"), ("47", "u2")]
    record = logs.get_log_record(logRecordPointer=rows(got)[0]["@ptr"])["logRecord"]
    assert json.loads(record["@message"])["n"] == 49 and record["@logStream"] == "s" and record["user.name"] == "u1"
    refused(lambda: logs.get_log_record(logRecordPointer="nonsense"), "InvalidParameterException")
    # Without a command that names them, rows have time and message, newest first.
    plain = rows(ask(logs, "filter user.name = 'u0'", group, limit=2))
    assert [json.loads(r["@message"])["n"] for r in plain] == [48, 45] and re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}", plain[0]["@timestamp"])
    parsed = rows(ask(logs, r'''parse @message /"n": (?<number>\d+)/ | stats count(*) as c, max(number) as m by user.name | sort user.name''', group))
    assert [(r["user.name"], r["c"], r["m"]) for r in parsed] == [("u0", "17", "48"), ("u1", "17", "49"), ("u2", "16", "47")]
    # Pages of results, for clients that ask for them.
    first = logs.start_query(logGroupName=group, queryString="sort n", **span())["queryId"]
    ended(logs, first)
    page = logs.get_query_results(queryId=first, maxItems=30)
    rest = logs.get_query_results(queryId=first, maxItems=30, nextToken=page["nextToken"])
    assert (len(page["results"]), len(rest["results"]), "nextToken" in rest) == (30, 20, False)


def test_several_groups(logs, group):
    other = group + "-b"
    logs.create_log_group(logGroupName=other)
    try:
        logs.create_log_stream(logGroupName=other, logStreamName="s")
        put(logs, group, ["one"] * 3)
        put(logs, other, ["two"] * 4)
        arns = [g["logGroupArn"] for g in logs.describe_log_groups(logGroupNamePrefix=group)["logGroups"]]
        started = logs.start_query(logGroupIdentifiers=arns, queryString="stats count(*) as c by @log", **span())
        assert [(r["@log"], r["c"]) for r in rows(ended(logs, started["queryId"]))] == [(f"000000000000:{group}", "3"), (f"000000000000:{other}", "4")]
    finally:
        logs.delete_log_group(logGroupName=other)


def test_mistakes(logs, group):
    query = "fields @message | filtre x"
    got = refused(lambda: ask(logs, query, group), "MalformedQueryException", "filtre")
    place = got["queryCompileError"]["location"]
    assert query[place["startCharOffset"] : place["endCharOffset"]] == "filtre" and "filtre" in got["queryCompileError"]["message"]
    refused(lambda: ask(logs, "filter @message like /(?=x)/", group), "MalformedQueryException", "lookaround")
    refused(lambda: ask(logs, "fields @message", "no-such-group"), "ResourceNotFoundException")
    refused(lambda: logs.start_query(queryString="fields @message", **span()), "InvalidParameterException", "exactly one")
    refused(lambda: ask(logs, "fields @message", group, limit=10_001), "InvalidParameterException", "limit")
    refused(lambda: ask(logs, "fields @message", group, startTime=span()["endTime"] + 1), "InvalidParameterException", "startTime")
    refused(lambda: ask(logs, "SELECT 1", group, queryLanguage="SQL"), "InvalidParameterException", "CWLI")
    for call in (logs.get_query_results, logs.stop_query):
        refused(lambda: call(queryId=str(uuid.uuid4())), "ResourceNotFoundException")


def test_stop_and_list(logs, group):
    put(logs, group, [f"line {n} of many" for n in range(20_000)])

    def stopped():
        """Queries beyond the two that a host runs at a time wait: the last one is stopped before its end."""
        ids = [logs.start_query(logGroupName=group, queryString="stats count(*) by @message", **span())["queryId"] for _ in range(8)]
        try:
            assert logs.stop_query(queryId=ids[-1])["success"] is True
        except ClientError as e:  # it had ended
            assert e.response["Error"]["Code"] == "InvalidParameterException", e
            return None
        finally:
            for i in ids:
                ended(logs, i)
        return ids

    ids = wait_for("a query that is stopped before its end", stopped, 60)
    assert logs.get_query_results(queryId=ids[-1])["status"] == "Cancelled"
    cancelled = logs.describe_queries(logGroupName=group, status="Cancelled")["queries"]
    assert ids[-1] in [q["queryId"] for q in cancelled] and cancelled[0]["queryString"] == "stats count(*) by @message"
    page = logs.describe_queries(logGroupName=group, maxResults=1)
    assert len(page["queries"]) == 1 and page["nextToken"]


def test_cli(server, logs, group):
    put(logs, group, ["alpha", "beta", "alpha"])
    of = ["--log-group-name", group, "--start-time", span()["startTime"], "--end-time", span()["endTime"]]
    started = server.cli("start-query", *of, "--query-string", "filter @message like 'alpha' | sort @timestamp", service="logs")["queryId"]

    def done():
        got = server.cli("get-query-results", "--query-id", started, service="logs")
        return got if got["status"] == "Complete" else None

    got = wait_for("the end of a query", done, 60)
    assert [r["@message"] for r in rows(got)] == ["alpha", "alpha"]
    record = server.cli("get-log-record", "--log-record-pointer", rows(got)[0]["@ptr"], service="logs")["logRecord"]
    assert record["@message"] == "alpha"
    assert started in [q["queryId"] for q in server.cli("describe-queries", "--log-group-name", group, service="logs")["queries"]]
    assert "MalformedQueryException" in server.cli("start-query", *of, "--query-string", "nonsense", service="logs", fails=True)
    put(logs, group, [f"line {n}" for n in range(20_000)])

    def stopped():
        ids = [logs.start_query(logGroupName=group, queryString="stats count(*) by @message", **span())["queryId"] for _ in range(16)]
        try:
            return server.cli("stop-query", "--query-id", ids[-1], service="logs")["success"]
        except AssertionError as e:  # it had ended
            assert "InvalidParameterException" in str(e)
            return None
        finally:
            for i in ids:
                ended(logs, i)

    assert wait_for("a query that is stopped before its end", stopped, 120) is True


def test_kurabe_query(server, logs, group):
    put(logs, group, [json.dumps({"n": n, "text": "a\tb\nc"}) for n in range(3)])
    env = {"KURABE_ENDPOINT": server.url, "AWS_ACCESS_KEY_ID": harness.ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": harness.SECRET_KEY, "PATH": "/usr/bin:/bin"}

    def run(*args):
        return subprocess.run([str(harness.BINARY), "query", *args], env=env, capture_output=True, text=True, timeout=90)

    done = run("--group", group, "sort n desc | display n, text")
    assert (done.returncode, done.stdout, done.stderr) == (0, "n\ttext\n2\ta b c\n1\ta b c\n0\ta b c\n", "")
    wrong = run("--group", group, "fields n | filtre x")
    assert wrong.returncode == 1 and wrong.stdout == "" and wrong.stderr.endswith("\n  fields n | filtre x\n             ^^^^^^\n")
    assert "no log of nobody is in a log group" in run("nobody", "fields n").stderr
