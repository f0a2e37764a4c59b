"""What was asked for comes back unchanged, so that declarative tools plan nothing."""

import pytest

import engines
import harness
import instances

# What Terraform's aws_db_instance reads; a missing one is planned as a change.
READ_BY_TERRAFORM = """AllocatedStorage AutoMinorVersionUpgrade AvailabilityZone BackupRetentionPeriod BackupTarget
PreferredBackupWindow CACertificateIdentifier CharacterSetName CopyTagsToSnapshot CustomerOwnedIpEnabled DatabaseInsightsMode DBInstanceArn
DBInstanceClass DBInstanceIdentifier DBInstanceStatus DBName DBSubnetGroup DBParameterGroups DedicatedLogVolume DeletionProtection
DbiResourceId Endpoint Engine EngineLifecycleSupport EngineVersion IAMDatabaseAuthenticationEnabled LicenseModel MasterUsername
MonitoringInterval MultiAZ NetworkType OptionGroupMemberships PerformanceInsightsEnabled PreferredMaintenanceWindow
PubliclyAccessible StorageEncrypted StorageType TagList VpcSecurityGroups ReadReplicaDBInstanceIdentifiers InstanceCreateTime""".split()

TAGS = [{"Key": k, "Value": v} for k, v in [("zebra", "1"), ("Apple", ""), ("mango", "ü = & <3"), ("zebra2", "x" * 256)]]


@pytest.fixture(scope="module")
def asked(server, rds, engine):
    """An instance for which everything was asked that can be, and what was asked."""
    (version,) = rds.describe_db_engine_versions(Engine=engine.name, DefaultOnly=True, ListSupportedCharacterSets=True)["DBEngineVersions"]
    (ca,) = rds.describe_certificates()["Certificates"]
    rds.create_db_parameter_group(
        DBParameterGroupName=f"Echo-{engine.name}", DBParameterGroupFamily=version["DBParameterGroupFamily"], Description="d"
    )
    rds.create_db_subnet_group(
        DBSubnetGroupName=f"echo {engine.name}", DBSubnetGroupDescription="d", SubnetIds=["subnet-us-east-1a", "subnet-us-east-1b"]
    )
    wish = instances.request(
        engine, f"Echo-{engine.name}", DBName="EchoDb" if engine.name == "mariadb" else "echodb", MasterUsername="BossLady", Port=7001,
        EngineVersion=version["EngineVersion"], AllocatedStorage=33, StorageType="local", MaxAllocatedStorage=44,
        CharacterSetName=version["SupportedCharacterSets"][-1]["CharacterSetName"], AvailabilityZone="us-east-1b",
        DBParameterGroupName=f"echo-{engine.name}", DBSubnetGroupName=f"echo {engine.name}",
        OptionGroupName=f"default:{engine.name}-{version['MajorEngineVersion'].replace('.', '-')}",
        BackupRetentionPeriod=0, PreferredBackupWindow="23:45-00:15", PreferredMaintenanceWindow="sat:23:00-sat:23:30",
        CopyTagsToSnapshot=True, AutoMinorVersionUpgrade=False, CACertificateIdentifier=ca["CertificateIdentifier"],
        LicenseModel=engine.license, Tags=TAGS,
        MonitoringInterval=1, MonitoringRoleArn="arn:aws:iam::123456789012:role/monitoring",
        EnableCloudwatchLogsExports=version["ExportableLogTypes"],
    )  # fmt: skip
    first = rds.create_db_instance(**wish)["DBInstance"]
    db = instances.Instance(server, engine, wish)
    db.wait()
    yield db, wish, first
    db.delete()
    rds.delete_db_parameter_group(DBParameterGroupName=f"echo-{engine.name}")
    rds.delete_db_subnet_group(DBSubnetGroupName=f"echo {engine.name}")


def check_echo(wish, out):
    same = """MasterUsername DBName AllocatedStorage StorageType MaxAllocatedStorage EngineVersion CharacterSetName LicenseModel
    BackupRetentionPeriod PreferredBackupWindow PreferredMaintenanceWindow CopyTagsToSnapshot AutoMinorVersionUpgrade
    CACertificateIdentifier Engine DBInstanceClass""".split()
    assert {k: out.get(k) for k in same} == {k: wish[k] for k in same}
    assert out["DBInstanceIdentifier"] == wish["DBInstanceIdentifier"].lower()
    assert out["TagList"] == TAGS
    assert [g["DBParameterGroupName"] for g in out["DBParameterGroups"]] == [wish["DBParameterGroupName"]]
    assert out["OptionGroupMemberships"] == [{"OptionGroupName": wish["OptionGroupName"], "Status": "in-sync"}]
    assert out["DBSubnetGroup"]["DBSubnetGroupName"] == wish["DBSubnetGroupName"]
    # The export of logs begins with the server, as on RDS.
    exports = out["PendingModifiedValues"].pop("PendingCloudwatchLogsExports", {}).get("LogTypesToEnable", [])
    assert out.get("EnabledCloudwatchLogsExports", []) + exports == wish["EnableCloudwatchLogsExports"]
    assert out["PendingModifiedValues"] == {}


def test_create_answers_what_was_asked(asked):
    _, wish, first = asked
    check_echo(wish, first)
    assert first["DBInstanceStatus"] == "creating" and "Endpoint" not in first


def test_describe_answers_what_was_asked(asked):
    db, wish, _ = asked
    now = db.describe()
    check_echo(wish, now)
    assert now["Endpoint"]["Port"] == wish["Port"] and now["AvailabilityZone"] == "us-east-1b"
    assert now["DBParameterGroups"][0]["ParameterApplyStatus"] == "in-sync"


def test_the_database_is_as_asked(asked, engine):
    db, wish, _ = asked
    with db.connect(database=wish["DBName"]) as connection:
        if engine.name == "postgres":
            # A locale of ICU is in a column whose name depends on the version.
            ((user, database, encoding, locale),) = engines.query(
                connection,
                """SELECT current_user, current_database(), pg_encoding_to_char(encoding),
                CASE WHEN datlocprovider = 'i' THEN 'icu:' || coalesce(to_jsonb(d)->>'daticulocale', to_jsonb(d)->>'datlocale')
                ELSE datcollate END FROM pg_database d WHERE datname = current_database()""",
            )
            assert (user, database, encoding, locale) == ("BossLady", wish["DBName"], "UTF8", wish["CharacterSetName"])
            assert engines.query(connection, "SHOW data_checksums")[0][0] == "on"
        else:
            ((database, charset),) = engines.query(connection, "SELECT database(), @@character_set_database")
            assert (database, charset) == (wish["DBName"], wish["CharacterSetName"])


def test_describe_is_stable(asked):
    db, _, _ = asked
    instances.stable_for(2, db.describe)


def test_what_terraform_reads_is_there(asked):
    db, _, _ = asked
    now = db.describe()
    assert [k for k in READ_BY_TERRAFORM if k not in now] == []
    assert set(now["Endpoint"]) == {"Address", "Port", "HostedZoneId"}


def test_asking_for_the_same_again_changes_nothing(asked, rds):
    """As a declarative tool does that applies everything it knows."""
    db, wish, _ = asked
    before = db.describe()
    rename = {"Port": "DBPortNumber"}
    not_modifiable = {"DBInstanceIdentifier", "MasterUsername", "MasterUserPassword", "DBName", "CharacterSetName", "AvailabilityZone", "Tags", "EnableCloudwatchLogsExports"}
    again = {rename.get(k, k): v for k, v in wish.items() if k not in not_modifiable}
    again["CloudwatchLogsExportConfiguration"] = {"EnableLogTypes": wish["EnableCloudwatchLogsExports"]}
    for at_once in (True, False):
        out = rds.modify_db_instance(DBInstanceIdentifier=db.name, ApplyImmediately=at_once, **again)["DBInstance"]
        assert (out["DBInstanceStatus"], out["PendingModifiedValues"]) == ("available", {})
    assert db.describe() == before


def test_tags_through_the_other_actions(asked, rds):
    db, _, _ = asked
    resource = db.describe()["DBInstanceArn"]
    assert rds.list_tags_for_resource(ResourceName=resource)["TagList"] == TAGS
    rds.add_tags_to_resource(ResourceName=resource, Tags=[{"Key": "new", "Value": "n"}, {"Key": "Apple", "Value": "red"}])
    want = [TAGS[0], {"Key": "Apple", "Value": "red"}, TAGS[2], TAGS[3], {"Key": "new", "Value": "n"}]
    assert rds.list_tags_for_resource(ResourceName=resource)["TagList"] == want == db.describe()["TagList"]
    rds.remove_tags_from_resource(ResourceName=resource, TagKeys=["new", "not there"])
    rds.add_tags_to_resource(ResourceName=resource, Tags=[{"Key": "Apple", "Value": ""}])
    assert db.describe()["TagList"] == TAGS
    assert db.status() == "available"


def test_defaults(server, rds, engine):
    """What nobody asked for is RDS's default, or said to be ours."""
    wish = instances.request(engine, AllocatedStorage=None, DBName=None, BackupRetentionPeriod=None)
    out = rds.create_db_instance(**wish)["DBInstance"]
    assert (out["BackupRetentionPeriod"], out["AutoMinorVersionUpgrade"], out["DeletionProtection"]) == (1, True, False)
    assert out["DBParameterGroups"][0]["DBParameterGroupName"].startswith("default." + engine.name)
    assert "DBName" not in out and out["TagList"] == []
    db = instances.Instance(server, engine, wish)
    assert db.wait()["Endpoint"]["Port"] == engine.port
    db.delete()


def test_the_life_that_terraform_gives(server, rds, postgres):
    """The requests of aws_db_instance from apply to destroy, in its own form."""
    wish = instances.request(
        postgres, EngineVersion="", AutoMinorVersionUpgrade=True, BackupRetentionPeriod=0, CopyTagsToSnapshot=False,
        DeletionProtection=True, PubliclyAccessible=False, StorageEncrypted=False, MaxAllocatedStorage=40, Iops=0, Tags=[],
    )  # fmt: skip
    rds.create_db_instance(**wish)
    db = instances.Instance(server, postgres, wish)
    resource = db.wait()["DbiResourceId"]
    by_id = [{"Name": "dbi-resource-id", "Values": [resource]}]
    # More storage is asked for together with the IOPS of its state, which are none;
    # a bound that is the storage itself turns autoscaling off.
    db.modify(AllocatedStorage=25, Iops=0, MaxAllocatedStorage=25)
    now = db.describe()
    assert now["AllocatedStorage"] == 25 and "MaxAllocatedStorage" not in now and "Iops" not in now
    # The provider looks for these words, though it has not said what becomes of the data.
    with pytest.raises(rds.exceptions.ClientError, match="InvalidParameterCombination.*disable deletion pro"):
        rds.delete_db_instance(DBInstanceIdentifier=db.name, SkipFinalSnapshot=False, DeleteAutomatedBackups=True)
    db.modify(DeletionProtection=False)
    db.delete(wait=False)
    with pytest.raises(rds.exceptions.ClientError, match="InvalidDBInstanceState.*is already being deleted|DBInstanceNotFound"):
        rds.delete_db_instance(DBInstanceIdentifier=db.name, SkipFinalSnapshot=True)
    harness.wait_for("nothing by the id", lambda: not rds.describe_db_instances(Filters=by_id)["DBInstances"])
    with pytest.raises(rds.exceptions.DBInstanceNotFoundFault):
        rds.describe_db_instances(DBInstanceIdentifier=resource)
