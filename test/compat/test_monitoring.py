"""CloudWatch: metrics of databases and of users, in JSON. Older clients are in test/clients."""

import datetime

import pytest

from harness import wait_for


@pytest.fixture(scope="session")
def monitoring(server):
    return server.client("cloudwatch")


def now():
    return datetime.datetime.now(datetime.UTC)


def lately(minutes=10):
    return {"StartTime": now() - datetime.timedelta(minutes=minutes), "EndTime": now() + datetime.timedelta(minutes=1)}


def of(name, instance, stat="Average", period=1, ident="m1", **more):
    dimensions = [{"Name": "DBInstanceIdentifier", "Value": instance}] if instance else []
    metric = {"Namespace": "AWS/RDS", "MetricName": name, "Dimensions": dimensions}
    return {"Id": ident, "MetricStat": {"Metric": metric, "Period": period, "Stat": stat}, **more}


def values(monitoring, *queries):
    return {r["Id"]: r["Values"] for r in monitoring.get_metric_data(MetricDataQueries=list(queries), **lately())["MetricDataResults"]}


def measured(monitoring, name, instance):
    """The values of each second, once there are some."""
    return wait_for(f"{name} of {instance}", lambda: values(monitoring, of(name, instance))["m1"], 120)


def test_an_instance_is_measured(monitoring, resident):
    name = resident.name
    cpu = measured(monitoring, "CPUUtilization", name)
    assert all(0 <= v <= 1000 for v in cpu)
    assert all(v > 0 for v in measured(monitoring, "FreeStorageSpace", name))
    assert all(v == int(v) for v in measured(monitoring, "DatabaseConnections", name))
    got = values(
        monitoring, of("CPUUtilization", name, "Minimum", 60, "least"), of("CPUUtilization", name, "p50", 60, "half"), of("CPUUtilization", name, "Maximum", 60, "most"),
        of("CPUUtilization", name, "SampleCount", 60, "count"), of("CPUUtilization", "never-made", ident="none"), of("Nonsense", name, ident="unknown"),
        {"Id": "spread", "Expression": "most - least", "Label": "spread"},
    )  # fmt: skip
    assert got["none"] == got["unknown"] == []
    assert all(a <= b <= c for a, b, c in zip(got["least"], got["half"], got["most"], strict=True))
    assert len(got["spread"]) == len(got["count"]) and all(0 < n <= 60 for n in got["count"])


def test_dimensions_are_listed(monitoring, resident):
    measured(monitoring, "CPUUtilization", resident.name)
    pages = monitoring.get_paginator("list_metrics").paginate(Namespace="AWS/RDS", MetricName="CPUUtilization", RecentlyActive="PT3H")
    sets = [{d["Name"]: d["Value"] for d in m["Dimensions"]} for page in pages for m in page["Metrics"]]
    wanted = [{}, {"DBInstanceIdentifier": resident.name}, {"EngineName": resident.engine.name}, {"DatabaseClass": resident.describe()["DBInstanceClass"]}]
    assert [s for s in wanted if s not in sets] == []
    for dimensions in wanted:
        query = of("CPUUtilization", None)
        query["MetricStat"]["Metric"]["Dimensions"] = [{"Name": k, "Value": v} for k, v in dimensions.items()]
        assert values(monitoring, query)["m1"], dimensions


def test_statistics(monitoring, resident):
    measured(monitoring, "FreeableMemory", resident.name)
    metric = {"Namespace": "AWS/RDS", "MetricName": "FreeableMemory", "Dimensions": [{"Name": "DBInstanceIdentifier", "Value": resident.name}]}
    got = monitoring.get_metric_statistics(**metric, **lately(), Period=60, Statistics=["Average", "SampleCount"])
    assert got["Label"] == "FreeableMemory" and got["Datapoints"]
    assert {p["Unit"] for p in got["Datapoints"]} == {"Bytes"} and all(p["Average"] > 0 for p in got["Datapoints"])
    got = monitoring.get_metric_statistics(**metric, **lately(), Period=60, ExtendedStatistics=["p99"])
    assert all(p["ExtendedStatistics"]["p99"] > 0 for p in got["Datapoints"])
    with pytest.raises(monitoring.exceptions.InvalidParameterCombinationException, match="exceeds the limit of 1440"):
        monitoring.get_metric_statistics(**metric, **lately(60), Period=1, Statistics=["Sum"])


def test_search(monitoring, resident):
    measured(monitoring, "CPUUtilization", resident.name)
    search = f"SEARCH('{{AWS/RDS,DBInstanceIdentifier}} MetricName=\"CPUUtilization\" \"{resident.name}\"', 'Average', 60)"
    (found,) = monitoring.get_metric_data(MetricDataQueries=[{"Id": "e1", "Expression": search}], **lately())["MetricDataResults"]
    assert found["Values"] and resident.name in found["Label"]


def test_own_metrics(monitoring):
    """A thousand data go compressed; what was put is read as it was, by its own dimensions."""
    at = now().replace(second=0, microsecond=0) - datetime.timedelta(minutes=2)
    page = [{"Name": "Page", "Value": "cart"}]
    data = [{"MetricName": "orders", "Value": n, "Timestamp": at, "Unit": "Count", "Dimensions": page} for n in range(998)]
    data.append({"MetricName": "orders", "Values": [1000.0, 2000.0], "Counts": [2.0, 1.0], "Timestamp": at, "Unit": "Count", "Dimensions": page})
    data.append({"MetricName": "orders", "StatisticValues": {"SampleCount": 2, "Sum": 5, "Minimum": 1, "Maximum": 4}, "Timestamp": at, "Unit": "Count", "Dimensions": page})
    monitoring.put_metric_data(Namespace="shop", MetricData=data)
    wish = {"Namespace": "shop", "MetricName": "orders", "Dimensions": page, **lately(), "Period": 60}
    statistics = ["Sum", "SampleCount", "Minimum", "Maximum"]
    (point,) = wait_for("own data", lambda: monitoring.get_metric_statistics(**wish, Statistics=statistics)["Datapoints"], 60)
    assert point == {"Timestamp": at, "Unit": "Count", "Sum": sum(range(998)) + 4005, "SampleCount": 1003, "Minimum": 0, "Maximum": 2000}
    assert monitoring.get_metric_statistics(**(wish | {"Dimensions": []}), Statistics=["Sum"])["Datapoints"] == []
    (listed,) = monitoring.list_metrics(Namespace="shop", MetricName="orders")["Metrics"]
    assert listed == {"Namespace": "shop", "MetricName": "orders", "Dimensions": page}


def test_refused(monitoring):
    for wish, error, text in [
        ({"MetricDataQueries": [{"Id": "e1", "Expression": "m1 +"}]}, "ValidationError", "Error in expression 'e1'"),
        ({"MetricDataQueries": [of("CPUUtilization", "x", period=7)]}, "ValidationError", "Period must be 1, 5, 10, 20, 30 or a multiple of 60"),
        ({"MetricDataQueries": [of("CPUUtilization", "x", stat="tm90")]}, "ValidationError", "trimmed statistics are not supported"),
        ({"MetricDataQueries": [of("CPUUtilization", "x")], "NextToken": "x"}, "InvalidNextToken", "NextToken is invalid"),
    ]:
        with pytest.raises(monitoring.exceptions.ClientError, match=text) as refused:
            monitoring.get_metric_data(**lately(), **wish)
        assert refused.value.response["Error"]["Code"] == error
    with pytest.raises(monitoring.exceptions.InvalidParameterValueException, match="The value AWS/RDS for parameter Namespace is invalid"):
        monitoring.put_metric_data(Namespace="AWS/RDS", MetricData=[{"MetricName": "m", "Value": 1}])
    with pytest.raises(monitoring.exceptions.ClientError, match="UnsupportedOperation.*charts are drawn by clients"):
        monitoring.get_metric_widget_image(MetricWidget="{}")


def test_with_the_cli(server, monitoring, resident):
    def cli(action, *args):
        return server.cli(action, *args, service="cloudwatch")

    measured(monitoring, "ReadIOPS", resident.name)
    begin, end = (t.isoformat() for t in lately().values())
    times, one = ("--start-time", begin, "--end-time", end), f"Name=DBInstanceIdentifier,Value={resident.name}"
    points = cli("get-metric-statistics", "--namespace", "AWS/RDS", "--metric-name", "ReadIOPS", "--dimensions", one, *times, "--period", 60, "--statistics", "Sum")
    assert points["Datapoints"] and points["Datapoints"][0]["Unit"] == "Count/Second"
    query = '[{"Id":"m1","MetricStat":{"Metric":{"Namespace":"AWS/RDS","MetricName":"ReadIOPS"},"Period":60,"Stat":"Sum"}}]'
    assert cli("get-metric-data", "--metric-data-queries", query, *times)["MetricDataResults"][0]["Values"]
    assert cli("list-metrics", "--namespace", "AWS/RDS", "--metric-name", "ReadIOPS", "--dimensions", one)["Metrics"]
    cli("put-metric-data", "--namespace", "by-cli", "--metric-name", "m", "--value", 1)
    wait_for("the metric", lambda: cli("list-metrics", "--namespace", "by-cli")["Metrics"], 60)
