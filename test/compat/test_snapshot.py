"""Manual snapshots and what is restored from them, with the data itself as witness."""

import subprocess

import pytest

import engines
import harness
import instances
from harness import wait_for
from writer import Writer


@pytest.fixture(scope="class")
def db(server, engine):
    source = instances.create(server, engine, name=f"snap-{engine.name}", CopyTagsToSnapshot=True, Tags=[{"Key": "team", "Value": "blue"}])
    with source.connect() as connection:
        engines.query(connection, "CREATE TABLE kept (n int primary key)")
        engines.query(connection, "INSERT INTO kept VALUES (1)")
    return source


def available(rds, name, timeout=60):
    def reached():
        (now,) = rds.describe_db_snapshots(DBSnapshotIdentifier=name)["DBSnapshots"]
        assert now["Status"] in ("creating", "copying", "available"), now
        return now if now["Status"] == "available" else None

    return wait_for(f"snapshot {name} available", reached, timeout)


def gone(rds, name):
    try:
        rds.describe_db_snapshots(DBSnapshotIdentifier=name)
    except rds.exceptions.DBSnapshotNotFoundFault:
        return True
    return False


def rows(db):
    with db.connect() as connection:
        return [r[0] for r in engines.query(connection, "SELECT n FROM kept ORDER BY n")]


def restore(server, db, snapshot, name, **wish):
    wish.setdefault("BackupRetentionPeriod", 0)
    server.rds.restore_db_instance_from_db_snapshot(DBInstanceIdentifier=name, DBSnapshotIdentifier=snapshot, **wish)
    made = instances.Instance(server, db.engine, {**db.wish, "DBInstanceIdentifier": name})
    made.password = db.password
    made.wait()
    return made


def tags(resource):
    have = {t["Key"]: t["Value"] for t in resource["TagList"]}
    assert len(have) == len(resource["TagList"])
    return have


def known(server, name):
    """What the service knows of a snapshot: it is in no tag."""
    (one,) = server.client("kurabe").describe_snapshots(SnapshotName=name)["Snapshots"]
    return one


class TestSnapshot:
    def test_taken_while_a_client_writes(self, rds, db, engine):
        writer = Writer(db)
        writer.start()
        wait_for("the first rows", lambda: len(writer.acknowledged) > 20)
        before = writer.acknowledged[-1]
        name = f"Manual-{engine.name}"
        out = rds.create_db_snapshot(DBSnapshotIdentifier=name, DBInstanceIdentifier=db.name, Tags=[{"Key": "why", "Value": "test"}])["DBSnapshot"]
        assert (out["DBSnapshotIdentifier"], out["Status"], out["SnapshotType"]) == (name.lower(), "creating", "manual")
        rds.get_waiter("db_snapshot_available").wait(DBSnapshotIdentifier=name, WaiterConfig={"Delay": 1, "MaxAttempts": 60})
        writer.stop()
        db.wait()
        now = available(rds, name)
        assert now["PercentProgress"] == 100
        assert tags(now) == {"why": "test"}, "one tag is given: none of the instance's is copied, and the service adds none"
        assert rds.list_tags_for_resource(ResourceName=now["DBSnapshotArn"])["TagList"] == now["TagList"]
        facts = known(db.server, name)
        assert facts["taken"] and facts["method"] in ("clone", "copy") and facts["occupiedBytes"] >= 0 and facts["instance"] == db.name
        source = db.describe()
        for same in ("Engine", "EngineVersion", "AllocatedStorage", "StorageType", "MasterUsername", "DbiResourceId"):
            assert now[same] == source[same]
        made = restore(db.server, db, name, f"restored-{engine.name}")
        have = rows(made)
        numbers = [n for n in have if n >= 1000]
        assert numbers == list(range(1000, 1000 + len(numbers))), "a hole in what was restored"
        assert before in have, "an acknowledged row is missing"
        assert tags(made.describe()) == {"why": "test"}
        made.delete()

    def test_restored_is_its_own(self, rds, server, db, engine):
        name, group = f"manual-{engine.name}", f"restored-{engine.name}"
        parameter, value, says = engine.static
        family = db.describe()["DBParameterGroups"][0]["DBParameterGroupName"].removeprefix("default.")
        rds.create_db_parameter_group(DBParameterGroupName=group, DBParameterGroupFamily=family, Description="of a restore")
        rds.modify_db_parameter_group(
            DBParameterGroupName=group, Parameters=[{"ParameterName": parameter, "ParameterValue": value, "ApplyMethod": "pending-reboot"}]
        )
        made = restore(
            server, db, name, f"other-{engine.name}", DBInstanceClass=instances.BIGGER, Port=6111, AllocatedStorage=30,
            StorageType="gp3", DBParameterGroupName=group, Tags=[{"Key": "own", "Value": "1"}],
        )  # fmt: skip
        seen = made.describe()
        assert (seen["DBInstanceClass"], seen["Endpoint"]["Port"], seen["AllocatedStorage"]) == (instances.BIGGER, 6111, 30)
        assert (seen["StorageType"], seen["Iops"], db.describe()["StorageType"]) == ("gp3", 3000, "local")
        assert [(g["DBParameterGroupName"], g["ParameterApplyStatus"]) for g in seen["DBParameterGroups"]] == [(group, "in-sync")]
        assert made.setting(parameter) == says != db.setting(parameter)
        assert tags(seen) == {"own": "1"}
        assert seen["MasterUsername"] == db.user and seen["DbiResourceId"] != db.describe()["DbiResourceId"]
        with made.connect() as connection:
            engines.query(connection, "INSERT INTO kept VALUES (2)")
        assert 2 in rows(made) and 2 not in rows(db)
        password = engines.new_password()
        made.modify(MasterUserPassword=password)
        made.password = password
        assert 2 in rows(made)
        made.delete()
        rds.delete_db_parameter_group(DBParameterGroupName=group)
        assert 1 in rows(db)

    def test_copy_outlives_its_source(self, rds, server, db, engine):
        name, copy = f"manual-{engine.name}", f"copy-{engine.name}"
        out = rds.copy_db_snapshot(SourceDBSnapshotIdentifier=name, TargetDBSnapshotIdentifier=copy, CopyTags=True)["DBSnapshot"]
        assert out["SourceDBSnapshotIdentifier"].endswith(":snapshot:" + name)
        assert tags(available(rds, copy)) == {"why": "test"}
        rds.delete_db_snapshot(DBSnapshotIdentifier=name)
        wait_for("the source gone", lambda: gone(rds, name))
        made = restore(server, db, copy, f"fromcopy-{engine.name}")
        assert 1 in rows(made)
        made.delete()

    def test_a_clone_has_no_tags(self, rds, server, db, engine):
        """Neither the source's nor the mark of the snapshot that it was made of."""
        access = {"AWS_ACCESS_KEY_ID": harness.ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": harness.SECRET_KEY}
        argv = [str(harness.BINARY), "clone", db.name, f"clone-{engine.name}", "--endpoint", server.url, "--data", str(server.data)]
        done = subprocess.run(argv, capture_output=True, text=True, env=server.environ() | access, timeout=90)
        assert done.returncode == 0, done.stderr
        made = instances.Instance(server, engine, {**db.wish, "DBInstanceIdentifier": f"clone-{engine.name}"})
        made.password = db.password
        made.wait()
        assert tags(made.describe()) == {} and 1 in rows(made)
        made.delete()
        wait_for("its snapshot gone", lambda: not [s for s in rds.describe_db_snapshots()["DBSnapshots"] if "kurabe:clone" in tags(s)])

    def test_of_a_stopped_instance(self, rds, server, db, engine):
        rds.stop_db_instance(DBInstanceIdentifier=db.name)
        db.wait("stopped")
        rds.create_db_snapshot(DBSnapshotIdentifier=f"cold-{engine.name}", DBInstanceIdentifier=db.name)
        assert tags(available(rds, f"cold-{engine.name}")) == {"team": "blue"}
        rds.start_db_instance(DBInstanceIdentifier=db.name)
        db.wait()
        made = restore(server, db, f"cold-{engine.name}", f"fromcold-{engine.name}")
        assert rows(made) == rows(db) and tags(made.describe()) == {"team": "blue"}
        made.delete()

    def test_final_snapshot(self, rds, server, db, engine):
        last = rows(db)
        rds.delete_db_instance(DBInstanceIdentifier=db.name, FinalDBSnapshotIdentifier=f"final-{engine.name}")
        wait_for("instance gone", lambda: not instances.exists(server, db.name))
        (now,) = rds.describe_db_snapshots(DBInstanceIdentifier=db.name, SnapshotType="manual", Filters=[{"Name": "db-snapshot-id", "Values": [f"final-{engine.name}"]}])["DBSnapshots"]
        assert now["Status"] == "available"
        made = restore(server, db, f"final-{engine.name}", db.name)
        assert rows(made) == last
        made.delete()

    def test_nothing_is_left(self, rds, engine):
        for snapshot in rds.describe_db_snapshots()["DBSnapshots"]:
            if snapshot["Engine"] == engine.name:
                rds.delete_db_snapshot(DBSnapshotIdentifier=snapshot["DBSnapshotIdentifier"])
                wait_for("snapshot gone", lambda s=snapshot: gone(rds, s["DBSnapshotIdentifier"]))


@pytest.fixture(scope="module")
def slow():
    """A server that takes many seconds for the smallest copy: two reports of progress and more."""
    s = harness.Server("--stop-databases-on-exit", "--copy-rate", "2")
    try:
        yield s.start()
    finally:
        s.close()


def test_while_it_is_taken(slow, engine):
    rds, name = slow.rds, f"slow-{engine.name}"
    e = rds.exceptions
    db = instances.create(slow, engine, wait=False, name=name)
    with pytest.raises(e.InvalidDBInstanceStateFault, match="creating"):
        rds.create_db_snapshot(DBSnapshotIdentifier="too-early", DBInstanceIdentifier=db.name)
    db.wait()
    rds.create_db_snapshot(DBSnapshotIdentifier=name, DBInstanceIdentifier=db.name)

    def begun():
        (now,) = rds.describe_db_snapshots(DBSnapshotIdentifier=name)["DBSnapshots"]
        return now if now["Status"] != "creating" or 1 <= now["PercentProgress"] <= 99 else None

    now = wait_for("a part is copied", begun)
    if known(slow, name).get("method") == "clone":
        pytest.skip("the file system clones: nothing is copied that could be watched")
    assert now["Status"] == "creating" and tags(now) == {} and "SnapshotCreateTime" not in now
    with pytest.raises(e.InvalidDBSnapshotStateFault, match="creating"):
        rds.restore_db_instance_from_db_snapshot(DBSnapshotIdentifier=name, DBInstanceIdentifier="too-early")
    with pytest.raises(e.InvalidDBSnapshotStateFault, match="creating"):
        rds.copy_db_snapshot(SourceDBSnapshotIdentifier=name, TargetDBSnapshotIdentifier="too-early")
    with pytest.raises(e.InvalidDBSnapshotStateFault, match="creating"):
        rds.delete_db_snapshot(DBSnapshotIdentifier=name)
    with pytest.raises(e.InvalidDBInstanceStateFault, match="backing-up"):
        rds.create_db_snapshot(DBSnapshotIdentifier="second", DBInstanceIdentifier=db.name)
    now = available(rds, name)
    assert now["PercentProgress"] == 100 and known(slow, name)["method"] == "copy"
    assert known(slow, name)["occupiedBytes"] > 1 << 20
    rds.delete_db_snapshot(DBSnapshotIdentifier=name)
    wait_for("snapshot gone", lambda: gone(rds, name))
    db.delete()


def test_errors(rds, resident, engine):
    e = rds.exceptions
    with pytest.raises(e.DBSnapshotNotFoundFault):
        rds.describe_db_snapshots(DBSnapshotIdentifier="no-such")
    with pytest.raises(e.DBSnapshotNotFoundFault):
        rds.delete_db_snapshot(DBSnapshotIdentifier="no-such")
    with pytest.raises(e.DBSnapshotNotFoundFault):
        rds.restore_db_instance_from_db_snapshot(DBSnapshotIdentifier="no-such", DBInstanceIdentifier="x")
    with pytest.raises(e.DBInstanceNotFoundFault):
        rds.create_db_snapshot(DBSnapshotIdentifier="ok", DBInstanceIdentifier="no-such")
    with pytest.raises(e.ClientError, match="InvalidParameterValue.*DBSnapshotIdentifier"):
        rds.create_db_snapshot(DBSnapshotIdentifier="rds:mine", DBInstanceIdentifier=resident.name)
    name = f"errors-{engine.name}"
    rds.create_db_snapshot(DBSnapshotIdentifier=name, DBInstanceIdentifier=resident.name)
    with pytest.raises(e.DBSnapshotAlreadyExistsFault):
        rds.create_db_snapshot(DBSnapshotIdentifier=name, DBInstanceIdentifier=resident.name)
    available(rds, name)
    resident.wait()
    with pytest.raises(e.DBInstanceAlreadyExistsFault):
        rds.restore_db_instance_from_db_snapshot(DBSnapshotIdentifier=name, DBInstanceIdentifier=resident.name)
    with pytest.raises(e.ClientError, match="InvalidParameterCombination.*never shrinks"):
        rds.restore_db_instance_from_db_snapshot(DBSnapshotIdentifier=name, DBInstanceIdentifier="x", AllocatedStorage=5)
    attributes = rds.describe_db_snapshot_attributes(DBSnapshotIdentifier=name)["DBSnapshotAttributesResult"]
    assert attributes["DBSnapshotAttributes"] == [{"AttributeName": "restore", "AttributeValues": []}]
    same = rds.modify_db_snapshot(DBSnapshotIdentifier=name, EngineVersion=resident.describe()["EngineVersion"])["DBSnapshot"]
    assert same["Status"] == "available"
    with pytest.raises(e.ClientError, match="InvalidParameterCombination.*EngineVersion"):
        rds.modify_db_snapshot(DBSnapshotIdentifier=name, EngineVersion="99.1")
    arn = rds.describe_db_snapshots(DBSnapshotIdentifier=name)["DBSnapshots"][0]["DBSnapshotArn"]
    rds.add_tags_to_resource(ResourceName=arn, Tags=[{"Key": "a", "Value": "b"}])
    assert {"Key": "a", "Value": "b"} in rds.list_tags_for_resource(ResourceName=arn)["TagList"]
    with pytest.raises(e.ClientError, match="InvalidParameterValue.*kurabe:clone"):
        rds.add_tags_to_resource(ResourceName=arn, Tags=[{"Key": "kurabe:clone", "Value": "1"}])
    for tag in rds.list_tags_for_resource(ResourceName=arn)["TagList"]:
        rds.remove_tags_from_resource(ResourceName=arn, TagKeys=[tag["Key"]])
    assert rds.list_tags_for_resource(ResourceName=arn)["TagList"] == [], "every tag can be removed, so a tool that declares none comes to rest"
    categories = {c for ev in rds.describe_events(SourceType="db-snapshot", SourceIdentifier=name)["Events"] for c in ev["EventCategories"]}
    assert "creation" in categories
    rds.delete_db_snapshot(DBSnapshotIdentifier=name)
    wait_for("snapshot gone", lambda: gone(rds, name))


def test_with_the_cli(rds, server, resident, engine):
    name, copy = f"cli-{engine.name}", f"cli-copy-{engine.name}"
    by_name = ("--db-snapshot-identifier", name)
    out = server.cli("create-db-snapshot", "--db-instance-identifier", resident.name, *by_name, "--tags", "Key=a,Value=b")["DBSnapshot"]
    assert (out["Status"], out["TagList"]) == ("creating", [{"Key": "a", "Value": "b"}])
    available(rds, name)
    resident.wait()
    server.cli("wait", "db-snapshot-available", *by_name)
    (now,) = server.cli("describe-db-snapshots", *by_name)["DBSnapshots"]
    assert now["DBInstanceIdentifier"] == resident.name
    assert server.cli("describe-db-snapshot-attributes", *by_name)["DBSnapshotAttributesResult"]["DBSnapshotIdentifier"] == name
    assert server.cli("modify-db-snapshot", *by_name)["DBSnapshot"]["Status"] == "available"
    server.cli("copy-db-snapshot", "--source-db-snapshot-identifier", name, "--target-db-snapshot-identifier", copy)
    available(rds, copy)
    made = f"cli-restored-{engine.name}"
    out = server.cli("restore-db-instance-from-db-snapshot", "--db-snapshot-identifier", copy, "--db-instance-identifier", made)["DBInstance"]
    assert out["DBInstanceStatus"] == "creating"
    db = instances.Instance(server, engine, {**resident.wish, "DBInstanceIdentifier": made})
    db.wait()
    db.delete()
    for each in (name, copy):
        assert server.cli("delete-db-snapshot", "--db-snapshot-identifier", each)["DBSnapshot"]["Status"] == "deleting"
        wait_for("snapshot gone", lambda e=each: gone(rds, e))
