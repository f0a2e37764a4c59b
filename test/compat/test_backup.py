"""Automated backups and restores to a moment, with the data itself as witness."""

import datetime
import time

import pytest

import engines
import instances
from harness import wait_for
from test_multiaz import has_standby
from writer import Writer

UTC = datetime.timezone.utc
BEHIND = 5  # seconds that the latest restorable time may be behind


def now():
    return datetime.datetime.now(UTC)


def latest(db):
    return db.describe().get("LatestRestorableTime")


def reach(db, moment):
    """Waits until a moment can be restored."""
    return wait_for(f"{moment} restorable", lambda: (t := latest(db)) and t >= moment and t)


def said(rds, db, message):
    """Waits until an event tells of a change."""

    def told():
        events = rds.describe_events(SourceType="db-instance", SourceIdentifier=db.name)["Events"]
        return [e for e in events if e["Message"] == message and e["EventCategories"] == ["configuration change"]]

    wait_for(message, told)


def full_second():
    """The next full second, once it is over."""
    moment = now().replace(microsecond=0) + datetime.timedelta(seconds=1)
    wait_for("the next second", lambda: now() > moment)
    return moment


def automated(rds, **how):
    return rds.describe_db_snapshots(SnapshotType="automated", **how)["DBSnapshots"]


def insert(db, *numbers):
    with db.connect() as connection:
        for n in numbers:
            engines.query(connection, f"INSERT INTO kept VALUES ({n})")


def rows(db):
    with db.connect() as connection:
        return [r[0] for r in engines.query(connection, "SELECT n FROM kept ORDER BY n")]


def restore(server, db, name, **wish):
    wish = {"BackupRetentionPeriod": 0, "TargetDBInstanceIdentifier": name} | wish
    if not {"SourceDbiResourceId", "SourceDBInstanceAutomatedBackupsArn"} & set(wish):
        wish["SourceDBInstanceIdentifier"] = db.name
    out = server.rds.restore_db_instance_to_point_in_time(**wish)["DBInstance"]
    assert out["DBInstanceStatus"] == "creating"
    made = instances.Instance(server, db.engine, {**db.wish, "DBInstanceIdentifier": name})
    made.password = db.password
    made.wait()
    return made


def follows_the_clock(db):
    """Looks for six seconds at the latest restorable time."""
    end = time.monotonic() + 6
    seen = set()

    def watched():
        t = latest(db)
        assert (now() - t).total_seconds() <= BEHIND, t
        seen.add(t)
        return time.monotonic() > end

    wait_for("six seconds", watched)
    assert len(seen) >= 3


@pytest.fixture(scope="class")
def db(server, engine):
    """An instance with backups, the states that it went through, and moments of its life."""
    source = instances.create(server, engine, wait=False, name=f"back-{engine.name}", BackupRetentionPeriod=2)
    source.states = []

    def available():
        state = source.status()
        if source.states[-1:] != [state]:
            source.states.append(state)
        return state == "available"

    wait_for("available", available, 60)
    with source.connect() as connection:
        engines.query(connection, "CREATE TABLE kept (n int primary key)")
    source.moments = {}
    for n in (1, 2, 3):
        insert(source, n)
        source.moments[n] = full_second()
    return source


class TestBackup:
    def test_the_first_snapshot(self, rds, db):
        assert db.states[-2:] == ["backing-up", "available"], db.states
        (first,) = automated(rds, DBInstanceIdentifier=db.name)
        assert first["DBSnapshotIdentifier"].startswith(f"rds:{db.name}-{now():%Y}") and first["Status"] == "available"
        told = rds.describe_events(SourceType="db-instance", SourceIdentifier=db.name)["Events"]
        assert [(e["Message"], e["EventCategories"]) for e in told[:3]] == [
            ("DB instance created", ["creation"]), ("Backing up DB instance", ["backup"]), ("Finished DB instance backup", ["backup"]),
        ]  # fmt: skip
        with pytest.raises(rds.exceptions.InvalidDBSnapshotStateFault):
            rds.delete_db_snapshot(DBSnapshotIdentifier=first["DBSnapshotIdentifier"])

    @pytest.mark.parametrize("load", ["idle", "busy"])
    def test_the_latest_time_follows_the_clock(self, rds, db, load):
        """On an instance where nothing happens, and on one where a client writes all the time."""
        reach(db, db.moments[3])
        writer = None
        if load == "busy":
            with db.connect() as connection:
                engines.query(connection, "CREATE TABLE busy (n int primary key)")
            writer = Writer(db, "busy")
            writer.start()
            wait_for("the first rows", lambda: writer.error or len(writer.acknowledged) > 20)
        try:
            follows_the_clock(db)
        finally:
            if writer:
                writer.stop()
        (backup,) = rds.describe_db_instance_automated_backups(DBInstanceIdentifier=db.name)["DBInstanceAutomatedBackups"]
        assert backup["Status"] == "active" and backup["BackupRetentionPeriod"] == 2
        window = backup["RestoreWindow"]
        assert window["EarliestTime"] <= db.moments[1] <= window["LatestTime"]

    def test_to_a_moment(self, server, db, engine):
        for n in (1, 2):
            reach(db, db.moments[n])
            made = restore(server, db, f"at-{n}-{engine.name}", RestoreTime=db.moments[n])
            assert rows(made) == list(range(1, n + 1))
            events = server.rds.describe_events(SourceType="db-instance", SourceIdentifier=made.name)["Events"]
            assert any("restoration" in e["EventCategories"] for e in events)
            insert(made, 99)
            made.delete()

    def test_to_the_latest(self, server, db, engine):
        insert(db, 4)
        reach(db, full_second())
        made = restore(server, db, f"latest-{engine.name}", UseLatestRestorableTime=True, DBInstanceClass=instances.BIGGER, Port=6112, MultiAZ=True)
        assert has_standby(made)["MultiAZ"]
        assert rows(made) == [1, 2, 3, 4] and made.describe()["Endpoint"]["Port"] == 6112
        made.delete()

    def test_restored_can_be_restored(self, server, db, engine):
        """The log of a restored instance is its own."""
        made = restore(server, db, f"again-{engine.name}", RestoreTime=db.moments[2], BackupRetentionPeriod=1)
        insert(made, 50)
        reach(made, full_second())
        insert(made, 51)
        second = restore(server, made, f"second-{engine.name}", UseLatestRestorableTime=True)
        assert rows(second)[:3] == [1, 2, 50]
        second.delete()
        made.delete()

    def test_refused_before_anything_is_made(self, rds, db):
        e = rds.exceptions
        of, to = {"SourceDBInstanceIdentifier": db.name}, {"TargetDBInstanceIdentifier": "never-made"}
        day = datetime.timedelta(days=1)
        for wish, code, words in [
            ({"RestoreTime": now() + day}, "InvalidParameterValue", "later than"),
            ({"RestoreTime": now() - day}, "InvalidParameterValue", "earlier than"),
            ({}, "InvalidParameterCombination", "RestoreTime"),
            ({"RestoreTime": db.moments[1], "UseLatestRestorableTime": True}, "InvalidParameterCombination", "RestoreTime"),
            ({"UseLatestRestorableTime": True, "AllocatedStorage": 5}, "InvalidParameterCombination", "never shrinks"),
            ({"UseLatestRestorableTime": True, "Engine": "oracle-ee"}, "InvalidParameterCombination", "Engine"),
        ]:
            with pytest.raises(e.ClientError, match=f"{code}.*{words}"):
                rds.restore_db_instance_to_point_in_time(**of, **to, **wish)
        with pytest.raises(e.DBInstanceNotFoundFault):
            rds.restore_db_instance_to_point_in_time(SourceDBInstanceIdentifier="no-such", UseLatestRestorableTime=True, **to)
        with pytest.raises(e.DBInstanceAutomatedBackupNotFoundFault):
            rds.restore_db_instance_to_point_in_time(SourceDbiResourceId="db-NOSUCH", UseLatestRestorableTime=True, **to)
        with pytest.raises(e.InvalidDBInstanceAutomatedBackupStateFault):
            rds.delete_db_instance_automated_backup(DbiResourceId=db.describe()["DbiResourceId"])

    def test_off_and_on(self, rds, db, engine):
        db.modify(BackupRetentionPeriod=0)
        wait_for("automated snapshots gone", lambda: not automated(rds, DBInstanceIdentifier=db.name))
        assert latest(db) is None
        with pytest.raises(rds.exceptions.PointInTimeRestoreNotEnabledFault):
            rds.restore_db_instance_to_point_in_time(
                SourceDBInstanceIdentifier=db.name, TargetDBInstanceIdentifier="never-made", UseLatestRestorableTime=True
            )
        said(rds, db, "Disabled automated backups")
        db.modify(BackupRetentionPeriod=3)
        said(rds, db, "Enabled automated backups")
        wait_for("a first snapshot again", lambda: [s for s in automated(rds, DBInstanceIdentifier=db.name) if s["Status"] == "available"])
        db.wait()

    def test_retained(self, server, rds, db, engine):
        insert(db, 5)
        last = rows(db)
        resource = db.describe()["DbiResourceId"]
        rds.delete_db_instance(DBInstanceIdentifier=db.name, SkipFinalSnapshot=True, DeleteAutomatedBackups=False)
        wait_for("instance gone", lambda: not instances.exists(server, db.name))
        by_id = {"Filters": [{"Name": "dbi-resource-id", "Values": [resource]}]}
        wait_for(
            "the end of its log",
            lambda: "LatestTime" in rds.describe_db_instance_automated_backups(**by_id)["DBInstanceAutomatedBackups"][0]["RestoreWindow"],
        )
        (backup,) = rds.describe_db_instance_automated_backups(**by_id)["DBInstanceAutomatedBackups"]
        assert backup["Status"] == "retained" and backup["DBInstanceIdentifier"] == db.name
        made = restore(
            server, db, db.name, SourceDBInstanceAutomatedBackupsArn=backup["DBInstanceAutomatedBackupsArn"], UseLatestRestorableTime=True
        )
        assert rows(made) == last
        made.delete()
        out = rds.delete_db_instance_automated_backup(DbiResourceId=resource)["DBInstanceAutomatedBackup"]
        assert out["Status"] == "deleting"
        wait_for("backups gone", lambda: not rds.describe_db_instance_automated_backups(**by_id)["DBInstanceAutomatedBackups"])
        wait_for("snapshots gone", lambda: not automated(rds, DbiResourceId=resource))
        with pytest.raises(rds.exceptions.DBInstanceAutomatedBackupNotFoundFault):
            rds.delete_db_instance_automated_backup(DbiResourceId=resource)


def test_with_the_cli(server, rds, postgres):
    db = instances.create(server, postgres, name="back-cli", BackupRetentionPeriod=1)
    wait_for("a restorable moment", lambda: latest(db))
    out = server.cli("describe-db-instance-automated-backups", "--db-instance-identifier", db.name)["DBInstanceAutomatedBackups"]
    assert [b["Status"] for b in out] == ["active"]
    made = server.cli(
        "restore-db-instance-to-point-in-time", "--source-db-instance-identifier", db.name,
        "--target-db-instance-identifier", "back-cli-2", "--use-latest-restorable-time", "--backup-retention-period", "0",
    )["DBInstance"]  # fmt: skip
    assert made["DBInstanceStatus"] == "creating"
    second = instances.Instance(server, postgres, {**db.wish, "DBInstanceIdentifier": "back-cli-2"})
    second.wait()
    second.delete()
    server.cli("delete-db-instance", "--db-instance-identifier", db.name, "--skip-final-snapshot", "--no-delete-automated-backups")
    wait_for("instance gone", lambda: not instances.exists(server, db.name))
    resource = out[0]["DbiResourceId"]
    gone = server.cli("delete-db-instance-automated-backup", "--dbi-resource-id", resource)["DBInstanceAutomatedBackup"]
    assert gone["Status"] == "deleting"
    wait_for("backups gone", lambda: not rds.describe_db_instance_automated_backups()["DBInstanceAutomatedBackups"])
