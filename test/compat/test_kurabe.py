"""The service "kurabe": a client that botocore makes from the model in docs/models."""

import json
import threading

import botocore.exceptions
import pytest
from harness import wait_for


@pytest.fixture
def own(server):
    return server.client("kurabe")


def test_reads(own, resident):
    (host,) = own.describe_hosts()["Hosts"]
    assert host["Report"]["host"] == host["ID"] and host["Report"]["startedAt"].tzinfo is not None
    told = own.explain(Name=resident.name)["Explanation"]
    assert told["spec"]["name"] == resident.name and told["spec"]["password"]["verifier"] == "***"
    assert own.describe_replication()["Replication"] is not None
    assert own.describe_endpoints()["Endpoints"] == []
    assert own.describe_leaving_servers(Host="no-such-host")["Servers"] == []


def test_verification(server, own, rds, resident):
    name = f"own-{resident.engine.name}"
    rds.create_db_snapshot(DBSnapshotIdentifier=name, DBInstanceIdentifier=resident.name)
    rds.get_waiter("db_snapshot_available").wait(DBSnapshotIdentifier=name, WaiterConfig={"Delay": 1, "MaxAttempts": 90})
    wish = own.start_verification(Name=name)["Verification"]
    assert wish["snapshot"] == name and wish["seq"] == 1

    def newest():
        return own.describe_verification(SnapshotName=name, Seq=wish["seq"])["Verification"].get("newest")

    assert wait_for("the verification", newest, 180)["ok"]
    (known,) = own.describe_snapshots(SnapshotName=name)["Snapshots"]
    assert known["instance"] == resident.name and known["verifiedAt"].year >= 2026
    rds.delete_db_snapshot(DBSnapshotIdentifier=name)


def test_import(own):
    job = own.start_import()["Import"]

    def ended():
        now = own.describe_import(Job=job["Job"], From=0)["Import"]
        return None if now["Running"] else now

    assert wait_for("the import", ended, 60)["Refused"] == 0
    with pytest.raises(own.exceptions.ClientError, match="InvalidParameterValue.*no such import"):
        own.describe_import(Job="other", From=0)


def test_refused(own, resident):
    with pytest.raises(own.exceptions.InstanceNotFound, match="no-such-instance not found"):
        own.explain(Name="no-such-instance")
    with pytest.raises(own.exceptions.HostNotFound):
        own.drain_host(Host="no-such-host")
    with pytest.raises(own.exceptions.InvalidState):
        own.accept_data_loss(Name=resident.name, Epoch=1, To="db-X")
    with pytest.raises(own.exceptions.InvalidState):
        own.permit_drill(Name=resident.name, Server="db-X", PID=7)
    with pytest.raises(own.exceptions.ClientError, match="InvalidParameterCombination.*--host-listen"):
        own.create_join_token(ValiditySeconds=60)
    with pytest.raises(own.exceptions.ClientError, match="InvalidParameterValue.*permit is needed"):
        own.hold_drill(Host="h", Server="db-X")


def test_sessions(own, resident):
    with pytest.raises(botocore.exceptions.ClientError, match="EnablePerformanceInsights"):
        own.describe_sessions(Name=resident.name)
    with pytest.raises(botocore.exceptions.ClientError, match="InstanceNotFound"):
        own.describe_sessions(Name="never")
    resident.modify(EnablePerformanceInsights=True)
    done = threading.Event()

    def run():
        with resident.connect() as connection:
            cursor = connection.cursor()
            while not done.is_set():
                cursor.execute({"postgres": "SELECT pg_sleep(1)", "mariadb": "SELECT SLEEP(1)"}[resident.engine.name])
                cursor.fetchall()

    runner = threading.Thread(target=run, daemon=True)
    runner.start()

    def listed():
        try:
            found = own.describe_sessions(Name=resident.name)
        except botocore.exceptions.ClientError as e:  # until the first second of it is over
            assert e.response["Error"]["Code"] == "ServiceUnavailable"
            return None
        return [s for s in found["Sessions"] if "sleep" in s["Statement"].lower()]

    try:
        (session,) = wait_for("the session that sleeps", listed, 60)
    finally:
        done.set()
        runner.join()
        resident.modify(EnablePerformanceInsights=False)
    assert session["User"] == resident.user and session["Database"] == "app" and session["ID"] > 0 and session["Wait"] and 0 <= session["Seconds"] <= 60
    assert session["Statement"] == {"postgres": "SELECT pg_sleep(1)", "mariadb": "SELECT SLEEP(1)"}[resident.engine.name] and "Blocker" not in session


def test_pictures_of_the_operating_system(server, own, resident):
    with pytest.raises(botocore.exceptions.ClientError, match="MonitoringInterval is 0"):
        own.describe_os_metrics(Name=resident.name)
    role = "arn:aws:iam::123456789012:role/monitoring"
    for wrong in ({"MonitoringInterval": 1}, {"MonitoringInterval": 7, "MonitoringRoleArn": role}, {"MonitoringRoleArn": role}):
        with pytest.raises(botocore.exceptions.ClientError, match="Monitoring"):
            resident.modify(**wrong)
    resident.modify(MonitoringInterval=1, MonitoringRoleArn=role)
    try:
        told = resident.describe()
        assert (told["MonitoringInterval"], told["MonitoringRoleArn"]) == (1, role)

        def several():
            out = own.describe_os_metrics(Name=resident.name, From="0", Limit=100)
            return out if len(out["Pictures"]) >= 3 else None

        out = wait_for("three pictures", several, 60)
        first, *_, last = [json.loads(p) for p in out["Pictures"]]
        assert last["instanceID"] == resident.name and last["instanceResourceID"] == told["DbiResourceId"]
        assert last["engine"] == resident.engine.name.upper() and last["timestamp"] > first["timestamp"]
        assert last["tasks"]["total"] >= len(last["processList"]) > 0 and all(p["rss"] > 0 or p["name"] for p in last["processList"])
        assert 0 <= last["cpuUtilization"]["total"] <= 100 and "cpuUtilization" not in first
        assert "loadAverageMinute" not in last  # of a control group the kernel keeps none
        (second,) = own.describe_os_metrics(Name=resident.name, From=own.describe_os_metrics(Name=resident.name, From="0", Limit=1)["From"], Limit=1)["Pictures"]
        assert second == out["Pictures"][1]
        (newest,) = own.describe_os_metrics(Name=resident.name)["Pictures"]
        assert json.loads(newest)["timestamp"] >= last["timestamp"]
        # They are events of a log group, as on RDS.
        group, stream = told["EnhancedMonitoringResourceArn"].split(":log-group:")[1].split(":log-stream:")
        assert (group, stream) == ("RDSOSMetrics", told["DbiResourceId"])
        logs = server.client("logs")
        kept = lambda: [g for g in logs.describe_log_groups(logGroupNamePrefix=group)["logGroups"] if g.get("retentionInDays") == 30]  # noqa: E731
        wait_for("the log group", kept, 60)
        events = logs.get_log_events(logGroupName=group, logStreamName=stream, startFromHead=True)["events"]
        assert [e["message"] for e in events][:3] == out["Pictures"][:3]
    finally:
        resident.modify(MonitoringInterval=0)
    told = resident.describe()
    assert told["MonitoringInterval"] == 0 and "MonitoringRoleArn" not in told
