"""What cannot be honoured is refused, with the parameter's name and the reason,
and nothing comes into being."""

import random
import string

import botocore.exceptions
import pytest

import instances
import wire

REFUSALS = ("InvalidParameterCombination", "InvalidParameterValue")

# Every parameter that this version does not honour, with a value that would
# change something. The tests below hold the list complete.
UNSUPPORTED = {
    "EnableIAMDatabaseAuthentication": True, "StorageEncrypted": True, "KmsKeyId": "k",
    "PerformanceInsightsKMSKeyId": "k", "PerformanceInsightsRetentionPeriod": 31,
    "DatabaseInsightsMode": "advanced",
    "PubliclyAccessible": True, "DBSecurityGroups": ["g"], "NetworkType": "DUAL",
    "DedicatedLogVolume": True,
    "MasterUserAuthenticationType": "iam-db-auth", "BackupTarget": "outposts", "EnableCustomerOwnedIp": True,
    "EngineLifecycleSupport": "open-source-rds-extended-support", "MultiTenant": True, "NcharCharacterSetName": "AL16UTF16",
    "DBSystemId": "s", "TdeCredentialArn": "a", "TdeCredentialPassword": "p", "Timezone": "UTC",
    "ProcessorFeatures": [{"Name": "coreCount", "Value": "1"}], "UseDefaultProcessorFeatures": False,
    "CustomIamInstanceProfile": "AWSRDSCustomX", "AutomationMode": "all-paused", "ResumeFullAutomationModeMinutes": 60,
    "AwsBackupRecoveryPointArn": "arn:aws:backup:us-east-1:1:recovery-point:x", "DBClusterIdentifier": "c", "PromotionTier": 1,
    "ReplicaMode": "mounted", "AllowMajorVersionUpgrade": True, "DisableDomain": False, "Domain": "d-1", "DomainAuthSecretArn": "a",
    "DomainDnsIps": ["10.0.0.1"], "DomainFqdn": "a.example", "DomainIAMRoleName": "r", "DomainOu": "OU=x",
    "AdditionalStorageVolumes": [{"VolumeName": "rdsdbdata2", "AllocatedStorage": 20}],
    "TagSpecifications": [{"ResourceType": "auto-backup", "Tags": [{"Key": "a", "Value": "b"}]}],
}  # fmt: skip

# Honoured: another test asks for each of these and looks whether it came true.
HONOURED = set(
    """DBInstanceIdentifier DBInstanceClass Engine EngineVersion AllocatedStorage StorageType Iops StorageThroughput
    MasterUsername MasterUserPassword DBName CharacterSetName Port DBPortNumber AvailabilityZone DBParameterGroupName
    OptionGroupName DBSubnetGroupName BackupRetentionPeriod PreferredBackupWindow PreferredMaintenanceWindow
    MaxAllocatedStorage DeletionProtection CopyTagsToSnapshot AutoMinorVersionUpgrade CACertificateIdentifier LicenseModel
    Tags NewDBInstanceIdentifier ApplyImmediately CertificateRotationRestart MultiAZ EnablePerformanceInsights
    MonitoringInterval MonitoringRoleArn EnableCloudwatchLogsExports CloudwatchLogsExportConfiguration
    ManageMasterUserPassword MasterUserSecretKmsKeyId RotateMasterUserPassword VpcSecurityGroupIds""".split()
)


def parameters(action):
    return wire.model("rds").operation_model(action).input_shape.members


def refused(call, name, **wish):
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        call(**wish)
    error = caught.value.response["Error"]
    assert error["Code"] in REFUSALS, error
    assert name in error["Message"], error
    # More than a name: it says why.
    assert len(error["Message"]) > len(name) + 15, error


@pytest.mark.parametrize("action", ["CreateDBInstance", "ModifyDBInstance"])
def test_the_lists_are_complete(action):
    known = HONOURED | set(UNSUPPORTED)
    assert [p for p in parameters(action) if p not in known] == []


@pytest.mark.parametrize("name", [n for n in UNSUPPORTED if n in parameters("CreateDBInstance")])
def test_create(server, rds, engine, name):
    wish = instances.request(engine, **{name: UNSUPPORTED[name]})
    refused(rds.create_db_instance, name, **wish)
    assert not instances.exists(server, wish["DBInstanceIdentifier"])


@pytest.mark.parametrize("name", [n for n in UNSUPPORTED if n in parameters("ModifyDBInstance")])
def test_modify(rds, resident, name):
    before = resident.describe()
    refused(rds.modify_db_instance, name, DBInstanceIdentifier=resident.name, ApplyImmediately=True, **{name: UNSUPPORTED[name]})
    assert resident.describe() == before


def test_what_is_true_anyway_is_accepted(server, engine):
    db = instances.create(
        server, engine, wait=False, MultiAZ=False, StorageEncrypted=False, PubliclyAccessible=False, MonitoringInterval=0,
        EnableIAMDatabaseAuthentication=False, NetworkType="IPV4", BackupTarget="region",
        DedicatedLogVolume=False, ManageMasterUserPassword=False, DatabaseInsightsMode="standard", VpcSecurityGroupIds=[],
        EnableCloudwatchLogsExports=[], DomainDnsIps=[], LicenseModel=engine.license,
    )  # fmt: skip
    db.delete()


def test_unknown_parameter_is_no_typing_error_to_ignore(server):
    status, code, text = server.raw({"Action": "DescribeDBInstances", "DBInstanceIdentifer": "misspelt"})
    assert (status, code) == (400, "InvalidParameterValue") and "DBInstanceIdentifer" in text


@pytest.mark.parametrize(
    "over, code, said",
    [
        ({"DBInstanceIdentifier": "1st"}, "InvalidParameterValue", "DBInstanceIdentifier"),
        ({"DBInstanceIdentifier": "a--b"}, "InvalidParameterValue", "consecutive hyphens"),
        ({"DBInstanceIdentifier": "a-"}, "InvalidParameterValue", "end with a hyphen"),
        ({"DBInstanceIdentifier": "a_b"}, "InvalidParameterValue", "DBInstanceIdentifier"),
        ({"DBInstanceIdentifier": "a" * 64}, "InvalidParameterValue", "63"),
        ({"DBInstanceIdentifier": "../../etc"}, "InvalidParameterValue", "DBInstanceIdentifier"),
        ({"MasterUsername": None}, "InvalidParameterValue", "MasterUsername"),
        ({"MasterUsername": "1boss"}, "InvalidParameterValue", "MasterUsername"),
        ({"MasterUsername": "bo-ss"}, "InvalidParameterValue", "MasterUsername"),
        ({"MasterUsername": "a" * 64}, "InvalidParameterValue", "MasterUsername"),
        ({"MasterUsername": "RDSADMIN"}, "InvalidParameterValue", "reserved word"),
        ({"MasterUsername": "user"}, "InvalidParameterValue", "reserved word"),
        ({"MasterUserPassword": None}, "InvalidParameterValue", "MasterUserPassword"),
        ({"MasterUserPassword": "short7!"}, "InvalidParameterValue", "shorter than 8"),
        ({"MasterUserPassword": "with/slash1"}, "InvalidParameterValue", "printable ASCII"),
        ({"MasterUserPassword": 'with"quote1'}, "InvalidParameterValue", "printable ASCII"),
        ({"MasterUserPassword": "with@at1234"}, "InvalidParameterValue", "printable ASCII"),
        ({"MasterUserPassword": "with blank1"}, "InvalidParameterValue", "printable ASCII"),
        ({"MasterUserPassword": "pässword99"}, "InvalidParameterValue", "printable ASCII"),
        ({"DBName": "1db"}, "InvalidParameterValue", "DBName"),
        ({"DBName": "a-b"}, "InvalidParameterValue", "DBName"),
        ({"DBName": "rdsadmin"}, "InvalidParameterValue", "reserved word"),
        ({"Port": 1149}, "InvalidParameterValue", "1150"),
        ({"Port": 65536}, "InvalidParameterValue", "65535"),
        ({"BackupRetentionPeriod": 36}, "InvalidParameterValue", "35"),
        ({"BackupRetentionPeriod": -1}, "InvalidParameterValue", "retention"),
        ({"PreferredBackupWindow": "1:00-2:00"}, "InvalidParameterValue", "PreferredBackupWindow"),
        ({"PreferredBackupWindow": "01:00-01:20"}, "InvalidParameterValue", "30 minutes"),
        ({"PreferredMaintenanceWindow": "foo:01:00-foo:02:00"}, "InvalidParameterValue", "PreferredMaintenanceWindow"),
        ({"PreferredMaintenanceWindow": "mon:01:00-tue:01:30"}, "InvalidParameterValue", "24 hours"),
        ({"PreferredBackupWindow": "01:00-02:00", "PreferredMaintenanceWindow": "mon:01:30-mon:02:30"}, "InvalidParameterValue", "overlap"),
        ({"DBInstanceClass": "db.t99.huge"}, "InvalidParameterValue", "db.t99.huge"),
        ({"DBInstanceClass": "db.r8g.16xlarge"}, "InvalidParameterCombination", "the host has"),
        ({"AllocatedStorage": 4}, "InvalidParameterValue", "AllocatedStorage"),
        ({"AllocatedStorage": 65537}, "InvalidParameterValue", "AllocatedStorage"),
        ({"StorageType": "magnetic"}, "StorageTypeNotSupported", "magnetic"),
        ({"StorageType": "io1", "AllocatedStorage": 100}, "InvalidParameterCombination", "Iops"),
        ({"StorageType": "io1", "AllocatedStorage": 100, "Iops": 6000}, "InvalidParameterCombination", "ratio"),
        ({"StorageType": "gp2", "Iops": 3000}, "InvalidParameterCombination", "IOPS"),
        ({"StorageType": "gp3", "Iops": 4000}, "InvalidParameterCombination", "400"),
        ({"StorageThroughput": 500}, "InvalidParameterCombination", "StorageThroughput"),
        ({"MaxAllocatedStorage": 21}, "InvalidParameterCombination", "Max storage size must be greater"),
        ({"Engine": "oracle-ee"}, "InvalidParameterValue", "oracle-ee"),
        ({"EngineVersion": "9.6.1"}, "InvalidParameterCombination", "9.6.1"),
        ({"LicenseModel": "bring-your-own-license"}, "InvalidParameterCombination", "LicenseModel"),
        ({"CharacterSetName": "klingon"}, "InvalidParameterValue", "CharacterSetName"),
        ({"AvailabilityZone": "mars-1a"}, "InvalidVPCNetworkStateFault", "mars-1a"),
        ({"DBParameterGroupName": "nope"}, "DBParameterGroupNotFound", "nope"),
        ({"DBSubnetGroupName": "nope"}, "DBSubnetGroupNotFoundFault", "nope"),
        ({"OptionGroupName": "nope"}, "OptionGroupNotFoundFault", "nope"),
        ({"CACertificateIdentifier": "rds-ca-2019"}, "CertificateNotFound", "rds-ca-2019"),
        ({"Tags": [{"Key": "aws:x", "Value": "v"}]}, "InvalidParameterValue", "aws:"),
        ({"Tags": [{"Key": "a", "Value": "v"}, {"Key": "a", "Value": "w"}]}, "InvalidParameterValue", "Duplicate"),
        ({"Tags": [{"Key": f"k{n}", "Value": "v"} for n in range(51)]}, "InvalidParameterValue", "50"),
    ],
    ids=lambda v: "+".join(f"{k}={str(x)[:20]}" for k, x in v.items()) if isinstance(v, dict) else None,
)
def test_values(server, rds, engine, over, code, said):
    before = instances.names(server)
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        rds.create_db_instance(**instances.request(engine, **{"DBInstanceIdentifier": "never-made", **over}))
    error = caught.value.response["Error"]
    assert error["Code"] == code and said in error["Message"], error
    if "MasterUserPassword" in over and over["MasterUserPassword"]:
        assert over["MasterUserPassword"] not in error["Message"]
    assert instances.names(server) == before


def test_reserved_and_overlong_by_engine(rds, engine):
    for over in ({"MasterUsername": engine.reserved_user}, {"MasterUserPassword": "x" * (engine.longest_password + 1)}):
        with pytest.raises(rds.exceptions.ClientError, match="InvalidParameterValue"):
            rds.create_db_instance(**instances.request(engine, "never-made", **over))


def test_longest_of_everything_is_accepted(server, engine):
    alphabet = string.ascii_letters + string.digits + "!#$%&'()*+,-.:;<=>?[\\]^_`{|}~"
    password = "".join(random.Random(7).choice(alphabet) for _ in range(engine.longest_password))
    user = "u" * (63 if engine.name == "postgres" else 16)
    db = instances.create(server, engine, name="n" + "9" * 62, MasterUsername=user, MasterUserPassword=password, Port=65535)
    with db.connect() as connection:
        assert engine.setting(connection, "port") == "65535"
    db.delete()


@pytest.mark.parametrize(
    "wish, code, said",
    [
        ({}, "InvalidParameterCombination", "No modifications were requested"),
        ({"DBPortNumber": 80}, "InvalidParameterValue", "DBPortNumber"),
        ({"MasterUserPassword": "short"}, "InvalidParameterValue", "MasterUserPassword"),
        ({"NewDBInstanceIdentifier": "1x"}, "InvalidParameterValue", "NewDBInstanceIdentifier"),
        ({"DBInstanceClass": "db.none"}, "InvalidParameterValue", "db.none"),
        ({"AllocatedStorage": 5}, "InvalidParameterCombination", "shrink"),
        ({"BackupRetentionPeriod": 99}, "InvalidParameterValue", "retention"),
        ({"EngineVersion": "1.0"}, "InvalidParameterCombination", "1.0"),
        ({"Engine": "mysql"}, "InvalidParameterCombination", "Engine"),
        ({"DBParameterGroupName": "nope"}, "DBParameterGroupNotFound", "nope"),
        ({"DBSubnetGroupName": "nope"}, "DBSubnetGroupNotFoundFault", "nope"),
        ({"OptionGroupName": "nope"}, "OptionGroupNotFoundFault", "nope"),
        ({"CACertificateIdentifier": "rds-ca-2019"}, "CertificateNotFound", "rds-ca-2019"),
        ({"StorageType": "io1"}, "InvalidParameterValue", "AllocatedStorage"),
        ({"LicenseModel": "bring-your-own-license"}, "InvalidParameterCombination", "LicenseModel"),
    ],
    ids=lambda v: "+".join(v) if isinstance(v, dict) else None,
)
def test_modify_values(rds, resident, wish, code, said):
    before = resident.describe()
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        rds.modify_db_instance(DBInstanceIdentifier=resident.name, ApplyImmediately=True, **wish)
    error = caught.value.response["Error"]
    assert error["Code"] == code and said in error["Message"], error
    assert resident.describe() == before


@pytest.mark.parametrize(
    "identifier, code",
    [
        ("absent", "DBInstanceNotFound"), ("arn:aws:rds:us-east-1:000000000000:db:absent", "DBInstanceNotFound"),
        # What cannot be a name is told from the name of none, as on RDS.
        ("", "InvalidParameterValue"), ("a" * 300, "InvalidParameterValue"), ("under_score", "InvalidParameterValue"),
        ("arn:aws:rds:eu-west-1:123456789012:db:mydb", "InvalidParameterValue"),
    ],
    ids=["absent", "arn", "empty", "long", "malformed", "arn-elsewhere"],
)  # fmt: skip
@pytest.mark.parametrize(
    "call, more",
    [
        ("describe_db_instances", {}), ("modify_db_instance", {"BackupRetentionPeriod": 2}), ("reboot_db_instance", {}),
        ("start_db_instance", {}), ("stop_db_instance", {}), ("delete_db_instance", {"SkipFinalSnapshot": True}),
        ("describe_valid_db_instance_modifications", {}), ("describe_db_log_files", {}),
        ("download_db_log_file_portion", {"LogFileName": "x"}),
    ],
)  # fmt: skip
def test_absent_instance(rds, resident, call, more, identifier, code):
    if (call, identifier) == ("describe_db_instances", ""):
        return  # an empty identifier is none: it lists
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        getattr(rds, call)(DBInstanceIdentifier=identifier, **more)
    assert caught.value.response["Error"]["Code"] == code, caught.value


def test_not_enough_memory(server, rds, engine):
    """Memory is reserved, so what does not fit beside the others is refused."""
    options = rds.get_paginator("describe_orderable_db_instance_options").paginate(Engine=engine.name)
    classes = {o["DBInstanceClass"] for p in options for o in p["OrderableDBInstanceOptions"]}
    sizes = ["2xlarge", "xlarge", "large", "medium", "small", "micro"]
    largest = next(f"db.local.{s}" for s in sizes if f"db.local.{s}" in classes)
    made = []
    try:
        with pytest.raises(rds.exceptions.InsufficientDBInstanceCapacityFault, match="reserved by other DB instances"):
            for _ in range(8):
                made.append(instances.create(server, engine, wait=False, DBInstanceClass=largest))
    finally:
        for db in made:
            db.delete()
