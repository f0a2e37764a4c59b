"""One instance from its creation to its end, with what the database itself says
at each step. The tests of the class share it and run in order."""

import concurrent.futures
import datetime
import os
import time

import botocore.exceptions
import pytest

import engines
import harness
import instances
from instances import BIGGER, CLASS, GIB, wait_for

PORT = 6543


@pytest.fixture(scope="class")
def db(server, engine):
    return instances.create(server, engine, wait=False, BackupRetentionPeriod=1, name=f"Life-{engine.name}")


@pytest.fixture(scope="class")
def group(rds, engine):
    """A parameter group of the engine's family."""
    (version,) = rds.describe_db_engine_versions(Engine=engine.name, DefaultOnly=True)["DBEngineVersions"]
    name = f"life-{engine.name}"
    rds.create_db_parameter_group(DBParameterGroupName=name, DBParameterGroupFamily=version["DBParameterGroupFamily"], Description="d")
    return name


@pytest.fixture(scope="class")
def formula(rds, db):
    """The text of the formula parameter's default."""
    (group,) = db.describe()["DBParameterGroups"]
    wish = {"DBParameterGroupName": group["DBParameterGroupName"], "Filters": [{"Name": "parameter-name", "Values": [db.engine.formula]}]}
    (parameter,) = rds.describe_db_parameters(**wish)["Parameters"]
    return parameter["ParameterValue"]


def set_parameter(rds, group, name, value, method):
    rds.modify_db_parameter_group(
        DBParameterGroupName=group, Parameters=[{"ParameterName": name, "ParameterValue": value, "ApplyMethod": method}]
    )


def apply_status(db):
    (group,) = db.describe()["DBParameterGroups"]
    return group["ParameterApplyStatus"]


class TestLifecycle:
    def test_waiter_sees_it_available(self, rds, db, engine):
        rds.get_waiter("db_instance_available").wait(DBInstanceIdentifier=db.name, WaiterConfig={"Delay": 1, "MaxAttempts": 60})
        with db.connect() as connection:
            engines.query(connection, "CREATE TABLE kept (n int)")
            engines.query(connection, "INSERT INTO kept VALUES (42)")
            assert engines.query(connection, "SELECT n FROM kept")[0][0] == 42

    def test_wrong_password_is_refused(self, db, engine):
        with pytest.raises(engine.refused()):
            with db.connect(password="not-the-password"):
                pass

    def test_tls_with_the_ca_of_the_service(self, server, db):
        status, _, pem = server.send("GET", "/ca.pem")
        assert status == 200
        path = server.folder / "ca.pem"
        path.write_text(pem)
        with db.connect(ca=str(path)) as connection:
            assert engines.query(connection, "SELECT 1")[0][0] == 1

    def test_formula_follows_the_class_up_and_down(self, db, engine, formula):
        assert int(db.setting(engine.formula)) == engines.evaluate(formula, GIB)
        out = db.modify(DBInstanceClass=BIGGER)
        assert out["DBInstanceStatus"] == "modifying"
        now = db.describe()
        assert (now["DBInstanceClass"], now["PendingModifiedValues"]) == (BIGGER, {})
        assert int(db.setting(engine.formula)) == engines.evaluate(formula, 2 * GIB)
        db.modify(DBInstanceClass=CLASS)
        assert int(db.setting(engine.formula)) == engines.evaluate(formula, GIB)

    def test_storage_grows_and_never_shrinks(self, rds, db):
        db.modify(AllocatedStorage=25)
        assert db.describe()["AllocatedStorage"] == 25
        with pytest.raises(rds.exceptions.ClientError, match="InvalidParameterCombination.*cannot shrink"):
            db.modify(AllocatedStorage=24, wait=False)

    def test_password(self, db, engine):
        old, new = db.password, engines.new_password()
        out = db.modify(MasterUserPassword=new)
        assert out["DBInstanceStatus"] == "resetting-master-credentials"
        assert out["PendingModifiedValues"] == {"MasterUserPassword": "****"}
        assert db.describe()["PendingModifiedValues"] == {}
        with pytest.raises(engine.refused()):
            with db.connect(password=old):
                pass
        db.password = new
        with db.connect() as connection:
            assert engines.query(connection, "SELECT n FROM kept")[0][0] == 42

    def test_port(self, db, engine):
        db.modify(DBPortNumber=PORT)
        assert db.describe()["Endpoint"]["Port"] == PORT
        assert int(db.setting("port")) == PORT

    def test_what_needs_no_server(self, rds, db):
        """Windows, retention and the like change at once and leave it available."""
        wish = {
            "BackupRetentionPeriod": 7, "PreferredBackupWindow": far_daily(), "PreferredMaintenanceWindow": far_window(),
            "CopyTagsToSnapshot": True, "AutoMinorVersionUpgrade": False, "MaxAllocatedStorage": 100,
        }  # fmt: skip
        out = rds.modify_db_instance(DBInstanceIdentifier=db.name, **wish)["DBInstance"]
        for seen in (out, db.describe()):
            assert {k: seen.get(k) for k in wish} == wish
            assert (seen["DBInstanceStatus"], seen["PendingModifiedValues"]) == ("available", {})
        rds.modify_db_instance(DBInstanceIdentifier=db.name, MaxAllocatedStorage=0)
        assert "MaxAllocatedStorage" not in db.describe()

    def test_deletion_protection(self, rds, db):
        rds.modify_db_instance(DBInstanceIdentifier=db.name, DeletionProtection=True)
        with pytest.raises(rds.exceptions.ClientError, match="InvalidParameterCombination.*disable deletion pro"):
            rds.delete_db_instance(DBInstanceIdentifier=db.name, SkipFinalSnapshot=True)
        rds.modify_db_instance(DBInstanceIdentifier=db.name, DeletionProtection=False)
        assert db.describe()["DBInstanceStatus"] == "available"

    def test_what_waits_for_the_window(self, rds, db):
        before = db.describe()
        out = rds.modify_db_instance(DBInstanceIdentifier=db.name, DBInstanceClass=BIGGER, AllocatedStorage=30)["DBInstance"]
        waiting = {"DBInstanceClass": BIGGER, "AllocatedStorage": 30}
        assert (out["PendingModifiedValues"], out["DBInstanceStatus"]) == (waiting, "available")
        instances.stable_for(1.5, lambda: {k: v for k, v in db.describe().items() if k != "LatestRestorableTime"})
        now = db.describe()
        assert (now["DBInstanceClass"], now["AllocatedStorage"]) == (before["DBInstanceClass"], before["AllocatedStorage"])
        (resource,) = rds.describe_pending_maintenance_actions(ResourceIdentifier=now["DBInstanceArn"])["PendingMaintenanceActions"]
        (action,) = resource["PendingMaintenanceActionDetails"]
        assert (action["Action"], action["OptInStatus"]) == ("system-update", "next-maintenance")
        assert action["CurrentApplyDate"] > datetime.datetime.now(datetime.UTC)

    def test_taking_it_back(self, rds, db):
        now = db.describe()
        out = rds.modify_db_instance(
            DBInstanceIdentifier=db.name, DBInstanceClass=now["DBInstanceClass"], AllocatedStorage=now["AllocatedStorage"]
        )["DBInstance"]
        assert out["PendingModifiedValues"] == {}
        assert rds.describe_pending_maintenance_actions(ResourceIdentifier=now["DBInstanceArn"])["PendingMaintenanceActions"] == []

    def test_apply_pending_maintenance_action(self, rds, db, engine, formula):
        rds.modify_db_instance(DBInstanceIdentifier=db.name, DBInstanceClass=BIGGER)
        wish = {"ResourceIdentifier": db.describe()["DBInstanceArn"], "ApplyAction": "system-update"}
        rds.apply_pending_maintenance_action(OptInType="next-maintenance", **wish)
        assert db.describe()["PendingModifiedValues"] == {"DBInstanceClass": BIGGER}
        out = rds.apply_pending_maintenance_action(OptInType="immediate", **wish)["ResourcePendingMaintenanceActions"]
        assert out["PendingMaintenanceActionDetails"][0]["OptInStatus"] == "immediate"
        assert db.wait()["DBInstanceClass"] == BIGGER
        assert int(db.setting(engine.formula)) == engines.evaluate(formula, 2 * GIB)
        with pytest.raises(rds.exceptions.ResourceNotFoundFault):
            rds.apply_pending_maintenance_action(OptInType="immediate", **wish)

    def test_the_window_opens(self, rds, db):
        rds.modify_db_instance(DBInstanceIdentifier=db.name, DBInstanceClass=CLASS)
        assert db.describe()["PendingModifiedValues"] == {"DBInstanceClass": CLASS}
        rds.modify_db_instance(DBInstanceIdentifier=db.name, PreferredBackupWindow=far_daily(), PreferredMaintenanceWindow=open_window())
        wait_for("the class of the window", lambda: db.describe()["DBInstanceClass"] == CLASS)
        assert db.wait()["PendingModifiedValues"] == {}
        rds.modify_db_instance(DBInstanceIdentifier=db.name, PreferredMaintenanceWindow=far_window())

    def test_parameter_group_is_attached(self, rds, db, group, engine):
        name, value, said = engine.static
        set_parameter(rds, group, name, value, "pending-reboot")
        before = db.setting(name)
        rds.modify_db_instance(DBInstanceIdentifier=db.name, DBParameterGroupName=group)
        wait_for("pending-reboot", lambda: apply_status(db) == "pending-reboot")
        assert db.describe()["DBInstanceStatus"] == "available"
        assert db.setting(name) == before != said

    def test_reboot(self, rds, db, engine):
        name, _, said = engine.static
        out = rds.reboot_db_instance(DBInstanceIdentifier=db.name)["DBInstance"]
        assert out["DBInstanceStatus"] == "rebooting"
        rds.get_waiter("db_instance_available").wait(DBInstanceIdentifier=db.name, WaiterConfig={"Delay": 1, "MaxAttempts": 60})
        assert (apply_status(db), db.setting(name)) == ("in-sync", said)

    def test_dynamic_parameter_needs_no_reboot(self, rds, db, group, engine):
        name, value, said = engine.dynamic
        with db.connect() as connection:
            set_parameter(rds, group, name, value, "immediate")
            wait_for("the new value", lambda: db.setting(name) == said)
            assert engines.query(connection, "SELECT 1")  # the connection was not cut
        wait_for("in-sync", lambda: apply_status(db) == "in-sync")
        rds.reset_db_parameter_group(DBParameterGroupName=group, Parameters=[{"ParameterName": name, "ApplyMethod": "immediate"}])
        wait_for("the default", lambda: db.setting(name) != said)

    def test_static_parameter_waits(self, rds, db, group, engine):
        name, _, said = engine.static
        set_parameter(rds, group, name, "88", "pending-reboot")
        wait_for("pending-reboot", lambda: apply_status(db) == "pending-reboot")
        assert db.setting(name) == said
        rds.reset_db_parameter_group(DBParameterGroupName=group, ResetAllParameters=True)
        rds.reboot_db_instance(DBInstanceIdentifier=db.name)
        db.wait()
        assert apply_status(db) == "in-sync" and db.setting(name) not in (said, "88")

    def test_rename(self, rds, server, db):
        before, old = db.describe(), db.name
        rds.modify_db_instance(DBInstanceIdentifier=old, NewDBInstanceIdentifier=old + "-Renamed", ApplyImmediately=True)
        wait_for("the old name gone", lambda: not instances.exists(server, old))
        db.name = old + "-renamed"
        after = db.wait()
        for same in ("DbiResourceId", "Endpoint", "InstanceCreateTime"):
            assert after[same] == before[same]
        assert after["DBInstanceArn"].endswith(":" + db.name)
        with db.connect() as connection:
            assert engines.query(connection, "SELECT n FROM kept")[0][0] == 42
        instances.create(server, db.engine, wait=False, name=old).delete()  # the old name is free

    def test_rename_that_waits_holds_both_names(self, rds, server, db):
        rds.modify_db_instance(DBInstanceIdentifier=db.name, NewDBInstanceIdentifier="reserved-name")
        assert db.describe()["PendingModifiedValues"] == {"DBInstanceIdentifier": "reserved-name"}
        with pytest.raises(rds.exceptions.DBInstanceAlreadyExistsFault):
            rds.create_db_instance(**instances.request(db.engine, "reserved-name"))
        rds.modify_db_instance(DBInstanceIdentifier=db.name, NewDBInstanceIdentifier=db.name)
        assert db.describe()["PendingModifiedValues"] == {}

    def test_stop_and_start(self, rds, db, engine):
        endpoint = db.describe()["Endpoint"]
        assert rds.stop_db_instance(DBInstanceIdentifier=db.name)["DBInstance"]["DBInstanceStatus"] == "stopping"
        stopped = db.wait("stopped")
        assert stopped["AutomaticRestartTime"] > datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=6)
        assert stopped["Endpoint"] == endpoint
        with pytest.raises(engine.refused()):
            with db.connect():
                pass
        with pytest.raises(rds.exceptions.InvalidDBInstanceStateFault):
            rds.stop_db_instance(DBInstanceIdentifier=db.name)
        with pytest.raises(rds.exceptions.InvalidDBInstanceStateFault):
            rds.reboot_db_instance(DBInstanceIdentifier=db.name)
        assert rds.start_db_instance(DBInstanceIdentifier=db.name)["DBInstance"]["DBInstanceStatus"] == "starting"
        started = db.wait()
        assert started["Endpoint"] == endpoint and "AutomaticRestartTime" not in started
        with pytest.raises(rds.exceptions.InvalidDBInstanceStateFault):
            rds.start_db_instance(DBInstanceIdentifier=db.name)
        with db.connect() as connection:
            assert engines.query(connection, "SELECT n FROM kept")[0][0] == 42

    def test_delete_leaves_nothing(self, rds, server, db, engine, group):
        last = db.describe()
        folder = server.data / "instances" / last["DbiResourceId"]
        assert folder.is_dir() and harness.processes(last["DbiResourceId"])
        with pytest.raises(rds.exceptions.InvalidDBParameterGroupStateFault):
            rds.delete_db_parameter_group(DBParameterGroupName=group)
        for wish in ({}, {"SkipFinalSnapshot": True, "FinalDBSnapshotIdentifier": "f"}):
            with pytest.raises(rds.exceptions.ClientError, match="InvalidParameterCombination"):
                rds.delete_db_instance(DBInstanceIdentifier=db.name, **wish)
        out = rds.delete_db_instance(DBInstanceIdentifier=db.name, SkipFinalSnapshot=True, DeleteAutomatedBackups=True)["DBInstance"]
        assert out["DBInstanceStatus"] == "deleting"
        try:
            rds.delete_db_instance(DBInstanceIdentifier=db.name, SkipFinalSnapshot=True)
            pytest.fail("deleted twice")
        except rds.exceptions.InvalidDBInstanceStateFault as e:
            assert "is already being deleted" in str(e)
        except rds.exceptions.DBInstanceNotFoundFault:
            pass  # it was that quick
        rds.get_waiter("db_instance_deleted").wait(DBInstanceIdentifier=db.name, WaiterConfig={"Delay": 1, "MaxAttempts": 60})
        assert not folder.exists()
        assert harness.processes(last["DbiResourceId"]) == []
        assert instances.cgroups(last["DbiResourceId"]) == []
        with pytest.raises(engine.refused()):
            with engine.connect(last["Endpoint"], db.user, db.password, "app"):
                pass
        assert rds.describe_db_instances(Filters=[{"Name": "dbi-resource-id", "Values": [last["DbiResourceId"]]}])["DBInstances"] == []
        rds.delete_db_parameter_group(DBParameterGroupName=group)

    def test_history(self, rds, db):
        events = rds.describe_events(SourceType="db-instance", SourceIdentifier=db.name, Duration=60)["Events"]
        told = " | ".join(e["Message"] for e in events)
        for what in ("created", "restarted", "stopped", "started", "deleted", "Reset master credentials"):
            assert what in told, told
        assert [e["Date"] for e in events] == sorted(e["Date"] for e in events)


def window(start, length=datetime.timedelta(minutes=30)):
    day = lambda t: t.strftime("%a:%H:%M").lower()  # noqa: E731
    return f"{day(start)}-{day(start + length)}"


def far_window():
    """A maintenance window three days away."""
    return window(datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=3))


def open_window():
    return window(datetime.datetime.now(datetime.UTC) - datetime.timedelta(minutes=5))


def far_daily():
    start = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=8)
    return f"{start:%H:%M}-{start + datetime.timedelta(minutes=30):%H:%M}"


def test_two_creates_of_one_name(server, rds, engine):
    """Many at once, in other cases of letters: exactly one wins."""
    spellings = ["Race", "race", "RACE", "rAce", "raCe", "racE"]

    def attempt(name):
        try:
            rds.create_db_instance(**instances.request(engine, name))
            return "created"
        except rds.exceptions.DBInstanceAlreadyExistsFault:
            return "exists"

    with concurrent.futures.ThreadPoolExecutor(len(spellings)) as pool:
        outcomes = sorted(pool.map(attempt, spellings))
    assert outcomes == ["created"] + ["exists"] * 5
    assert [n for n in instances.names(server) if n == "race"] == ["race"]
    rds.delete_db_instance(DBInstanceIdentifier="rAce", SkipFinalSnapshot=True)
    wait_for("race gone", lambda: not instances.exists(server, "race"))


def test_crashed_engine_comes_back(server, resident, engine):
    """kill -9 of the server process: up again, data kept, an event says so."""
    now = resident.describe()
    with resident.connect() as connection:
        engines.query(connection, "CREATE TABLE IF NOT EXISTS acknowledged (n int)")
        engines.query(connection, "INSERT INTO acknowledged VALUES (1)")
    for pid in harness.processes(now["DbiResourceId"]):
        try:
            os.kill(pid, 9)
        except ProcessLookupError:
            pass
    began = time.monotonic()

    def back():
        try:
            with resident.connect() as connection:
                return engines.query(connection, "SELECT count(*) FROM acknowledged")
        except engine.refused():
            return None

    assert wait_for("login after a crash", back)[0][0] >= 1
    assert time.monotonic() - began < 5
    resident.wait()
    events = server.rds.describe_events(SourceType="db-instance", SourceIdentifier=resident.name)["Events"]
    assert any("ended unexpectedly" in e["Message"] for e in events)


def test_incompatible_parameters_and_back(server, rds, postgres):
    """A server that cannot start with its parameters says so, and comes back once
    the group is mended; botocore's waiter fails on that status."""
    rds.create_db_parameter_group(DBParameterGroupName="broken", DBParameterGroupFamily="postgres15", Description="d")
    set_parameter(rds, "broken", "min_wal_size", "2", "pending-reboot")  # the server wants two segments of log
    db = instances.create(server, postgres, wait=False, DBParameterGroupName="broken")
    waiter = rds.get_waiter("db_instance_available")
    with pytest.raises(botocore.exceptions.WaiterError, match="incompatible-parameters"):
        waiter.wait(DBInstanceIdentifier=db.name, WaiterConfig={"Delay": 1, "MaxAttempts": 60})
    events = rds.describe_events(SourceType="db-instance", SourceIdentifier=db.name)["Events"]
    assert any("cannot start with its parameters" in e["Message"] for e in events), events
    rds.reset_db_parameter_group(DBParameterGroupName="broken", ResetAllParameters=True)
    wait_for("available again", lambda: db.status() == "available")
    db.delete()
    rds.delete_db_parameter_group(DBParameterGroupName="broken")
