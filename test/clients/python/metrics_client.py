"""Asks for the metrics of an instance, whatever the age of the SDK; prints what it has seen.

    metrics_client.py URL INSTANCE NAMESPACE
"""

import datetime
import json
import sys
import time

import boto3
import botocore

URL, INSTANCE, NAMESPACE = sys.argv[1:]
DEADLINE = time.monotonic() + 220

client = boto3.client("cloudwatch", endpoint_url=URL)
model = client.meta.service_model
now = datetime.datetime.now(datetime.timezone.utc)
minute = now.replace(second=0, microsecond=0)
times = {"StartTime": minute - datetime.timedelta(minutes=10), "EndTime": minute + datetime.timedelta(minutes=5)}
dimensions = [{"Name": "DBInstanceIdentifier", "Value": INSTANCE}]


def stat(ident, statistic, **more):
    metric = {"Namespace": "AWS/RDS", "MetricName": "CPUUtilization", "Dimensions": dimensions}
    return {"Id": ident, "MetricStat": {"Metric": metric, "Period": 1, "Stat": statistic}, **more}


def until(ask):
    while not (answer := ask()):
        assert time.monotonic() < DEADLINE, "no data"
        time.sleep(0.2)
    return answer


def data(*queries, **more):
    return client.get_metric_data(MetricDataQueries=list(queries), **times, **more)


def refusal(ask):
    try:
        ask()
    except client.exceptions.ClientError as e:
        return [type(e).__name__, e.response["Error"]["Code"]]


until(lambda: len(data(stat("m1", "Average"))["MetricDataResults"][0]["Values"]) >= 3)
pages = client.get_paginator("get_metric_data").paginate(
    MetricDataQueries=[stat("m1", "Average", ReturnData=False), {"Id": "e1", "Expression": "m1 * 0 + 1"}], MaxDatapoints=2, ScanBy="TimestampAscending",
    StartTime=times["StartTime"], EndTime=now + datetime.timedelta(minutes=5),
)  # fmt: skip
seen = [(t, v) for page in pages for r in page["MetricDataResults"] for t, v in zip(r["Timestamps"], r["Values"])]
client.put_metric_data(
    Namespace=NAMESPACE,
    MetricData=[{"MetricName": "m", "Value": n, "Timestamp": minute, "Unit": "Count", "Dimensions": [{"Name": "a", "Value": "1"}]} for n in range(1000)],
)
own = {"Namespace": NAMESPACE, "MetricName": "m", "Dimensions": [{"Name": "a", "Value": "1"}], "Period": 60, **times}
(point,) = until(lambda: client.get_metric_statistics(Statistics=["Sum", "SampleCount"], **own)["Datapoints"])


def watched():
    """An alarm on the metric that was put, in all its forms, until it has been evaluated."""
    metric = {"Namespace": NAMESPACE, "MetricName": "m", "Dimensions": [{"Name": "a", "Value": "1"}]}
    watch = {"EvaluationPeriods": 10, "DatapointsToAlarm": 1, "Threshold": 900.5, "ComparisonOperator": "GreaterThanThreshold", "TreatMissingData": "ignore"}
    client.put_metric_alarm(AlarmName=NAMESPACE, **metric, Statistic="Maximum", Period=60, **watch)
    queries = [{"Id": "m1", "MetricStat": {"Metric": metric, "Period": 60, "Stat": "p50"}, "ReturnData": False}, {"Id": "e1", "Expression": "m1 * 2", "ReturnData": True}]
    client.put_metric_alarm(AlarmName=NAMESPACE + "-math", Metrics=queries, **watch)

    def alarms():
        return client.describe_alarms(AlarmNamePrefix=NAMESPACE)["MetricAlarms"]

    until(lambda: all(a["StateValue"] == "ALARM" for a in alarms()))
    single, math = alarms()
    states = client.describe_alarm_history(AlarmName=NAMESPACE, HistoryItemType="StateUpdate")["AlarmHistoryItems"]
    client.delete_alarms(AlarmNames=[single["AlarmName"], math["AlarmName"]])
    new = json.loads(states[0]["HistoryData"])["newState"]
    return [single["Dimensions"], single["Threshold"], single["ActionsEnabled"], math["Metrics"] == queries, len(states), new["stateReasonData"]["recentDatapoints"], alarms()]


alarm = watched()
print(
    json.dumps(
        {
            "protocol": getattr(model, "resolved_protocol", model.metadata["protocol"]),
            "botocore": botocore.__version__,
            "ascending": [t for t, _ in seen] == sorted({t for t, _ in seen}) and len(seen) >= 3,
            "values": sorted({v for _, v in seen}),
            "own": [point["Sum"], point["SampleCount"], point["Unit"], point["Timestamp"] == minute],
            "listed": client.list_metrics(Namespace=NAMESPACE)["Metrics"],
            "alarm": alarm,
            "refused": [
                refusal(lambda: client.put_metric_data(Namespace="AWS/x", MetricData=[{"MetricName": "m", "Value": 1}])),
                refusal(lambda: data(stat("m1", "Average"), NextToken="x")),
                refusal(lambda: data({"Id": "e1", "Expression": "m1 +"}))[1:],
                refusal(client.list_dashboards),
                refusal(lambda: client.set_alarm_state(AlarmName="absent", StateValue="OK", StateReason="x")),
            ],
        }
    )
)
