"""Performance Insights: database load by what sessions wait for, by whom, and by statement."""

import datetime
import json
import threading

import pytest
from botocore.exceptions import ClientError

import instances
from harness import wait_for


@pytest.fixture(scope="session")
def pi(server):
    return server.client("pi")


@pytest.fixture(scope="module")
def loaded(server, engine):
    """An instance whose load is kept, with one session that sleeps for an hour."""
    db = instances.create(server, engine, EnablePerformanceInsights=True)
    assert db.describe()["PerformanceInsightsEnabled"] is True and db.describe()["PerformanceInsightsRetentionPeriod"] == 7
    sleep = {"postgres": "SELECT pg_sleep(3600)", "mariadb": "SELECT SLEEP(3600)"}[engine.name]

    def run():
        try:
            with db.connect() as connection:
                connection.cursor().execute(sleep)
        except Exception:  # the instance is deleted below it
            pass

    threading.Thread(target=run, daemon=True).start()
    yield db
    db.delete()


def now():
    return datetime.datetime.now(datetime.UTC)


def at(db, seconds=600, **more):
    return {"ServiceType": "RDS", "Identifier": db.describe()["DbiResourceId"], "StartTime": now() - datetime.timedelta(seconds=seconds), "EndTime": now(), **more}


def keys(pi, db, group, **more):
    return pi.describe_dimension_keys(**at(db, Metric="db.load.avg", GroupBy={"Group": group}, PeriodInSeconds=1, **more))


def sleeping(pi, db):
    def find():
        found = [k for k in keys(pi, db, "db.sql_tokenized")["Keys"] if "sleep" in k["Dimensions"].get("db.sql_tokenized.statement", "").lower()]
        return found[0] if found else None

    return wait_for("the load of the session that sleeps", find, 60)


def test_load_by_any_group(pi, loaded):
    key = sleeping(pi, loaded)
    statement = {"postgres": "SELECT pg_sleep(?)", "mariadb": "SELECT SLEEP(?)"}[loaded.engine.name]
    assert key["Dimensions"]["db.sql_tokenized.statement"] == statement and 0 < key["Total"] <= 1
    (user,) = [k for k in keys(pi, loaded, "db.user")["Keys"] if k["Dimensions"].get("db.user.name") == loaded.user]
    assert user["Total"] >= key["Total"]
    assert "app" in {k["Dimensions"].get("db.name") for k in keys(pi, loaded, "db")["Keys"]}
    for group in ["db.wait_event", "db.wait_event_type", "db.host", "db.session_type", "db.sql"]:
        assert keys(pi, loaded, group)["Keys"], group
    # A second group divides the first one's load, and a filter keeps a part of it.
    parts = keys(pi, loaded, "db.sql_tokenized", PartitionBy={"Group": "db.wait_event"}, Filter={"db.user.name": loaded.user})
    slept = next(k for k in parts["Keys"] if k["Dimensions"]["db.sql_tokenized.statement"] == statement)
    assert len(slept["Partitions"]) == len(parts["PartitionKeys"]) and abs(sum(slept["Partitions"]) - slept["Total"]) < 1e-9
    assert keys(pi, loaded, "db.user", Filter={"db.user.name": "nobody"})["Keys"] == []
    details = pi.get_dimension_key_details(
        ServiceType="RDS", Identifier=loaded.describe()["DbiResourceId"], Group="db.sql_tokenized", GroupIdentifier=key["Dimensions"]["db.sql_tokenized.id"]
    )
    assert details["Dimensions"] == [{"Value": statement, "Dimension": "db.sql_tokenized.statement", "Status": "AVAILABLE"}]


def test_load_over_time(pi, loaded):
    sleeping(pi, loaded)
    queries = [{"Metric": "db.load.avg"}, {"Metric": "db.load.avg", "GroupBy": {"Group": "db.user", "Limit": 3}}]
    got = pi.get_resource_metrics(**at(loaded, 60, MetricQueries=queries, PeriodInSeconds=1))
    alone, whole, *users = got["MetricList"]
    assert alone["Key"] == whole["Key"] == {"Metric": "db.load.avg"} and alone["DataPoints"] == whole["DataPoints"]
    assert users[0]["Key"]["Dimensions"]["db.user.name"] == loaded.user
    seconds = [p["Timestamp"] for p in alone["DataPoints"]]
    assert seconds == sorted(set(seconds)) and all(p["Value"] >= 0 for p in alone["DataPoints"])
    minutes = pi.get_resource_metrics(**at(loaded, 3600, MetricQueries=queries[:1], PeriodInSeconds=60))["MetricList"][0]["DataPoints"]
    assert minutes and all(p["Timestamp"].second == 0 for p in minutes)


def test_what_is_available(pi, loaded):
    ident = {"ServiceType": "RDS", "Identifier": loaded.describe()["DbiResourceId"]}
    (load,) = pi.list_available_resource_dimensions(**ident, Metrics=["db.load"])["MetricDimensions"]
    assert {"db.wait_event", "db.sql_tokenized", "db.user", "db.host", "db", "db.application"} <= {g["Group"] for g in load["Groups"]}
    assert "db.load" in {m["Metric"] for m in pi.list_available_resource_metrics(**ident, MetricTypes=["db"])["Metrics"]}


CALLS, LATENCY, ROWS = (f"db.sql_tokenized.stats.{name}.avg" for name in ["calls_per_sec", "avg_latency_per_call", "rows_per_call"])


def test_counters_of_statements(server, pi, loaded, engine):
    ident = {"ServiceType": "RDS", "Identifier": loaded.describe()["DbiResourceId"]}

    def listed():
        found = pi.list_available_resource_metrics(**ident, MetricTypes=["db.sql_tokenized.stats"])["Metrics"]
        return {m["Metric"] + ".avg" for m in found}

    if engine.name != "postgres":
        assert listed() == set() and pi.get_resource_metadata(**ident)["Features"]["SQL_STATISTICS"]["Status"] == "UNSUPPORTED"
        refused(lambda: keys(pi, loaded, "db.sql_tokenized", AdditionalMetrics=[CALLS]), "InvalidArgumentException", CALLS)
        return
    done = threading.Event()

    def run():
        with loaded.connect() as connection:
            cursor = connection.cursor()
            while not done.is_set():
                cursor.execute("SELECT generate_series(1, 4), pg_sleep(0.1)")
                cursor.fetchall()

    runner = threading.Thread(target=run, daemon=True)
    runner.start()

    def counted():
        found = keys(pi, loaded, "db.sql_tokenized", AdditionalMetrics=[CALLS, LATENCY, ROWS])["Keys"]
        return [k for k in found if "generate_series" in k["Dimensions"].get("db.sql_tokenized.statement", "") and k.get("AdditionalMetrics", {}).get(CALLS)]

    try:
        (key,) = wait_for("the counters of a statement", counted, 240)
    finally:
        done.set()
        runner.join()
    # Four rows, each after a tenth of a second.
    assert key["AdditionalMetrics"][ROWS] == 4 and key["AdditionalMetrics"][LATENCY] >= 400 and 0 < key["AdditionalMetrics"][CALLS] < 2.5
    assert {CALLS, LATENCY, ROWS} <= listed() and pi.get_resource_metadata(**ident)["Features"]["SQL_STATISTICS"]["Status"] == "ENABLED"
    group = {"Group": "db.sql_tokenized"}
    got = pi.get_resource_metrics(**at(loaded, MetricQueries=[{"Metric": CALLS, "GroupBy": group}], PeriodInSeconds=60))["MetricList"]
    (points,) = [m["DataPoints"] for m in got if m["Key"]["Dimensions"]["db.sql_tokenized.id"] == key["Dimensions"]["db.sql_tokenized.id"]]
    assert points and all(p["Timestamp"].second == 0 for p in points) and 0 < max(p["Value"] for p in points) < 2.5
    # One that does not end has not been counted yet.
    assert sleeping(pi, loaded)["Dimensions"]["db.sql_tokenized.id"] in {m["Key"]["Dimensions"]["db.sql_tokenized.id"] for m in got}
    bad = "InvalidArgumentException"
    refused(lambda: keys(pi, loaded, "db.user", AdditionalMetrics=[CALLS]), bad, "db.sql_tokenized")
    refused(lambda: pi.get_resource_metrics(**at(loaded, MetricQueries=[{"Metric": CALLS}])), bad, "GroupBy")
    refused(lambda: keys(pi, loaded, "db.sql_tokenized", AdditionalMetrics=["db.sql_tokenized.stats.calls_per_sec.max"]), bad, "AdditionalMetrics")
    of = ["--service-type", "RDS", "--identifier", ident["Identifier"]]
    assert server.cli("list-available-resource-metrics", *of, "--metric-types", "db.sql_tokenized.stats", service="pi")["Metrics"]


def test_command_line(server, pi, loaded):
    sleeping(pi, loaded)
    a = at(loaded)
    got = server.cli(
        "describe-dimension-keys", "--service-type", "RDS", "--identifier", a["Identifier"], "--metric", "db.load.avg", "--start-time", a["StartTime"].isoformat(),
        "--end-time", a["EndTime"].isoformat(), "--group-by", json.dumps({"Group": "db.user"}), service="pi",
    )  # fmt: skip
    assert loaded.user in {k["Dimensions"].get("db.user.name") for k in got["Keys"]}
    of = ["--service-type", "RDS", "--identifier", a["Identifier"]]

    def cli(action, *args):
        return server.cli(action, *of, *args, service="pi")

    points = cli("get-resource-metrics", "--metric-queries", '[{"Metric": "db.load.avg"}]', "--start-time", a["StartTime"].isoformat(), "--end-time", a["EndTime"].isoformat())
    assert points["MetricList"][0]["DataPoints"]
    ident = sleeping(pi, loaded)["Dimensions"]["db.sql_tokenized.id"]
    (text,) = cli("get-dimension-key-details", "--group", "db.sql_tokenized", "--group-identifier", ident)["Dimensions"]
    assert "sleep" in text["Value"].lower()
    assert cli("get-resource-metadata")["Features"]["PERFORMANCE_INSIGHTS"]["Status"] == "ENABLED"
    assert cli("list-available-resource-dimensions", "--metrics", "db.load")["MetricDimensions"]
    assert cli("list-available-resource-metrics", "--metric-types", "db")["Metrics"]


def refused(call, code, *words):
    with pytest.raises(ClientError) as e:
        call()
    said = e.value.response["Error"]
    assert said["Code"] == code and all(w in said["Message"] for w in words), said


def test_refusals(pi, loaded, server, engine):
    bad = "InvalidArgumentException"
    refused(lambda: pi.describe_dimension_keys(**{**at(loaded), "Identifier": "db-NEVER"}, Metric="db.load.avg", GroupBy={"Group": "db.user"}), "NotAuthorizedException", "db-NEVER")
    refused(lambda: keys(pi, loaded, "db.color"), bad, "db.color")
    refused(lambda: keys(pi, loaded, "db.user", Filter={"db.color.name": "red"}), bad, "db.color.name")
    refused(lambda: keys(pi, loaded, "db.user", AdditionalMetrics=["db.sql.stats.calls_per_sec.avg"]), bad, "AdditionalMetrics")
    refused(lambda: pi.get_resource_metrics(**at(loaded, MetricQueries=[{"Metric": "os.cpu"}])), bad, "os.cpu")
    refused(lambda: pi.get_resource_metrics(**at(loaded, MetricQueries=[{"Metric": "db.load.avg"}], PeriodInSeconds=7)), bad, "PeriodInSeconds")
    refused(lambda: pi.get_resource_metrics(**at(loaded, 9 * 86400, MetricQueries=[{"Metric": "db.load.avg"}])), bad, "7 days")
    loaded.modify(EnablePerformanceInsights=False, PerformanceInsightsRetentionPeriod=7)  # as Terraform's provider does
    refused(lambda: keys(pi, loaded, "db.user"), bad, "EnablePerformanceInsights")
    loaded.modify(EnablePerformanceInsights=True, PerformanceInsightsRetentionPeriod=7)
    assert keys(pi, loaded, "db.user")["Keys"]
