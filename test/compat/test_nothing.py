"""Lists of what nobody can have made are empty; services that are not here are said to be that."""

import boto3
import pytest
from botocore.config import Config

import harness

EMPTY = [
    ("describe_global_clusters", "GlobalClusters", "GlobalClusterIdentifier", "GlobalClusterNotFoundFault"),
    ("describe_reserved_db_instances", "ReservedDBInstances", "ReservedDBInstanceId", "ReservedDBInstanceNotFoundFault"),
    ("describe_reserved_db_instances_offerings", "ReservedDBInstancesOfferings", "ReservedDBInstancesOfferingId", "ReservedDBInstancesOfferingNotFoundFault"),
    ("describe_tenant_databases", "TenantDatabases", "DBInstanceIdentifier", "DBInstanceNotFoundFault"),
    ("describe_blue_green_deployments", "BlueGreenDeployments", "BlueGreenDeploymentIdentifier", "BlueGreenDeploymentNotFoundFault"),
]


@pytest.mark.parametrize("action,member,key,absent", EMPTY, ids=[e[0] for e in EMPTY])
def test_nothing_is_there(rds, server, action, member, key, absent):
    assert getattr(rds, action)()[member] == []
    assert list(rds.get_paginator(action).paginate())[0][member] == []
    assert server.cli(action.replace("_", "-"))[member] == []
    with pytest.raises(getattr(rds.exceptions, absent), match="bgd-absent-0123456789"):
        getattr(rds, action)(**{key: "bgd-absent-0123456789"})
    with pytest.raises(rds.exceptions.ClientError, match="InvalidParameterValue.*MaxRecords"):
        getattr(rds, action)(MaxRecords=101)


def foreign(server, service, region=harness.REGION):
    session = boto3.session.Session(aws_access_key_id=harness.ACCESS_KEY, aws_secret_access_key=harness.SECRET_KEY, region_name=region)
    return session.client(service, endpoint_url=server.url, config=Config(retries={"total_max_attempts": 1}, proxies={}))


CALLS = [
    ("iam", "get_user", {}), ("s3", "list_buckets", {}),
    ("lambda", "list_functions", {}), ("kms", "list_keys", {}), ("route53", "list_hosted_zones", {}),
]  # fmt: skip


@pytest.mark.parametrize("service,action,wish", CALLS, ids=[c[0] for c in CALLS])
def test_a_service_that_is_not_here(server, service, action, wish):
    client = foreign(server, service)
    with pytest.raises(client.exceptions.ClientError) as refused:
        getattr(client, action)(**wish)
    error = refused.value.response["Error"]
    assert error["Code"] == "UnknownOperationException", refused.value
    assert "Unknown " in error["Message"] and "rds" in error["Message"], refused.value


def test_a_client_of_another_region(server, resident):
    rds = foreign(server, "rds", "eu-west-1")
    (found,) = rds.describe_db_instances(DBInstanceIdentifier=resident.name)["DBInstances"]
    arn = f"arn:aws:rds:eu-west-1:{harness.ACCOUNT}:db:{resident.name}"
    assert found["DBInstanceArn"] == arn
    for region in ("eu-west-1", "us-east-1", "ap-northeast-1"):
        same = arn.replace("eu-west-1", region)
        rds.add_tags_to_resource(ResourceName=same, Tags=[{"Key": "region", "Value": same}])
        assert {"Key": "region", "Value": same} in rds.list_tags_for_resource(ResourceName=arn)["TagList"]
        assert len(rds.describe_db_instances(Filters=[{"Name": "db-instance-id", "Values": [same]}])["DBInstances"]) == 1
    rds.remove_tags_from_resource(ResourceName=arn, TagKeys=["region"])
    with pytest.raises(rds.exceptions.DBInstanceNotFoundFault, match="absent"):
        rds.list_tags_for_resource(ResourceName=arn + "-absent")
    name = f"region-{resident.engine.name}"
    rds.create_db_snapshot(DBSnapshotIdentifier=name, DBInstanceIdentifier=resident.name)
    rds.get_waiter("db_snapshot_available").wait(DBSnapshotIdentifier=name, WaiterConfig={"Delay": 1, "MaxAttempts": 60})
    source = f"arn:aws:rds:ap-northeast-1:{harness.ACCOUNT}:snapshot:{name}"
    rds.copy_db_snapshot(SourceDBSnapshotIdentifier=source, TargetDBSnapshotIdentifier=f"{name}-copy")
    rds.get_waiter("db_snapshot_available").wait(DBSnapshotIdentifier=f"{name}-copy", WaiterConfig={"Delay": 1, "MaxAttempts": 60})
    (copied,) = rds.describe_db_snapshots(DBSnapshotIdentifier=f"{name}-copy")["DBSnapshots"]
    assert copied["SourceDBSnapshotIdentifier"] == f"arn:aws:rds:eu-west-1:{harness.ACCOUNT}:snapshot:{name}"
    for one in (name, f"{name}-copy"):
        rds.delete_db_snapshot(DBSnapshotIdentifier=one)


def test_what_can_be_ordered(rds, offered, engine):
    (version,) = rds.describe_db_engine_versions(Engine=engine.name, DefaultOnly=True)["DBEngineVersions"]
    assert version["SupportsReadReplica"]
    option = rds.describe_orderable_db_instance_options(Engine=engine.name, EngineVersion=version["EngineVersion"])["OrderableDBInstanceOptions"][0]
    assert option["ReadReplicaCapable"] and option["SupportsStorageAutoscaling"]
