"""Alarms of metrics: written, evaluated, listed, silenced and told of in the history."""

import datetime
import json

import pytest

import harness
from harness import wait_for
from test_sns import Subscriber, open_link

TOPIC = f"arn:aws:sns:{harness.REGION}:{harness.ACCOUNT}:no-such-topic"
EVALUATED = 240  # seconds within which an alarm surely has its turn


@pytest.fixture(scope="module")
def monitoring(server):
    return server.client("cloudwatch")


def wish(name, **more):
    return {
        "AlarmName": name, "Namespace": "alarms", "MetricName": name, "Statistic": "Maximum", "Period": 10, "EvaluationPeriods": 1, "Threshold": 5.0,
        "ComparisonOperator": "GreaterThanThreshold", "AlarmActions": [TOPIC],
    } | more  # fmt: skip


def alarm(monitoring, name):
    (found,) = monitoring.describe_alarms(AlarmNames=[name])["MetricAlarms"]
    return found


def measure(monitoring, name, value):
    monitoring.put_metric_data(Namespace="alarms", MetricData=[{"MetricName": name, "Value": value, "StorageResolution": 1}])


def wait_state(monitoring, name, state, keep=None):
    def reached():
        if keep is not None:
            measure(monitoring, name, keep)
        found = alarm(monitoring, name)
        return found if found["StateValue"] == state else None

    return wait_for(f"{name} in {state}", reached, EVALUATED)


def history(monitoring, name, kind=None):
    pages = monitoring.get_paginator("describe_alarm_history").paginate(AlarmName=name, ScanBy="TimestampAscending", **({"HistoryItemType": kind} if kind else {}))
    return [i for page in pages for i in page["AlarmHistoryItems"]]


@pytest.fixture
def heard(server):
    """A topic, and its subscriber over HTTP."""
    sns, subscriber = server.client("sns"), Subscriber()
    topic = sns.create_topic(Name="alarms-heard")["TopicArn"]
    sns.subscribe(TopicArn=topic, Protocol="http", Endpoint=subscriber.url + "/alarms")
    open_link(subscriber.one("/alarms", "SubscriptionConfirmation")["SubscribeURL"])
    yield topic, lambda: subscriber.documents("/alarms", "Notification")
    sns.delete_topic(TopicArn=topic)
    subscriber.server.shutdown()


def test_life(monitoring, heard):
    """A measured value crosses a threshold and comes back: state, history, and a subscriber that hears each change once."""
    topic, notifications = heard
    name = "life/of an alarm"
    monitoring.put_metric_alarm(**wish(name, AlarmActions=[TOPIC, topic], OKActions=[topic], AlarmDescription="too much", TreatMissingData="notBreaching", DatapointsToAlarm=1, Unit="None", Tags=[{"Key": "a", "Value": "1"}]))
    made = alarm(monitoring, name)
    assert made["StateValue"] == "INSUFFICIENT_DATA" and made["StateReason"] == "Unchecked: Initial alarm creation" or made["StateValue"] == "OK"
    assert made["AlarmArn"] == f"arn:aws:cloudwatch:{harness.REGION}:{harness.ACCOUNT}:alarm:{name}"
    assert {k: made[k] for k in ("Threshold", "Period", "EvaluationPeriods", "DatapointsToAlarm", "Statistic", "Unit", "TreatMissingData", "AlarmDescription", "ActionsEnabled")} == {
        "Threshold": 5.0, "Period": 10, "EvaluationPeriods": 1, "DatapointsToAlarm": 1, "Statistic": "Maximum", "Unit": "None", "TreatMissingData": "notBreaching",
        "AlarmDescription": "too much", "ActionsEnabled": True,
    }  # fmt: skip
    assert (made["AlarmActions"], made["OKActions"], made["InsufficientDataActions"]) == ([TOPIC, topic], [topic], [])
    wait_state(monitoring, name, "OK")
    high = wait_state(monitoring, name, "ALARM", keep=7)
    assert high["StateReason"].startswith("Threshold Crossed: 1 out of the last 1 datapoints [7.0 (")
    data = json.loads(high["StateReasonData"])
    assert data["recentDatapoints"] == [7.0] and data["threshold"] == 5.0 and data["statistic"] == "Maximum" and data["period"] == 10
    low = wait_state(monitoring, name, "OK")
    assert "missing datapoint was treated as [NonBreaching]" in low["StateReason"]
    states = [json.loads(i["HistoryData"]) for i in history(monitoring, name, "StateUpdate")]
    assert [(s["oldState"]["stateValue"], s["newState"]["stateValue"]) for s in states] == [("INSUFFICIENT_DATA", "OK"), ("OK", "ALARM"), ("ALARM", "OK")]
    acted = sorted(i["HistorySummary"] for i in history(monitoring, name, "Action"))
    assert acted[0].startswith("Failed to execute action") and TOPIC in acted[0]
    assert acted[1:] == [f"Successfully executed action {topic}"] * 3
    told = wait_for("three notifications", lambda: notifications() if len(notifications()) >= 3 else None, 60)
    messages = [json.loads(d["Message"]) for d in told]
    assert [(m["OldStateValue"], m["NewStateValue"]) for m in messages] == [("INSUFFICIENT_DATA", "OK"), ("OK", "ALARM"), ("ALARM", "OK")]
    assert told[1]["Subject"].startswith(f'ALARM: "{name}" in ') and messages[1]["AlarmName"] == name and messages[1]["Trigger"]["MetricName"] == name
    monitoring.delete_alarms(AlarmNames=[name])
    assert monitoring.describe_alarms(AlarmNames=[name])["MetricAlarms"] == []
    configured = history(monitoring, name, "ConfigurationUpdate")
    assert [i["HistorySummary"] for i in configured] == [f'Alarm "{name}" created', f'Alarm "{name}" deleted']
    assert json.loads(configured[0]["HistoryData"])["createdAlarm"]["threshold"] == 5.0


def test_a_metric_of_a_database(monitoring, resident):
    """Metric math over what every database has; the last minutes are enough to know it."""
    stat = {"Metric": {"Namespace": "AWS/RDS", "MetricName": "FreeStorageSpace", "Dimensions": [{"Name": "DBInstanceIdentifier", "Value": resident.name}]}, "Period": 10, "Stat": "Minimum"}
    queries = [{"Id": "m1", "MetricStat": stat, "ReturnData": False}, {"Id": "e1", "Expression": "m1 / 1024", "Label": "KiB", "ReturnData": True}]
    monitoring.put_metric_alarm(AlarmName="space", Metrics=queries, EvaluationPeriods=2, DatapointsToAlarm=1, Threshold=1, ComparisonOperator="GreaterThanThreshold")
    found = wait_state(monitoring, "space", "ALARM")
    assert found["Metrics"] == queries and "Statistic" not in found and "Period" not in found
    single = {"Namespace": "AWS/RDS", "MetricName": "FreeStorageSpace", "Dimensions": stat["Metric"]["Dimensions"]}
    monitoring.put_metric_alarm(AlarmName="space-single", **single, ExtendedStatistic="p50", Period=10, EvaluationPeriods=5, Threshold=1, ComparisonOperator="LessThanOrEqualToThreshold", EvaluateLowSampleCountPercentile="ignore")  # fmt: skip
    assert [a["AlarmName"] for a in monitoring.describe_alarms_for_metric(**single)["MetricAlarms"]] == ["space-single"]
    assert monitoring.describe_alarms_for_metric(**single, Statistic="Sum")["MetricAlarms"] == []
    assert wait_state(monitoring, "space-single", "OK")["ExtendedStatistic"] == "p50"
    monitoring.delete_alarms(AlarmNames=["space", "space-single"])


def test_set_silenced_and_tagged(monitoring):
    name = "set"
    monitoring.put_metric_alarm(**wish(name, Period=3600, Tags=[{"Key": "a", "Value": "1"}]))
    monitoring.set_alarm_state(AlarmName=name, StateValue="ALARM", StateReason="a test", StateReasonData='{"by":"hand"}')
    found = alarm(monitoring, name)
    assert (found["StateValue"], found["StateReason"], found["StateReasonData"]) == ("ALARM", "a test", '{"by":"hand"}')
    monitoring.disable_alarm_actions(AlarmNames=[name])
    assert alarm(monitoring, name)["ActionsEnabled"] is False
    acted = len(history(monitoring, name, "Action"))
    monitoring.set_alarm_state(AlarmName=name, StateValue="OK", StateReason="silent")
    monitoring.set_alarm_state(AlarmName=name, StateValue="ALARM", StateReason="silent")
    assert len(history(monitoring, name, "Action")) == acted == 1
    monitoring.enable_alarm_actions(AlarmNames=[name])
    assert alarm(monitoring, name)["ActionsEnabled"] is True
    arn = found["AlarmArn"]
    monitoring.tag_resource(ResourceARN=arn, Tags=[{"Key": "b", "Value": "2"}])
    assert monitoring.list_tags_for_resource(ResourceARN=arn)["Tags"] == [{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}]
    monitoring.untag_resource(ResourceARN=arn, TagKeys=["a"])
    assert monitoring.list_tags_for_resource(ResourceARN=arn)["Tags"] == [{"Key": "b", "Value": "2"}]
    monitoring.delete_alarms(AlarmNames=[name])


def test_pages(monitoring):
    names = [f"page-{n:03}" for n in range(7)]
    for name in names:
        monitoring.put_metric_alarm(**wish(name))
    pages = list(monitoring.get_paginator("describe_alarms").paginate(AlarmNamePrefix="page-", PaginationConfig={"PageSize": 3}))
    assert [len(p["MetricAlarms"]) for p in pages] == [3, 3, 1] and [a["AlarmName"] for p in pages for a in p["MetricAlarms"]] == names
    assert len(monitoring.describe_alarms(ActionPrefix=TOPIC, AlarmNamePrefix="page-")["MetricAlarms"]) == 7
    assert monitoring.describe_alarms(AlarmTypes=["CompositeAlarm"])["CompositeAlarms"] == []
    begin = datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=1)
    entries = monitoring.describe_alarm_history(StartDate=begin, MaxRecords=5)["AlarmHistoryItems"]
    assert len(entries) == 5 and [e["Timestamp"] for e in entries] == sorted((e["Timestamp"] for e in entries), reverse=True)
    monitoring.delete_alarms(AlarmNames=names)


def test_refused(monitoring):
    for more, text in [
        ({"Period": 15}, "Period must be 10, 20, 30 or a multiple of 60"),
        ({"EvaluationPeriods": 10000}, "more than 86400 seconds"),
        ({"AlarmActions": ["arn:aws:automate:us-east-1:ec2:stop"]}, "actions of EC2, Auto Scaling, Lambda"),
        ({"ComparisonOperator": "GreaterThanUpperThreshold"}, "no anomaly detection"),
        ({"TreatMissingData": "sometimes"}, "TreatMissingData"),
    ]:
        with pytest.raises(monitoring.exceptions.ClientError, match=f"ValidationError.*{text}"):
            monitoring.put_metric_alarm(**wish("refused", **more))
    with pytest.raises(monitoring.exceptions.ResourceNotFound):
        monitoring.set_alarm_state(AlarmName="absent", StateValue="OK", StateReason="x")
    monitoring.delete_alarms(AlarmNames=["absent"])  # one that is gone is no error
    with pytest.raises(monitoring.exceptions.ResourceNotFoundException):
        monitoring.list_tags_for_resource(ResourceARN=f"arn:aws:cloudwatch:{harness.REGION}:{harness.ACCOUNT}:alarm:absent")
    with pytest.raises(monitoring.exceptions.ClientError, match="UnsupportedOperation.*alarms watch metrics, not other alarms"):
        monitoring.put_composite_alarm(AlarmName="c", AlarmRule="ALARM(x)")


def test_with_the_cli(server):
    def cli(action, *args):
        return server.cli(action, *args, service="cloudwatch")

    metric = ("--namespace", "alarms", "--metric-name", "by-cli")
    cli("put-metric-alarm", "--alarm-name", "by-cli", *metric, "--statistic", "Average", "--period", 60, "--evaluation-periods", 2, "--threshold", 1, "--comparison-operator", "LessThanThreshold", "--tags", "Key=a,Value=1")  # fmt: skip
    (found,) = cli("describe-alarms", "--alarm-names", "by-cli")["MetricAlarms"]
    assert found["Threshold"] == 1.0
    cli("set-alarm-state", "--alarm-name", "by-cli", "--state-value", "OK", "--state-reason", "x")
    cli("disable-alarm-actions", "--alarm-names", "by-cli")
    cli("enable-alarm-actions", "--alarm-names", "by-cli")
    assert cli("describe-alarms-for-metric", *metric)["MetricAlarms"][0]["ActionsEnabled"] is True
    cli("tag-resource", "--resource-arn", found["AlarmArn"], "--tags", "Key=b,Value=2")
    cli("untag-resource", "--resource-arn", found["AlarmArn"], "--tag-keys", "a")
    assert cli("list-tags-for-resource", "--resource-arn", found["AlarmArn"])["Tags"] == [{"Key": "b", "Value": "2"}]
    assert any("updated from" in i["HistorySummary"] for i in cli("describe-alarm-history", "--alarm-name", "by-cli")["AlarmHistoryItems"])
    cli("delete-alarms", "--alarm-names", "by-cli")
