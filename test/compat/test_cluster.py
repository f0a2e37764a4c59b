"""Multi-AZ DB clusters: a writer and two readers in three zones."""

import botocore.exceptions
import pytest

import clusters
import engines
import instances
import wire
from harness import wait_for
from test_describe import every
from test_lifecycle import far_window

# Every parameter of clusters that this version does not honour, with a value that would change something.
UNSUPPORTED = {
    "AllowEngineModeChange": True, "AllowMajorVersionUpgrade": True, "AssociatedRoles": [{"RoleArn": "arn:aws:iam::1:role/r"}],
    "AwsBackupRecoveryPointArn": "arn:aws:backup:us-east-1:1:recovery-point:x", "BacktrackWindow": 60,
    "ClusterScalabilityType": "limitless",
    "DatabaseInsightsMode": "advanced", "DBInstanceParameterGroupName": "g", "DBSystemId": "s", "Domain": "d-1", "DomainIAMRoleName": "r",
    "EnableGlobalWriteForwarding": True, "EnableHttpEndpoint": True,
    "EnableIAMDatabaseAuthentication": True, "EnableLimitlessDatabase": True, "EnableLocalWriteForwarding": True,
    "EngineLifecycleSupport": "open-source-rds-extended-support", "EngineMode": "serverless",
    "GlobalClusterIdentifier": "g", "KmsKeyId": "k", "MasterUserAuthenticationType": "iam-db-auth",
    "NetworkType": "DUAL",
    "PerformanceInsightsKMSKeyId": "k", "PerformanceInsightsRetentionPeriod": 31, "PubliclyAccessible": True,
    "RdsCustomClusterConfiguration": {"InterconnectSubnetId": "s"}, "ReplicationSourceIdentifier": "s",
    "ScalingConfiguration": {"MinCapacity": 1}, "ServerlessV2ScalingConfiguration": {"MinCapacity": 1.0}, "StorageEncrypted": True,
    "WithExpressConfiguration": True, "EnableVPCNetworking": True, "EnableInternetAccessGateway": True,
}  # fmt: skip

# Honoured, or of another region, which a client makes a request of its own for.
HONOURED = set(
    """DBClusterIdentifier DBClusterInstanceClass Engine EngineVersion AllocatedStorage StorageType Iops MasterUsername MasterUserPassword
    DatabaseName CharacterSetName Port AvailabilityZones DBClusterParameterGroupName OptionGroupName DBSubnetGroupName
    BackupRetentionPeriod PreferredBackupWindow PreferredMaintenanceWindow DeletionProtection CopyTagsToSnapshot AutoMinorVersionUpgrade
    CACertificateIdentifier Tags TagSpecifications ApplyImmediately NewDBClusterIdentifier SnapshotIdentifier RestoreType RestoreToTime
    UseLatestRestorableTime SourceDBClusterIdentifier SourceDbClusterResourceId PreSignedUrl SourceRegion EnablePerformanceInsights
    MonitoringInterval MonitoringRoleArn EnableCloudwatchLogsExports CloudwatchLogsExportConfiguration
    ManageMasterUserPassword MasterUserSecretKmsKeyId RotateMasterUserPassword VpcSecurityGroupIds""".split()
)


def parameters(action):
    return wire.model("rds").operation_model(action).input_shape.members


def refused(code, said, call, **wish):
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        call(**wish)
    error = caught.value.response["Error"]
    assert error["Code"] == code and said in error["Message"], error


@pytest.fixture(scope="module")
def family(rds, engine):
    (version,) = rds.describe_db_engine_versions(Engine=engine.name, DefaultOnly=True)["DBEngineVersions"]
    return version["DBParameterGroupFamily"]


@pytest.mark.parametrize("action", ["CreateDBCluster", "ModifyDBCluster", "RestoreDBClusterFromSnapshot", "RestoreDBClusterToPointInTime"])
def test_the_lists_are_complete(action):
    assert [p for p in parameters(action) if p not in HONOURED | set(UNSUPPORTED)] == []


@pytest.mark.parametrize("name", [n for n in UNSUPPORTED if n in parameters("CreateDBCluster")])
def test_what_cannot_be_honoured(server, rds, postgres, name):
    wish = clusters.request(postgres, "never-made", **{name: UNSUPPORTED[name]})
    refused("InvalidParameterCombination", name, rds.create_db_cluster, **wish)
    assert not clusters.exists(server, "never-made")


@pytest.mark.parametrize(
    "over, code, said",
    [
        ({"DBClusterInstanceClass": None}, "InvalidParameterCombination", "Aurora"),
        ({"DBClusterIdentifier": "a" * 53}, "InvalidParameterValue", "52"),
        ({"DBClusterIdentifier": "a--b"}, "InvalidParameterValue", "DBClusterIdentifier"),
        ({"AvailabilityZones": ["mars-1a"]}, "InvalidVPCNetworkStateFault", "mars-1a"),
        ({"AvailabilityZones": ["us-east-1a"]}, "InvalidParameterValue", "3 different zones"),
        ({"DBClusterParameterGroupName": "nope"}, "DBClusterParameterGroupNotFound", "nope"),
        ({"DBSubnetGroupName": "nope"}, "DBSubnetGroupNotFoundFault", "nope"),
        ({"MasterUserPassword": "short7!"}, "InvalidParameterValue", "shorter than 8"),
        ({"StorageType": "aurora-iopt1"}, "StorageTypeNotSupported", "aurora-iopt1"),
    ],
    ids=lambda v: "+".join(v) if isinstance(v, dict) else None,
)
def test_values(server, rds, engine, over, code, said):
    refused(code, said, rds.create_db_cluster, **clusters.request(engine, **{"DBClusterIdentifier": "never-made", **over}))
    assert not clusters.exists(server, "never-made")


def test_what_is_not_there(rds, server):
    none = {"DBClusterIdentifier": "none"}
    for call in (rds.describe_db_clusters, rds.modify_db_cluster, rds.reboot_db_cluster, rds.start_db_cluster, rds.stop_db_cluster, rds.failover_db_cluster):
        refused("DBClusterNotFoundFault", "none", call, **none)
    refused("DBClusterNotFoundFault", "none", rds.delete_db_cluster, SkipFinalSnapshot=True, **none)
    refused("DBClusterNotFoundFault", "none", rds.create_db_cluster_snapshot, DBClusterSnapshotIdentifier="s", **none)
    for call in (rds.describe_db_cluster_snapshots, rds.delete_db_cluster_snapshot, rds.describe_db_cluster_snapshot_attributes):
        refused("DBClusterSnapshotNotFoundFault", "none", call, DBClusterSnapshotIdentifier="none")
    refused("DBClusterAutomatedBackupNotFoundFault", "cluster-X", rds.delete_db_cluster_automated_backup, DbClusterResourceId="cluster-X")
    refused("DBParameterGroupNotFound", "none", rds.describe_db_cluster_parameters, DBClusterParameterGroupName="none")
    refused("InvalidParameterCombination", "copy-on-write", rds.restore_db_cluster_to_point_in_time, DBClusterIdentifier="x", SourceDBClusterIdentifier="none",
            UseLatestRestorableTime=True, RestoreType="copy-on-write")  # fmt: skip
    refused("InvalidParameterCombination", "made with it", rds.create_db_instance, DBInstanceIdentifier="x", DBInstanceClass=instances.CLASS,
            Engine="postgres", DBClusterIdentifier="none")  # fmt: skip
    assert "DBClusterNotFoundFault" in server.cli("describe-db-clusters", "--db-cluster-identifier", "none", fails=True)


def test_life_of_a_parameter_group(rds, server, family, engine):
    """One of a cluster and one of instances may be called the same, and are two."""
    name = f"group-{family.replace('.', '-')}-c"
    rds.create_db_parameter_group(DBParameterGroupName=name, DBParameterGroupFamily=family, Description="of instances")
    made = rds.create_db_cluster_parameter_group(
        DBClusterParameterGroupName=name, DBParameterGroupFamily=family, Description="mine", Tags=[{"Key": "a", "Value": "b"}]
    )["DBClusterParameterGroup"]
    assert made["DBClusterParameterGroupArn"].endswith(f":cluster-pg:{name}")
    assert rds.list_tags_for_resource(ResourceName=made["DBClusterParameterGroupArn"])["TagList"] == [{"Key": "a", "Value": "b"}]
    one = [{"ParameterName": "max_connections", "ParameterValue": "77", "ApplyMethod": "pending-reboot"}]
    rds.modify_db_cluster_parameter_group(DBClusterParameterGroupName=name, Parameters=one)

    def own(group):
        return [(p["ParameterName"], p["ParameterValue"]) for p in every(rds, "describe_db_cluster_parameters", "Parameters", DBClusterParameterGroupName=group, Source="user")]

    assert own(name) == [("max_connections", "77")]
    assert every(rds, "describe_db_parameters", "Parameters", DBParameterGroupName=name, Source="user") == []
    server.cli("copy-db-cluster-parameter-group", "--source-db-cluster-parameter-group-identifier", name,
               "--target-db-cluster-parameter-group-identifier", f"{name}2", "--target-db-cluster-parameter-group-description", "copy")  # fmt: skip
    rds.copy_db_cluster_parameter_group(
        SourceDBClusterParameterGroupIdentifier=name, TargetDBClusterParameterGroupIdentifier=f"{name}3", TargetDBClusterParameterGroupDescription="copy"
    )
    assert own(f"{name}2") == own(f"{name}3") == own(name)
    server.cli("reset-db-cluster-parameter-group", "--db-cluster-parameter-group-name", name, "--reset-all-parameters")
    rds.reset_db_cluster_parameter_group(DBClusterParameterGroupName=f"{name}2", Parameters=[{k: one[0][k] for k in ("ParameterName", "ApplyMethod")}])
    assert own(name) == own(f"{name}2") == []
    server.cli("modify-db-cluster-parameter-group", "--db-cluster-parameter-group-name", name,
               "--parameters", "ParameterName=max_connections,ParameterValue=78,ApplyMethod=pending-reboot")  # fmt: skip
    shown = server.cli("describe-db-cluster-parameters", "--db-cluster-parameter-group-name", name, "--source", "user")
    assert [p["ParameterValue"] for p in shown["Parameters"]] == ["78"]
    listed = [g["DBClusterParameterGroupName"] for g in every(rds, "describe_db_cluster_parameter_groups", "DBClusterParameterGroups")]
    assert {name, f"{name}2", f"{name}3", f"default.{family}"} <= set(listed)
    assert server.cli("describe-db-cluster-parameter-groups", "--db-cluster-parameter-group-name", name)["DBClusterParameterGroups"]
    defaults = rds.describe_engine_default_cluster_parameters(DBParameterGroupFamily=family)["EngineDefaults"]
    assert defaults["Parameters"] and server.cli("describe-engine-default-cluster-parameters", "--db-parameter-group-family", family)
    refused("InvalidDBParameterGroupState", "Default DBParameterGroup cannot be deleted", rds.delete_db_cluster_parameter_group, DBClusterParameterGroupName=f"default.{family}")
    for group in (name, f"{name}2"):
        rds.delete_db_cluster_parameter_group(DBClusterParameterGroupName=group)
    server.cli("delete-db-cluster-parameter-group", "--db-cluster-parameter-group-name", f"{name}3")
    server.cli("create-db-cluster-parameter-group", "--db-cluster-parameter-group-name", f"{name}4", "--db-parameter-group-family", family, "--description", "d")
    rds.delete_db_cluster_parameter_group(DBClusterParameterGroupName=f"{name}4")
    rds.delete_db_parameter_group(DBParameterGroupName=name)


def test_orderable(server, rds, engine):
    options = every(rds, "describe_orderable_db_instance_options", "OrderableDBInstanceOptions", Engine=engine.name)
    assert {o["SupportsClusters"] for o in options if o["DBInstanceClass"] == instances.CLASS} == {True}
    for name in [o["DBInstanceClass"] for o in options if not o["SupportsClusters"]][:1]:
        wish = clusters.request(engine, DBClusterIdentifier="never-made", DBClusterInstanceClass=name)
        refused("InsufficientDBInstanceCapacity", name, rds.create_db_cluster, **wish)
        assert not clusters.exists(server, "never-made")


@pytest.fixture(scope="class")
def cluster(server, engine):
    wish = clusters.request(
        engine, f"shop-{engine.name}", PreferredMaintenanceWindow=far_window(), Tags=[{"Key": "team", "Value": "blue"}], CopyTagsToSnapshot=True
    )
    server.rds.create_db_cluster(**wish)
    made = clusters.Cluster(server, engine, wish)
    yield made
    if clusters.exists(server, made.name):
        server.rds.modify_db_cluster(DBClusterIdentifier=made.name, DeletionProtection=False)
        made.delete()


def rows(database, **how):
    with database.connect(**how) as connection:
        return [n for (n,) in engines.query(connection, "SELECT n FROM kept ORDER BY n")]


def ask_until_accepted(rds, ask):
    """A failover is refused until a reader has every commit, also of a cluster that is available."""

    def accepted():
        try:
            return ask()
        except rds.exceptions.InvalidDBClusterStateFault as e:
            assert "every commit" in str(e), e

    return wait_for("a failover that is accepted", accepted, 60)


def snapshot(rds, name):
    def reached():
        (now,) = rds.describe_db_cluster_snapshots(DBClusterSnapshotIdentifier=name)["DBClusterSnapshots"]
        assert now["Status"] in ("creating", "copying", "available"), now
        return now if now["Status"] == "available" else None

    return wait_for(f"cluster snapshot {name}", reached, 60)


def accepted(server, *command):
    """A reader may lack a commit for a moment after it was seen to have all; the CLI asks until the call is accepted."""

    def asked():
        try:
            return server.cli(*command)
        except AssertionError as e:
            if "no reader has every commit at the moment" not in str(e):
                raise

    return wait_for(" ".join(command), asked, 60)


class TestCluster:
    def test_available(self, rds, server, cluster):
        rds.get_waiter("db_cluster_available").wait(DBClusterIdentifier=cluster.name, WaiterConfig={"Delay": 1, "MaxAttempts": 120})
        now = cluster.whole()
        names = [f"{cluster.name}-instance-{n}" for n in (1, 2, 3)]
        assert sorted(m["DBInstanceIdentifier"] for m in now["DBClusterMembers"]) == names
        assert [m["IsClusterWriter"] for m in now["DBClusterMembers"]].count(True) == 1
        assert (now["MultiAZ"], now["Engine"], now["TagList"]) == (True, cluster.engine.name, [{"Key": "team", "Value": "blue"}])
        assert len(now["AvailabilityZones"]) == 3 and now["Endpoint"] != now["ReaderEndpoint"]
        for name in names:
            rds.get_waiter("db_instance_available").wait(DBInstanceIdentifier=name, WaiterConfig={"Delay": 1, "MaxAttempts": 60})
        servers = cluster.servers()
        assert sorted(i["AvailabilityZone"] for i in servers.values()) == now["AvailabilityZones"]
        assert {(i["DBClusterIdentifier"], i["MultiAZ"], i["DBInstanceClass"]) for i in servers.values()} == {(cluster.name, False, instances.CLASS)}
        assert len({i["DbiResourceId"] for i in servers.values()} | {now["DbClusterResourceId"]}) == 4
        assert cluster.name not in instances.names(server) and set(names) <= set(instances.names(server))
        assert server.cli("describe-db-clusters", "--db-cluster-identifier", now["DBClusterArn"])["DBClusters"][0]["Status"]

    def test_readers_have_what_the_writer_commits(self, cluster):
        with cluster.connect() as connection:
            engines.query(connection, "CREATE TABLE kept (n int primary key)")
            engines.query(connection, "INSERT INTO kept VALUES (1)")
        wait_for("the row at the reader endpoint", lambda: rows(cluster, reader=True) == [1])
        with pytest.raises(Exception, match="read.only"), cluster.connect(reader=True) as connection:
            engines.query(connection, "INSERT INTO kept VALUES (2)")

    def test_servers_are_not_changed_alone(self, rds, cluster):
        one = {"DBInstanceIdentifier": cluster.readers()[0]}
        for call, wish in [
            (rds.modify_db_instance, {"AllocatedStorage": 30}), (rds.delete_db_instance, {"SkipFinalSnapshot": True}), (rds.stop_db_instance, {}),
            (rds.reboot_db_instance, {}), (rds.create_db_snapshot, {"DBSnapshotIdentifier": "s"}),
        ]:  # fmt: skip
            refused("InvalidDBInstanceState", "belongs to DB cluster", call, **one, **wish)
        refused("InvalidDBInstanceState", "belongs to DB cluster", rds.create_db_instance_read_replica,
                DBInstanceIdentifier="r", SourceDBInstanceIdentifier=one["DBInstanceIdentifier"])  # fmt: skip
        refused("DBInstanceAlreadyExists", "servers of DB cluster", rds.create_db_instance,
                **instances.request(cluster.engine, f"{cluster.name}-instance-9"))  # fmt: skip

    def test_each_server_has_logs_of_its_own(self, rds, cluster):
        for name in cluster.servers():
            files = every(rds, "describe_db_log_files", "DescribeDBLogFiles", DBInstanceIdentifier=name)
            assert files, name
            assert rds.download_db_log_file_portion(DBInstanceIdentifier=name, LogFileName=files[0]["LogFileName"], Marker="0")["LogFileData"]

    def test_failover(self, rds, server, cluster):
        cluster.whole()
        before, target = cluster.writer(), cluster.readers()[-1]
        refused("InvalidDBClusterStateFault", "writer", rds.failover_db_cluster, DBClusterIdentifier=cluster.name, TargetDBInstanceIdentifier=before)
        refused("InvalidDBClusterStateFault", "not a server", rds.failover_db_cluster, DBClusterIdentifier=cluster.name, TargetDBInstanceIdentifier="other")
        ask_until_accepted(rds, lambda: rds.failover_db_cluster(DBClusterIdentifier=cluster.name, TargetDBInstanceIdentifier=target))
        wait_for(f"{target} writes", lambda: cluster.writer() == target, 60)
        cluster.whole()
        assert rows(cluster) == [1]
        accepted(server, "failover-db-cluster", "--db-cluster-identifier", cluster.name)
        wait_for("another writer", lambda: cluster.writer() != target, 60)
        cluster.whole()
        events = every(rds, "describe_events", "Events", SourceType="db-cluster", SourceIdentifier=cluster.name, EventCategories=["failover"])
        said = [e["Message"] for e in events]
        for what in ("Started cross AZ failover to DB instance: ", "Completed failover to DB instance: "):
            assert any(m.startswith(what + target) for m in said), said
        assert {e["SourceArn"] for e in events} == {cluster.describe()["DBClusterArn"]}
        created = every(rds, "describe_events", "Events", SourceType="db-cluster", SourceIdentifier=cluster.name, EventCategories=["creation"])
        assert [e["Message"] for e in created] == ["DB cluster created"]

    def test_modify(self, rds, server, cluster):
        out = rds.modify_db_cluster(DBClusterIdentifier=cluster.name, AllocatedStorage=25, ApplyImmediately=True)["DBCluster"]
        assert out["DBClusterIdentifier"] == cluster.name
        cluster.whole()
        assert cluster.describe()["AllocatedStorage"] == 25
        server.cli("modify-db-cluster", "--db-cluster-identifier", cluster.name, "--deletion-protection")
        refused("InvalidParameterCombination", "disable deletion protection", rds.delete_db_cluster, DBClusterIdentifier=cluster.name, SkipFinalSnapshot=True)
        rds.modify_db_cluster(DBClusterIdentifier=cluster.name, DeletionProtection=False)

    def test_reboot(self, rds, server, cluster):
        for reboot in (lambda: rds.reboot_db_cluster(DBClusterIdentifier=cluster.name), lambda: server.cli("reboot-db-cluster", "--db-cluster-identifier", cluster.name)):
            cluster.whole()
            reboot()
            assert cluster.describe()["Status"] in ("rebooting", "available")
        cluster.whole()
        assert rows(cluster) == [1]

    def test_snapshots(self, rds, server, cluster):
        cluster.whole()
        name = f"kept-{cluster.engine.name}"
        made = rds.create_db_cluster_snapshot(DBClusterSnapshotIdentifier=name, DBClusterIdentifier=cluster.name)["DBClusterSnapshot"]
        assert made["Status"] == "creating" and {"Key": "team", "Value": "blue"} in made["TagList"]
        rds.get_waiter("db_cluster_snapshot_available").wait(DBClusterSnapshotIdentifier=name, WaiterConfig={"Delay": 1, "MaxAttempts": 60})
        told = every(rds, "describe_events", "Events", SourceType="db-cluster-snapshot", SourceIdentifier=name)
        assert [(e["Message"], e["EventCategories"]) for e in told] == [
            ("Creating manual cluster snapshot", ["backup"]), ("Manual cluster snapshot created", ["backup"]),
        ]
        server.cli("create-db-cluster-snapshot", "--db-cluster-snapshot-identifier", f"{name}-cli", "--db-cluster-identifier", cluster.name)
        snapshot(rds, f"{name}-cli")
        rds.copy_db_cluster_snapshot(SourceDBClusterSnapshotIdentifier=name, TargetDBClusterSnapshotIdentifier=f"{name}-2", CopyTags=True)
        server.cli("copy-db-cluster-snapshot", "--source-db-cluster-snapshot-identifier", name, "--target-db-cluster-snapshot-identifier", f"{name}-3")
        for copy in (f"{name}-2", f"{name}-3"):
            assert snapshot(rds, copy)["SourceDBClusterSnapshotArn"] == made["DBClusterSnapshotArn"]
        listed = every(rds, "describe_db_cluster_snapshots", "DBClusterSnapshots", DBClusterIdentifier=cluster.name, SnapshotType="manual")
        assert {s["DBClusterSnapshotIdentifier"] for s in listed} == {name, f"{name}-cli", f"{name}-2", f"{name}-3"}
        assert server.cli("describe-db-cluster-snapshots", "--db-cluster-snapshot-identifier", name)["DBClusterSnapshots"]
        refused("DBSnapshotNotFound", name, rds.describe_db_snapshots, DBSnapshotIdentifier=name)
        shown = rds.describe_db_cluster_snapshot_attributes(DBClusterSnapshotIdentifier=name)["DBClusterSnapshotAttributesResult"]
        assert shown["DBClusterSnapshotAttributes"] == [{"AttributeName": "restore", "AttributeValues": []}]
        assert server.cli("describe-db-cluster-snapshot-attributes", "--db-cluster-snapshot-identifier", name)
        rds.delete_db_cluster_snapshot(DBClusterSnapshotIdentifier=f"{name}-2")
        for other in (f"{name}-3", f"{name}-cli"):
            server.cli("delete-db-cluster-snapshot", "--db-cluster-snapshot-identifier", other)
        rds.get_waiter("db_cluster_snapshot_deleted").wait(DBClusterSnapshotIdentifier=f"{name}-2", WaiterConfig={"Delay": 1, "MaxAttempts": 60})

    def test_restore_of_a_snapshot(self, rds, server, cluster):
        name, wish = f"kept-{cluster.engine.name}", {"Engine": cluster.engine.name, "BackupRetentionPeriod": 1}
        again = clusters.restored(server, cluster, f"again-{cluster.engine.name}")
        rds.restore_db_cluster_from_snapshot(DBClusterIdentifier=again.name, SnapshotIdentifier=name, DBClusterInstanceClass=instances.CLASS, **wish)
        again.whole()
        assert rows(again) == [1]
        again.delete()
        single = instances.Instance(server, cluster.engine, {"DBInstanceIdentifier": f"single-{cluster.engine.name}", "MasterUsername": cluster.user, "MasterUserPassword": cluster.password})
        rds.restore_db_instance_from_db_snapshot(DBInstanceIdentifier=single.name, DBClusterSnapshotIdentifier=name, BackupRetentionPeriod=0)
        single.wait()
        assert rows(single) == [1] and single.describe()["MultiAZ"] is False
        rds.create_db_snapshot(DBInstanceIdentifier=single.name, DBSnapshotIdentifier=single.name)
        rds.get_waiter("db_snapshot_available").wait(DBSnapshotIdentifier=single.name, WaiterConfig={"Delay": 1, "MaxAttempts": 60})
        arn = rds.describe_db_snapshots(DBSnapshotIdentifier=single.name)["DBSnapshots"][0]["DBSnapshotArn"]
        single.delete()
        grown = clusters.restored(server, cluster, f"grown-{cluster.engine.name}")
        server.cli("restore-db-cluster-from-snapshot", "--db-cluster-identifier", grown.name, "--snapshot-identifier", arn, "--engine", cluster.engine.name,
                   "--db-cluster-instance-class", instances.CLASS)  # fmt: skip
        grown.whole()
        assert rows(grown) == [1]
        grown.delete()
        rds.delete_db_snapshot(DBSnapshotIdentifier=single.name)
        rds.delete_db_cluster_snapshot(DBClusterSnapshotIdentifier=name)

    def test_restore_to_a_moment(self, rds, server, cluster):
        wait_for("a moment that can be restored", lambda: cluster.describe().get("LatestRestorableTime"), 120)
        cluster.whole()
        now = cluster.describe()
        assert now["EarliestRestorableTime"] <= now["LatestRestorableTime"]
        (backup,) = rds.describe_db_cluster_automated_backups(DBClusterIdentifier=cluster.name)["DBClusterAutomatedBackups"]
        assert (backup["Status"], backup["DbClusterResourceId"]) == ("active", now["DbClusterResourceId"])
        assert server.cli("describe-db-cluster-automated-backups", "--db-cluster-identifier", cluster.name)["DBClusterAutomatedBackups"]
        automated = every(rds, "describe_db_cluster_snapshots", "DBClusterSnapshots", DBClusterIdentifier=cluster.name, SnapshotType="automated")
        assert automated and all(s["DBClusterSnapshotIdentifier"].startswith(f"rds:{cluster.name}-") for s in automated)
        one, two = (clusters.restored(server, cluster, f"{p}-{cluster.engine.name}") for p in ("point", "point-cli"))
        rds.restore_db_cluster_to_point_in_time(DBClusterIdentifier=one.name, SourceDBClusterIdentifier=cluster.name, UseLatestRestorableTime=True, RestoreType="full-copy")
        one.whole()
        assert rows(one) == [1]
        one.delete()
        server.cli("restore-db-cluster-to-point-in-time", "--db-cluster-identifier", two.name, "--source-db-cluster-identifier", cluster.name, "--use-latest-restorable-time")
        two.whole()
        two.delete()

    def test_stop_and_start(self, rds, server, cluster):
        for stop, start in (
            (lambda: rds.stop_db_cluster(DBClusterIdentifier=cluster.name), lambda: rds.start_db_cluster(DBClusterIdentifier=cluster.name)),
            (lambda: server.cli("stop-db-cluster", "--db-cluster-identifier", cluster.name), lambda: server.cli("start-db-cluster", "--db-cluster-identifier", cluster.name)),
        ):
            cluster.whole()
            stop()
            wait_for("stopped", lambda: cluster.describe()["Status"] == "stopped", 60)
            start()
        cluster.whole()
        assert rows(cluster) == [1]

    def test_delete(self, rds, server, cluster):
        final, id = f"last-{cluster.engine.name}", cluster.describe()["DbClusterResourceId"]
        refused("InvalidParameterCombination", "FinalDBSnapshotIdentifier", rds.delete_db_cluster, DBClusterIdentifier=cluster.name)
        rds.delete_db_cluster(DBClusterIdentifier=cluster.name, FinalDBSnapshotIdentifier=final, DeleteAutomatedBackups=False)
        rds.get_waiter("db_cluster_deleted").wait(DBClusterIdentifier=cluster.name, WaiterConfig={"Delay": 1, "MaxAttempts": 120})
        assert [n for n in instances.names(server) if n.startswith(f"{cluster.name}-instance")] == []
        assert snapshot(rds, final)["SnapshotType"] == "manual"
        assert rds.delete_db_cluster_automated_backup(DbClusterResourceId=id)["DBClusterAutomatedBackup"]["Status"] == "deleting"
        rds.delete_db_cluster_snapshot(DBClusterSnapshotIdentifier=final)

    def test_with_the_cli_alone(self, server, rds, engine):
        name = f"cli-{engine.name}"
        out = server.cli("create-db-cluster", "--db-cluster-identifier", name, "--engine", engine.name, "--db-cluster-instance-class", instances.CLASS,
                         "--allocated-storage", "20", "--master-username", "boss", "--master-user-password", engines.new_password())["DBCluster"]  # fmt: skip
        rds.get_waiter("db_cluster_available").wait(DBClusterIdentifier=name, WaiterConfig={"Delay": 1, "MaxAttempts": 120})
        wait_for("backups", lambda: rds.describe_db_clusters(DBClusterIdentifier=name)["DBClusters"][0].get("LatestRestorableTime"), 120)
        wait_for("available", lambda: rds.describe_db_clusters(DBClusterIdentifier=name)["DBClusters"][0]["Status"] == "available", 60)
        server.cli("delete-db-cluster", "--db-cluster-identifier", name, "--skip-final-snapshot", "--no-delete-automated-backups")
        wait_for("gone", lambda: not clusters.exists(server, name), 60)
        server.cli("delete-db-cluster-automated-backup", "--db-cluster-resource-id", out["DbClusterResourceId"])
