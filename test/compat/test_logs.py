"""CloudWatch Logs: groups, streams, events that are put, read and filtered."""

import json
import time

import pytest
from botocore.exceptions import ClientError

import harness
from harness import wait_for


@pytest.fixture(scope="session")
def logs(server):
    return server.client("logs")


def now():
    return int(time.time() * 1000)


def batch(*messages, at=None):
    at = at or now()
    return [{"timestamp": at + n, "message": m} for n, m in enumerate(messages)]


@pytest.fixture
def group(logs, request):
    name = "/compat/" + request.node.name
    logs.create_log_group(logGroupName=name, tags={"team": "a"})
    logs.create_log_stream(logGroupName=name, logStreamName="web/1")
    yield name
    try:
        logs.delete_log_group(logGroupName=name)
    except logs.exceptions.ResourceNotFoundException:
        pass


def arn(group):
    return f"arn:aws:logs:{harness.REGION}:{harness.ACCOUNT}:log-group:{group}"


def test_groups(logs, group):
    with pytest.raises(logs.exceptions.ResourceAlreadyExistsException):
        logs.create_log_group(logGroupName=group)
    (found,) = logs.describe_log_groups(logGroupNamePrefix=group)["logGroups"]
    assert found["arn"] == arn(group) + ":*" and found["logGroupArn"] == arn(group) and "retentionInDays" not in found
    assert group in [g["logGroupName"] for p in logs.get_paginator("describe_log_groups").paginate(limit=1) for g in p["logGroups"]]
    logs.put_retention_policy(logGroupName=group, retentionInDays=30)
    assert logs.describe_log_groups(logGroupNamePattern=group[1:].upper())["logGroups"][0]["retentionInDays"] == 30
    logs.delete_retention_policy(logGroupName=group)
    logs.tag_log_group(logGroupName=group, tags={"env": "test"})
    logs.tag_resource(resourceArn=arn(group), tags={"team": "b"})
    assert logs.list_tags_log_group(logGroupName=group)["tags"] == {"team": "b", "env": "test"}
    logs.untag_log_group(logGroupName=group, tags=["env"])
    logs.untag_resource(resourceArn=arn(group), tagKeys=["team"])
    assert logs.list_tags_for_resource(resourceArn=arn(group))["tags"] == {}
    logs.put_log_group_deletion_protection(logGroupIdentifier=group, deletionProtectionEnabled=True)
    with pytest.raises(ClientError, match="deletion protection"):
        logs.delete_log_group(logGroupName=group)
    logs.put_log_group_deletion_protection(logGroupIdentifier=group, deletionProtectionEnabled=False)
    logs.delete_log_group(logGroupName=group)
    with pytest.raises(logs.exceptions.ResourceNotFoundException):
        logs.delete_log_group(logGroupName=group)
    with pytest.raises(ClientError, match="UnsupportedOperation.*no metrics are made of log events"):
        logs.describe_metric_filters()


def test_streams(logs, group):
    for name in ("web/2", "db"):
        logs.create_log_stream(logGroupName=group, logStreamName=name)
    logs.put_log_events(logGroupName=group, logStreamName="web/2", logEvents=batch("x"))

    def names(**more):
        pages = logs.get_paginator("describe_log_streams").paginate(logGroupName=group, limit=1, **more)
        return [s["logStreamName"] for p in pages for s in p["logStreams"]]

    assert names() == ["db", "web/1", "web/2"]
    assert names(logStreamNamePrefix="web", descending=True) == ["web/2", "web/1"]
    assert names(orderBy="LastEventTime", descending=True)[0] == "web/2"
    logs.delete_log_stream(logGroupName=group, logStreamName="web/2")
    assert names() == ["db", "web/1"]


def test_events(logs, group):
    at = now() - 10_000
    rubbish = "".join(map(chr, range(1, 256))) + "\x00 \ud7ff"
    logs.put_log_events(logGroupName=group, logStreamName="web/1", logEvents=batch("a", rubbish, "two\nlines", at=at))
    with pytest.raises(logs.exceptions.InvalidParameterException, match="chronological order"):
        logs.put_log_events(logGroupName=group, logStreamName="web/1", logEvents=[*batch("b", at=at + 1), *batch("a", at=at)])
    rejected = logs.put_log_events(logGroupName=group, logStreamName="web/1", logEvents=batch("old", at=at - 20 * 86400_000))
    assert rejected["rejectedLogEventsInfo"] == {"tooOldLogEventEndIndex": 1}
    got = logs.get_log_events(logGroupName=group, logStreamName="web/1", startFromHead=True)
    assert [e["message"] for e in got["events"]] == ["a", rubbish, "two\nlines"] and got["events"][0]["timestamp"] == at
    again = logs.get_log_events(logGroupIdentifier=arn(group), logStreamName="web/1", nextToken=got["nextForwardToken"])
    assert again["events"] == [] and again["nextForwardToken"] == got["nextForwardToken"]
    back = logs.get_log_events(logGroupName=group, logStreamName="web/1", limit=1)
    assert [e["message"] for e in back["events"]] == ["two\nlines"]
    back = logs.get_log_events(logGroupName=group, logStreamName="web/1", limit=1, nextToken=back["nextBackwardToken"])
    assert [e["message"] for e in back["events"]] == [rubbish]


def test_filter(logs, group):
    at = now() - 10_000
    logs.put_log_events(logGroupName=group, logStreamName="web/1", logEvents=batch('{"status": 503, "path": "/api/x"}', "10.0.0.1 ada 404 17", "ERROR at last", at=at))

    def found(pattern, **more):
        pages = logs.get_paginator("filter_log_events").paginate(logGroupName=group, filterPattern=pattern, limit=1, **more)
        return [e["message"][:5] for p in pages for e in p["events"]]

    assert found("") == ['{"sta', "10.0.", "ERROR"]
    assert found('{ $.status > 499 && $.path = "/api/*" }') == ['{"sta']
    assert found("[ip, user, status = 4*, bytes]") == ["10.0."]
    assert found("?ERROR ?WARN -first", startTime=at, endTime=at + 2) == ["ERROR"]
    assert found("ERROR", logStreamNames=["web/1"]) == ["ERROR"] and found("ERROR", logStreamNamePrefix="db") == []
    with pytest.raises(logs.exceptions.InvalidParameterException, match="Invalid filter pattern"):
        found("{ $.status }")


def test_a_burst(logs, group):
    logs.put_log_events(logGroupName=group, logStreamName="web/1", logEvents=batch(*(f"event {n}" for n in range(10_000)), at=now() - 20_000))
    pages = logs.get_paginator("filter_log_events").paginate(logGroupName=group)
    assert [e["message"] for p in pages for e in p["events"]] == [f"event {n}" for n in range(10_000)]


def test_an_exported_log_has_a_group(rds, logs, engine, resident):
    types = {"postgres": ["postgresql"], "mariadb": ["error"]}[engine.name]
    name = f"/aws/rds/instance/{resident.name}/{types[0]}"
    resident.modify(CloudwatchLogsExportConfiguration={"EnableLogTypes": types})
    try:
        rds.reboot_db_instance(DBInstanceIdentifier=resident.name)
        wait_for("the group", lambda: logs.describe_log_groups(logGroupNamePrefix=name)["logGroups"], 120)
        wait_for("an event", lambda: logs.filter_log_events(logGroupName=name)["events"], 120)
    finally:
        resident.modify(CloudwatchLogsExportConfiguration={"DisableLogTypes": types})
        resident.wait()


def test_with_the_cli(server, group):
    def cli(action, *args):
        return server.cli(action, *args, service="logs")

    name, at = group + "/cli", now() - 1000
    one, stream = ("--log-group-name", name), ("--log-stream-name", "s")
    cli("create-log-group", *one)
    cli("put-retention-policy", *one, "--retention-in-days", 7)
    cli("delete-retention-policy", *one)
    cli("tag-log-group", *one, "--tags", "a=1,b=2")
    cli("untag-log-group", *one, "--tags", "b")
    assert cli("list-tags-log-group", *one)["tags"] == {"a": "1"}
    cli("tag-resource", "--resource-arn", arn(name), "--tags", "c=3")
    cli("untag-resource", "--resource-arn", arn(name), "--tag-keys", "a")
    assert cli("list-tags-for-resource", "--resource-arn", arn(name))["tags"] == {"c": "3"}
    cli("put-log-group-deletion-protection", "--log-group-identifier", name, "--no-deletion-protection-enabled")
    assert cli("describe-log-groups", "--log-group-name-prefix", name)["logGroups"][0]["logGroupName"] == name
    cli("create-log-stream", *one, *stream)
    cli("put-log-events", *one, *stream, "--log-events", json.dumps(batch("one", "two", at=at)))
    assert cli("describe-log-streams", *one)["logStreams"][0]["lastEventTimestamp"] == at + 1
    assert [e["message"] for e in cli("get-log-events", *one, *stream)["events"]] == ["one", "two"]
    assert [e["message"] for e in cli("filter-log-events", *one, "--filter-pattern", "two")["events"]] == ["two"]
    cli("delete-log-stream", *one, *stream)
    cli("delete-log-group", *one)
