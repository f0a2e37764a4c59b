"""Cloud Custodian: policies over instances, clusters, snapshots and groups, by tags and marks."""

import json
import subprocess
import sys

import aws
import clusters
import engines
import harness
import instances
import pytest


@pytest.fixture
def custodian(server, tmp_path):
    """Runs one policy; returns the resources that it has found and acted on."""

    def run(resource, *filters, actions=()):
        policy = {"name": "one", "resource": f"aws.{resource}", "filters": list(filters), "actions": list(actions)}
        (tmp_path / "policy.json").write_text(json.dumps({"policies": [policy]}))
        argv = [sys.executable, "-m", "c7n.cli", "run", "-s", tmp_path / "out", "--cache-period", "0", "--region", harness.REGION]
        done = subprocess.run([*argv, tmp_path / "policy.json"], capture_output=True, text=True, env=aws.environ(server), timeout=300)
        assert done.returncode == 0, f"{policy}: {done.stderr}"
        # An action that the service refused is a line of the log, and no failure of the program.
        assert "error" not in done.stderr.lower(), f"{policy}: {done.stderr}"
        return json.loads((tmp_path / "out" / "one" / "resources.json").read_text())

    return run


def named(resources, key):
    return sorted(r[key] for r in resources)


MARKED = {"type": "marked-for-op", "op": "stop", "tag": "custodian"}
OURS = {"tag:owner": "custodian"}


def test_instances(server, offered, custodian):
    """One policy is over the instances of both engines."""
    made = [instances.create(server, engines.ENGINES[e], name=f"c7n-{e}", wait=False) for e in sorted(offered)]
    names = sorted(m.name for m in made)
    for m in made:
        m.wait(timeout=180)

    def found(*filters, actions=()):
        return [n for n in named(custodian("rds", *filters, actions=actions), "DBInstanceIdentifier") if n in names]

    mine = {"type": "value", "key": "DBInstanceIdentifier", "op": "in", "value": names}
    assert found(mine, {"tag:owner": "absent"}, actions=[{"type": "tag", "tags": {"owner": "custodian"}}]) == names
    mark = {"type": "mark-for-op", "op": "stop", "days": 0, "tag": "custodian"}
    assert found(OURS, {"not": [MARKED]}, actions=[mark, {"type": "snapshot"}]) == names
    for m in made:
        m.wait(timeout=180)
    assert found(OURS, MARKED, actions=["stop", {"type": "unmark", "tags": ["custodian"]}]) == names
    for m in made:
        m.wait("stopped", timeout=180)
        assert {t["Key"]: t["Value"] for t in m.describe()["TagList"]} == {"owner": "custodian"}
    assert found(OURS, MARKED) == []
    assert found(OURS, {"DBInstanceStatus": "stopped"}, actions=["start"]) == names
    for m in made:
        m.wait(timeout=180)
    snapshots(server, custodian, names)
    assert found(OURS, actions=[{"type": "delete", "skip-snapshot": True}]) == names
    for m in made:
        harness.wait_for(f"{m.name} gone", lambda m=m: not instances.exists(server, m.name), 180)


def snapshots(server, custodian, names):
    """The snapshots of the instances are tagged, found again and deleted."""
    of = {"type": "value", "key": "DBInstanceIdentifier", "op": "in", "value": names}
    waiting = lambda: all(s["Status"] == "available" for s in server.rds.describe_db_snapshots()["DBSnapshots"])  # noqa: E731
    harness.wait_for("snapshots available", waiting, 180)
    assert named(custodian("rds-snapshot", of, actions=[{"type": "tag", "tags": {"keep": "no"}}]), "DBInstanceIdentifier") == names
    assert named(custodian("rds-snapshot", {"tag:keep": "no"}, actions=["delete"]), "DBInstanceIdentifier") == names
    assert custodian("rds-snapshot", of) == []


def test_metrics(server, offered, custodian):
    """An instance is found by what CloudWatch says of it."""
    made = instances.create(server, engines.ENGINES[sorted(offered)[0]], name="c7n-measured")
    one, measured = {"DBInstanceIdentifier": made.name}, {"type": "metrics", "name": "CPUUtilization", "days": 1, "op": "lt"}
    harness.wait_for("a measured instance", lambda: custodian("rds", one, {**measured, "value": 10000}), 120)
    assert custodian("rds", one, {**measured, "value": -1}) == []


def test_groups(server, offered, custodian):
    """Groups that nothing uses are found by that, tagged and deleted."""
    for engine in sorted(offered):
        family = {"postgres": "postgres15", "mariadb": "mariadb10.11"}[engine]
        server.rds.create_db_parameter_group(DBParameterGroupName=f"c7n-{engine}", DBParameterGroupFamily=family, Description="d")
    server.rds.create_db_subnet_group(
        DBSubnetGroupName="c7n", DBSubnetGroupDescription="d", SubnetIds=["subnet-us-east-1a", "subnet-us-east-1b"], Tags=[{"Key": "owner", "Value": "custodian"}]
    )
    ours = {"type": "value", "key": "DBParameterGroupName", "op": "glob", "value": "c7n-*"}
    got = custodian("rds-param-group", ours, "unused", actions=["delete"])
    assert named(got, "DBParameterGroupName") == [f"c7n-{e}" for e in sorted(offered)]
    assert custodian("rds-param-group", ours) == []
    got = custodian("rds-subnet-group", OURS, "unused", actions=["delete"])
    assert named(got, "DBSubnetGroupName") == ["c7n"] and custodian("rds-subnet-group", OURS) == []


def test_cluster(server, custodian):
    engine = engines.POSTGRES
    wish = clusters.request(engine, name="c7n-ring", Tags=[{"Key": "owner", "Value": "custodian"}])
    server.rds.create_db_cluster(**wish)
    ring = clusters.Cluster(server, engine, wish)
    ring.whole(300)
    mark = {"type": "mark-for-op", "op": "stop", "days": 0, "tag": "custodian"}
    assert named(custodian("rds-cluster", OURS, actions=[mark, "snapshot"]), "DBClusterIdentifier") == [ring.name]
    ring.whole(300)
    assert named(custodian("rds-cluster", OURS, MARKED, actions=["stop"]), "DBClusterIdentifier") == [ring.name]
    harness.wait_for("cluster stopped", lambda: ring.describe()["Status"] == "stopped", 180)
    assert named(custodian("rds-cluster", OURS, {"Status": "stopped"}, actions=["start"]), "DBClusterIdentifier") == [ring.name]
    ring.whole(300)
    of = {"DBClusterIdentifier": ring.name}
    assert named(custodian("rds-cluster-snapshot", of, {"SnapshotType": "manual"}, actions=["delete"]), "DBClusterIdentifier") == [ring.name]
    # The servers of a Multi-AZ DB cluster are not deleted one by one, here as on RDS.
    delete = {"type": "delete", "skip-snapshot": True, "delete-instances": False}
    assert named(custodian("rds-cluster", OURS, actions=[delete]), "DBClusterIdentifier") == [ring.name]
    harness.wait_for("cluster gone", lambda: not clusters.exists(server, ring.name), 180)
