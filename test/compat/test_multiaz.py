"""Multi-AZ: a standby in another zone that has every commit."""

import os
import signal
import threading
import time

import pytest

import engines
import harness
import instances
from harness import wait_for
from test_describe import every
from test_lifecycle import far_window
from test_snapshot import available, gone, restore


class Client(threading.Thread):
    """Inserts rising numbers, connects again when it must, and remembers which were acknowledged."""

    def __init__(self, db, first):
        super().__init__()
        self.db, self.next, self.end, self.acknowledged, self.error = db, first, threading.Event(), [], None

    def run(self):
        try:
            while not self.end.wait(0.02):
                self.insert()
        except Exception as e:  # shown by stop
            self.error = e

    def insert(self):
        try:
            with self.db.connect() as connection:
                while not self.end.is_set():
                    self.next += 1
                    engines.query(connection, f"INSERT INTO kept VALUES ({self.next})")
                    self.acknowledged.append(self.next)
        except self.db.engine.refused():
            pass  # the number is not used again: nobody said whether it is there

    def more(self, what):
        seen = len(self.acknowledged)
        wait_for(f"rows {what}", lambda: self.error or len(self.acknowledged) > seen + 20)

    def stop(self):
        self.end.set()
        self.join()
        if self.error:
            raise self.error
        return set(self.acknowledged)


@pytest.fixture(scope="class")
def db(server, engine):
    wish = {"name": f"multi-az-{engine.name}", "MultiAZ": True, "PreferredMaintenanceWindow": far_window()}
    db = instances.create(server, engine, wait=False, **wish)
    yield db
    if instances.exists(server, db.name):
        db.delete()


# what a server that follows would answer otherwise
WRITES = {"postgres": ("SELECT pg_is_in_recovery()", False), "mariadb": ("SELECT @@GLOBAL.read_only", 0)}


def has_standby(db):
    """Waits until a standby has every commit, and returns what is described then."""

    def reached():
        now = db.describe()
        return now if now["DBInstanceStatus"] == "available" and zones(now)[1] else None

    return wait_for("a standby that has every commit", reached, 60)


def zones(now):
    return now["AvailabilityZone"], now.get("SecondaryAvailabilityZone")


def rows(db):
    with db.connect() as connection:
        return {n for (n,) in engines.query(connection, "SELECT n FROM kept")}


def failover(db):
    return db.server.rds.reboot_db_instance(DBInstanceIdentifier=db.name, ForceFailover=True)["DBInstance"]


class TestMultiAZ:
    def test_available_with_a_standby(self, rds, db):
        rds.get_waiter("db_instance_available").wait(DBInstanceIdentifier=db.name, WaiterConfig={"Delay": 1, "MaxAttempts": 90})
        now = has_standby(db)
        first, second = zones(now)
        offered = {z["SubnetAvailabilityZone"]["Name"] for z in now["DBSubnetGroup"]["Subnets"]}
        assert {first, second} <= offered and first != second
        assert (now["MultiAZ"], now["PendingModifiedValues"]) == (True, {})
        with db.connect() as connection:
            engines.query(connection, "CREATE TABLE kept (n int primary key)")
            engines.query(connection, "INSERT INTO kept VALUES (0)")

    def test_asking_again_changes_nothing(self, rds, db):
        before = db.describe()
        out = rds.modify_db_instance(DBInstanceIdentifier=db.name, MultiAZ=True, ApplyImmediately=True)["DBInstance"]
        assert (out["DBInstanceStatus"], out["PendingModifiedValues"]) == ("available", {})
        instances.stable_for(1, lambda: zones(db.describe()))
        assert db.describe() == before

    def test_standby_that_does_not_answer(self, db):
        """Commits go on without it, that is told, and nobody can fail over to it."""
        frozen = harness.processes(db.describe()["DbiResourceId"] + "~2")
        assert frozen
        try:
            for pid in frozen:
                os.kill(pid, signal.SIGSTOP)
            began = time.monotonic()
            with db.connect() as connection:
                engines.query(connection, "INSERT INTO kept VALUES (1)")
            assert time.monotonic() - began < 10
            wait_for("it is told", lambda: zones(db.describe())[1] is None)
            now = db.describe()
            assert (now["DBInstanceStatus"], now["MultiAZ"], now["PendingModifiedValues"]) == ("available", True, {})
            with pytest.raises(db.server.rds.exceptions.InvalidDBInstanceStateFault, match=f"Cannot force failover of {db.name}: .*standby"):
                failover(db)
        finally:
            for pid in frozen:
                os.kill(pid, signal.SIGCONT)
        assert has_standby(db)["MultiAZ"]

    def test_failover_by_hand(self, server, rds, db):
        before = has_standby(db)
        client = Client(db, 1000)
        client.start()
        try:
            client.more("before")
            assert failover(db)["DBInstanceStatus"] == "rebooting"
            wait_for("the writer in the other zone", lambda: db.describe()["AvailabilityZone"] == zones(before)[1])
            client.more("after")
        finally:
            acknowledged = client.stop()
        after = has_standby(db)
        assert zones(after) == zones(before)[::-1]
        for same in ("DbiResourceId", "Endpoint", "InstanceCreateTime", "DBInstanceClass", "MultiAZ", "PendingModifiedValues"):
            assert after[same] == before[same]
        assert {0, 1} | acknowledged <= rows(db)
        said = told(rds, db, "failover")
        for what in ("Multi-AZ instance failover started", "Multi-AZ failover to standby complete", "Multi-AZ instance failover completed"):
            assert any(m.startswith(what) for m in said), said

    def test_the_certificate_is_still_that_of_the_endpoint(self, server, db):
        path = server.folder / "ca-multiaz.pem"
        path.write_text(server.send("GET", "/ca.pem")[2])
        with db.connect(ca=str(path)) as connection:
            question, answer = WRITES[db.engine.name]
            assert engines.query(connection, question)[0][0] == answer

    def test_logs_are_those_of_the_server_that_serves(self, rds, db):
        with pytest.raises(db.engine.refused()), db.engine.connect(db.describe()["Endpoint"], "told_to_the_writer", "wrong"):
            pass

        def told():
            files = rds.describe_db_log_files(DBInstanceIdentifier=db.name)["DescribeDBLogFiles"]
            newest = max(files, key=lambda f: f["LastWritten"])["LogFileName"]
            portion = rds.download_db_log_file_portion(DBInstanceIdentifier=db.name, LogFileName=newest)
            return "told_to_the_writer" in portion["LogFileData"]

        wait_for("the login in the log", told)

    def test_snapshot_and_restore(self, server, rds, db):
        """A snapshot is taken of the server that writes; what is made of it has a standby if asked."""
        snapshot = f"{db.name}-1"
        rds.create_db_snapshot(DBInstanceIdentifier=db.name, DBSnapshotIdentifier=snapshot)
        available(rds, snapshot)
        made = restore(server, db, snapshot, f"{db.name}-restored", MultiAZ=True)
        assert has_standby(made)["MultiAZ"]
        assert rows(made) == rows(db)
        made.delete()
        rds.delete_db_snapshot(DBSnapshotIdentifier=snapshot)
        wait_for("the snapshot gone", lambda: gone(rds, snapshot))

    def test_stop_and_start(self, rds, db):
        before, kept = has_standby(db), rows(db)
        assert rds.stop_db_instance(DBInstanceIdentifier=db.name)["DBInstance"]["DBInstanceStatus"] == "stopping"
        stopped = db.wait("stopped")
        assert stopped["Endpoint"] == before["Endpoint"]
        wait_for("both servers down", lambda: not harness.processes(before["DbiResourceId"]))
        with pytest.raises(rds.exceptions.InvalidDBInstanceStateFault, match="stopped DB instance. Start the DB instance"):
            db.modify(MultiAZ=False, wait=False)
        with pytest.raises(rds.exceptions.InvalidDBInstanceStateFault):
            failover(db)
        rds.start_db_instance(DBInstanceIdentifier=db.name)
        db.wait()
        assert has_standby(db)["Endpoint"] == before["Endpoint"]
        assert rows(db) == kept

    def test_back_to_one_zone(self, rds, db):
        before, kept = has_standby(db), rows(db)
        with db.connect() as connection:
            assert db.modify(MultiAZ=False, wait=False)["DBInstanceStatus"] == "modifying"
            now = db.wait()
            assert (now["MultiAZ"], zones(now), now["PendingModifiedValues"]) == (False, (zones(before)[0], None), {})
            assert now["Endpoint"] == before["Endpoint"]
            assert engines.query(connection, "SELECT 1")[0][0] == 1  # the session was not cut
        assert rows(db) == kept
        assert conversion(rds, db) == converted("standard (Single-AZ)")
        with pytest.raises(rds.exceptions.ClientError, match="InvalidParameterCombination.*not configured for multi-AZ"):
            failover(db)

    def test_a_conversion_waits_for_the_window(self, rds, db):
        out = rds.modify_db_instance(DBInstanceIdentifier=db.name, MultiAZ=True)["DBInstance"]
        assert (out["DBInstanceStatus"], out["MultiAZ"], out["PendingModifiedValues"]) == ("available", False, {"MultiAZ": True})
        instances.stable_for(1.5, lambda: (db.status(), zones(db.describe())))
        arn = out["DBInstanceArn"]
        (resource,) = rds.describe_pending_maintenance_actions(ResourceIdentifier=arn)["PendingMaintenanceActions"]
        (action,) = resource["PendingMaintenanceActionDetails"]
        assert "Multi-AZ" in action["Description"]
        out = rds.modify_db_instance(DBInstanceIdentifier=db.name, MultiAZ=False)["DBInstance"]
        assert out["PendingModifiedValues"] == {}
        assert rds.describe_pending_maintenance_actions(ResourceIdentifier=arn)["PendingMaintenanceActions"] == []

    def test_converted_under_a_session(self, rds, db):
        kept, before = rows(db), db.describe()
        with db.connect() as connection:
            assert db.modify(MultiAZ=True, wait=False)["DBInstanceStatus"] == "modifying"
            now = has_standby(db)
            engines.query(connection, "INSERT INTO kept VALUES (2)")
        assert (now["MultiAZ"], now["PendingModifiedValues"], now["Endpoint"]) == (True, {}, before["Endpoint"])
        assert rows(db) == kept | {2}
        assert conversion(rds, db) == converted("Multi-AZ")

    def test_delete_leaves_nothing(self, server, db):
        resource = db.describe()["DbiResourceId"]
        homes = lambda: sorted(p.name for p in (server.data / "instances").glob(resource + "*"))  # noqa: E731
        assert len(homes()) == 2 and harness.processes(resource)
        db.delete()
        assert (homes(), harness.processes(resource), instances.cgroups(resource)) == ([], [], [])


def told(rds, db, category):
    """What the events of one category say, oldest first."""
    events = rds.describe_events(SourceType="db-instance", SourceIdentifier=db.name, EventCategories=[category], Duration=24 * 60)["Events"]
    assert all(category in e["EventCategories"] for e in events), events
    return [e["Message"] for e in events]


def conversion(rds, db):
    """What is told of the newest one."""
    return [m for m in told(rds, db, "configuration change") if " convert to " in m][-2:]


def converted(to):
    """How RDS tells of a conversion."""
    change = f"applying modification to convert to a {to} DB instance"
    return [f"A{change[1:]}", f"Finished {change}"]


def refused(server, engine, code, said, **over):
    with pytest.raises(server.rds.exceptions.ClientError) as caught:
        server.rds.create_db_instance(**instances.request(engine, "never-made", MultiAZ=True, **over))
    error = caught.value.response["Error"]
    assert error["Code"] == code and said in error["Message"], error
    assert not instances.exists(server, "never-made")


def test_not_with_a_zone(server, engine):
    said = "Requesting a specific availability zone is not valid for Multi-AZ instances."
    refused(server, engine, "InvalidParameterCombination", said, AvailabilityZone="us-east-1b")


def test_what_is_offered(server, rds, engine):
    """A class is offered with a standby where the host has the memory for two; else it says so."""
    options = every(rds, "describe_orderable_db_instance_options", "OrderableDBInstanceOptions", Engine=engine.name)
    capable = {o["DBInstanceClass"]: o["MultiAZCapable"] for o in options}
    assert capable[instances.CLASS]
    for name in [c for c, two in capable.items() if not two][:1]:
        refused(server, engine, "InsufficientDBInstanceCapacity", "with a standby", DBInstanceClass=name)
