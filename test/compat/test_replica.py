"""Read replicas: instances that follow another one, and can be read."""

import botocore.exceptions
import pytest

import engines
import instances
from harness import wait_for


@pytest.fixture(scope="class")
def source(server, engine):
    db = instances.create(server, engine, name=f"source-{engine.name}", BackupRetentionPeriod=1)
    yield db
    if instances.exists(server, db.name):
        db.delete()


def replica_of(source, name):
    """The replica as the tests watch it: users, passwords and databases are the source's."""
    return instances.Instance(source.server, source.engine, {**source.wish, "DBInstanceIdentifier": name})


def healthy(db):
    if db.status() == "failed":
        raise AssertionError(db.describe())
    return db.status() in ("available", "backing-up")


def replicates(db):
    def reached():
        now = db.describe()
        told = [i for i in now.get("StatusInfos", []) if i["StatusType"] == "read replication"]
        return now if now["DBInstanceStatus"] == "available" and told and told[0]["Normal"] and told[0]["Status"] == "replicating" else None

    return wait_for(f"{db.name} replicates", reached, 60)


def rows(db):
    with db.connect() as connection:
        return [n for (n,) in engines.query(connection, "SELECT n FROM kept ORDER BY n")]


def write(db, statement):
    with db.connect() as connection:
        engines.query(connection, statement)


class TestReadReplica:
    def test_is_like_its_source(self, rds, source):
        wait_for("a source that can be followed", lambda: healthy(source))
        write(source, "CREATE TABLE kept (n int primary key)")
        write(source, "INSERT INTO kept VALUES (1)")
        made = rds.create_db_instance_read_replica(
            DBInstanceIdentifier=f"{source.name}-r", SourceDBInstanceIdentifier=source.name, Tags=[{"Key": "for", "Value": "reports"}]
        )["DBInstance"]
        assert (made["DBInstanceStatus"], made["ReadReplicaSourceDBInstanceIdentifier"]) == ("creating", source.name)
        replica = replica_of(source, f"{source.name}-r")
        rds.get_waiter("db_instance_available").wait(DBInstanceIdentifier=replica.name, WaiterConfig={"Delay": 1, "MaxAttempts": 90})
        now, has = replicates(replica), source.describe()
        for same in ("Engine", "EngineVersion", "DBInstanceClass", "AllocatedStorage", "StorageType", "MasterUsername", "DBParameterGroups"):
            assert now[same] == has[same]
        assert (now["BackupRetentionPeriod"], now["MultiAZ"], now["TagList"]) == (0, False, [{"Key": "for", "Value": "reports"}])
        assert (has["ReadReplicaDBInstanceIdentifiers"], now["ReadReplicaDBInstanceIdentifiers"]) == ([replica.name], [])
        write(source, "INSERT INTO kept VALUES (2)")
        wait_for("the rows of the source", lambda: rows(replica) == [1, 2])

    def test_takes_no_writes(self, source):
        with pytest.raises(Exception, match="read.only"):
            write(replica_of(source, f"{source.name}-r"), "INSERT INTO kept VALUES (3)")

    def test_what_is_refused(self, rds, source):
        replica = replica_of(source, f"{source.name}-r")
        state, combination = rds.exceptions.InvalidDBInstanceStateFault, botocore.exceptions.ClientError
        for fault, words, ask in (
            (state, "is a read replica", lambda: rds.stop_db_instance(DBInstanceIdentifier=replica.name)),
            (state, "has read replicas", lambda: rds.stop_db_instance(DBInstanceIdentifier=source.name)),
            (state, "live on its log", lambda: source.modify(wait=False, BackupRetentionPeriod=0)),
            (state, "of its source", lambda: replica.modify(wait=False, MasterUserPassword=engines.new_password())),
            (state, "DB Backups not supported on a read replica", lambda: replica.modify(wait=False, BackupRetentionPeriod=1)),
            (state, "Take one of its source", lambda: rds.create_db_snapshot(DBInstanceIdentifier=replica.name, DBSnapshotIdentifier="s")),
            (state, "is not a read replica", lambda: rds.promote_read_replica(DBInstanceIdentifier=source.name)),
            (state, "is not a read replica", lambda: rds.switchover_read_replica(DBInstanceIdentifier=source.name)),
            (rds.exceptions.DBInstanceNotFoundFault, "not found", lambda: rds.switchover_read_replica(DBInstanceIdentifier="nobody")),
            (combination, "deleting a replica instance", lambda: rds.delete_db_instance(DBInstanceIdentifier=replica.name, FinalDBSnapshotIdentifier="s")),
            (combination, "ReplicaMode", lambda: rds.create_db_instance_read_replica(
                DBInstanceIdentifier="x", SourceDBInstanceIdentifier=source.name, ReplicaMode="mounted")),
        ):  # fmt: skip
            with pytest.raises(fault, match=words):
                ask()

    def test_by_the_command_line(self, server, rds, source):
        """Made, promoted and deleted as a user would type it."""
        by_name = ["--db-instance-identifier", f"{source.name}-cli"]
        made = server.cli("create-db-instance-read-replica", *by_name, "--source-db-instance-identifier", source.describe()["DBInstanceArn"])
        assert made["DBInstance"]["ReadReplicaSourceDBInstanceIdentifier"] == source.name
        replica = replica_of(source, f"{source.name}-cli")
        replicates(replica)
        out = server.cli("promote-read-replica", *by_name, "--backup-retention-period", 0)["DBInstance"]
        assert out["DBInstanceStatus"] == "modifying"
        wait_for("an instance of its own", lambda: replica.status() == "available" and "ReadReplicaSourceDBInstanceIdentifier" not in replica.describe())
        write(replica, "INSERT INTO kept VALUES (100)")
        assert 100 not in rows(source)
        assert source.describe()["ReadReplicaDBInstanceIdentifiers"] == [f"{source.name}-r"]
        server.cli("delete-db-instance", *by_name, "--skip-final-snapshot")
        wait_for("gone", lambda: not instances.exists(server, replica.name))

    def test_switchover(self, server, rds, source):
        """There with boto3, back with the AWS CLI: names and endpoints stay with their instances."""
        replica = replica_of(source, f"{source.name}-r")
        wait_for("nothing is being done", lambda: source.status() == replica.status() == "available")
        kept, endpoints = rows(source), [db.describe()["Endpoint"] for db in (source, replica)]
        asked = rds.switchover_read_replica(DBInstanceIdentifier=replica.name)["DBInstance"]
        assert (asked["DBInstanceStatus"], asked["ReadReplicaSourceDBInstanceIdentifier"]) == ("modifying", source.name)
        with pytest.raises(rds.exceptions.InvalidDBInstanceStateFault, match="switched over|is not a read replica"):
            rds.switchover_read_replica(DBInstanceIdentifier=replica.name)
        self.roles(replica, source)
        assert [db.describe()["Endpoint"] for db in (source, replica)] == endpoints
        assert (replica.describe()["BackupRetentionPeriod"], source.describe()["BackupRetentionPeriod"]) == (1, 1)
        write(replica, "INSERT INTO kept VALUES (50)")
        wait_for("the rows of the new source", lambda: rows(source) == [*kept, 50])
        with pytest.raises(Exception, match="read.only"):
            write(source, "INSERT INTO kept VALUES (51)")
        told = [e["Message"] for e in rds.describe_events(SourceType="db-instance", SourceIdentifier=replica.name)["Events"]]
        assert any("Switchover completed" in m for m in told), told
        wait_for("no backup in the making", lambda: replica.status() == "available")
        out = server.cli("switchover-read-replica", "--db-instance-identifier", source.name)["DBInstance"]
        assert out["DBInstanceStatus"] == "modifying"
        self.roles(source, replica)
        write(source, "INSERT INTO kept VALUES (52)")
        wait_for("all rows", lambda: rows(replica) == [*kept, 50, 52])

    def roles(self, source, replica):
        """Waits until either says so of the other."""

        def reached():
            now = source.describe()
            return healthy(source) and "ReadReplicaSourceDBInstanceIdentifier" not in now and now["ReadReplicaDBInstanceIdentifiers"] == [replica.name]

        wait_for(f"{source.name} is the source", reached)
        assert replicates(replica)["ReadReplicaSourceDBInstanceIdentifier"] == source.name

    def test_promotion(self, rds, source):
        replica = replica_of(source, f"{source.name}-r")
        kept = rows(source)
        wait_for("all rows", lambda: rows(replica) == kept)
        rds.promote_read_replica(DBInstanceIdentifier=replica.name, BackupRetentionPeriod=2, PreferredBackupWindow="01:00-01:30")
        wait_for("an instance of its own", lambda: healthy(replica) and "ReadReplicaSourceDBInstanceIdentifier" not in replica.describe())
        now = replica.describe()
        assert (now["BackupRetentionPeriod"], now["PreferredBackupWindow"]) == (2, "01:00-01:30")
        assert not [i for i in now.get("StatusInfos", []) if i["StatusType"] == "read replication"]
        write(replica, "INSERT INTO kept VALUES (200)")
        write(source, "INSERT INTO kept VALUES (300)")
        assert (rows(replica), rows(source)) == ([*kept, 200], [*kept, 300])
        told = [e["Message"] for e in rds.describe_events(SourceType="db-instance", SourceIdentifier=replica.name)["Events"]]
        assert any("stand-alone DB instance" in m for m in told), told
        wait_for("no backup in the making", lambda: replica.status() == "available")
        replica.delete()

    def test_a_source_that_is_deleted_leaves_instances(self, rds, source):
        rds.create_db_instance_read_replica(DBInstanceIdentifier=f"{source.name}-left", SourceDBInstanceIdentifier=source.name)
        replica = replica_of(source, f"{source.name}-left")
        replicates(replica)
        kept = rows(source)
        wait_for("all rows", lambda: rows(replica) == kept)
        source.delete()
        wait_for("an instance of its own", lambda: replica.status() == "available" and "ReadReplicaSourceDBInstanceIdentifier" not in replica.describe())
        write(replica, "INSERT INTO kept VALUES (400)")
        replica.delete()
