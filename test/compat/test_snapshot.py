"""Manual snapshots and what is restored from them, with the data itself as witness."""

import threading

import pytest

import engines
import instances
from harness import wait_for


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


class Writer(threading.Thread):
    """Inserts rising numbers and remembers which were acknowledged."""

    def __init__(self, db):
        super().__init__()
        self.db, self.end, self.acknowledged, self.error = db, threading.Event(), [], None

    def run(self):
        try:
            with self.db.connect() as connection:
                n = 1000
                while not self.end.is_set():
                    engines.query(connection, f"INSERT INTO kept VALUES ({n})")
                    self.acknowledged.append(n)
                    n += 1
        except Exception as e:  # shown by stop
            self.error = e

    def stop(self):
        self.end.set()
        self.join()
        if self.error:
            raise self.error


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
        assert now["TagList"] == [{"Key": "team", "Value": "blue"}, {"Key": "why", "Value": "test"}]
        source = db.describe()
        for same in ("Engine", "EngineVersion", "AllocatedStorage", "StorageType", "MasterUsername", "DbiResourceId"):
            assert now[same] == source[same]
        made = restore(db.server, db, name, f"restored-{engine.name}")
        have = rows(made)
        numbers = [n for n in have if n >= 1000]
        assert numbers == list(range(1000, 1000 + len(numbers))), "a hole in what was restored"
        assert before in have, "an acknowledged row is missing"
        made.delete()

    def test_restored_is_its_own(self, rds, server, db, engine):
        name = f"manual-{engine.name}"
        made = restore(server, db, name, f"other-{engine.name}", DBInstanceClass=instances.BIGGER, Port=6111, AllocatedStorage=30)
        seen = made.describe()
        assert (seen["DBInstanceClass"], seen["Endpoint"]["Port"], seen["AllocatedStorage"]) == (instances.BIGGER, 6111, 30)
        assert seen["MasterUsername"] == db.user and seen["DbiResourceId"] != db.describe()["DbiResourceId"]
        with made.connect() as connection:
            engines.query(connection, "INSERT INTO kept VALUES (2)")
        assert 2 in rows(made) and 2 not in rows(db)
        password = engines.new_password()
        made.modify(MasterUserPassword=password)
        made.password = password
        assert 2 in rows(made)
        made.delete()
        assert 1 in rows(db)

    def test_copy_outlives_its_source(self, rds, server, db, engine):
        name, copy = f"manual-{engine.name}", f"copy-{engine.name}"
        out = rds.copy_db_snapshot(SourceDBSnapshotIdentifier=name, TargetDBSnapshotIdentifier=copy, CopyTags=True)["DBSnapshot"]
        assert out["SourceDBSnapshotIdentifier"].endswith(":snapshot:" + name)
        assert available(rds, copy)["TagList"][0] == {"Key": "team", "Value": "blue"}
        rds.delete_db_snapshot(DBSnapshotIdentifier=name)
        wait_for("the source gone", lambda: gone(rds, name))
        made = restore(server, db, copy, f"fromcopy-{engine.name}")
        assert 1 in rows(made)
        made.delete()

    def test_of_a_stopped_instance(self, rds, server, db, engine):
        rds.stop_db_instance(DBInstanceIdentifier=db.name)
        db.wait("stopped")
        rds.create_db_snapshot(DBSnapshotIdentifier=f"cold-{engine.name}", DBInstanceIdentifier=db.name)
        available(rds, f"cold-{engine.name}")
        rds.start_db_instance(DBInstanceIdentifier=db.name)
        db.wait()
        made = restore(server, db, f"cold-{engine.name}", f"fromcold-{engine.name}")
        assert rows(made) == rows(db)
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
