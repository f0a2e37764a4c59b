"""Master passwords that the service keeps in Secrets Manager and rotates."""

import json

import botocore.exceptions
import pytest

import clusters
import engines
import harness
import instances
from harness import wait_for
from test_secrets import refused


@pytest.fixture(scope="session")
def sm(server):
    return server.client("secretsmanager")


def login(sm, secret, **which):
    value = json.loads(sm.get_secret_value(SecretId=secret["SecretArn"], **which)["SecretString"])
    assert value.keys() == {"username", "password"} and value["username"] == "boss"
    engines.passwords.append(value["password"])
    return value["password"]


def settled(of, status="active"):
    def reached():
        now = of.describe()
        secret = now.get("MasterUserSecret")
        done = secret and secret["SecretStatus"] == status and now.get("DBInstanceStatus", now.get("Status")) == "available"
        return secret if done else None

    return wait_for(f"secret of {of.name} {status}", reached, 120)


def opens(of, password):
    of.password = password
    with of.connect() as connection:
        return engines.query(connection, "SELECT 1") is not None


def turned(sm, of, rotate):
    """Rotates, and returns the new password, which opens the database as the old one does no more."""
    before = login(sm, of.describe()["MasterUserSecret"])
    rotate()
    wait_for(f"a new password of {of.name}", lambda: login(sm, of.describe()["MasterUserSecret"]) != before, 120)
    secret = settled(of)
    after = login(sm, secret)
    assert opens(of, after) and login(sm, secret, VersionStage="AWSPREVIOUS") == before
    with pytest.raises(of.engine.refused()):
        opens(of, before)
    refused("ResourceNotFoundException", "AWSPENDING", sm.get_secret_value, SecretId=secret["SecretArn"], VersionStage="AWSPENDING")
    return after


def test_instance(server, sm, engine):
    rds = server.rds
    wish = instances.request(engine, ManageMasterUserPassword=True, MasterUserPassword=None)
    made = rds.create_db_instance(**wish)["DBInstance"]
    assert made["MasterUserSecret"]["SecretStatus"] == "creating"
    db = instances.Instance(server, engine, {**wish, "MasterUserPassword": ""})
    secret = settled(db)
    assert secret["SecretArn"] == made["MasterUserSecret"]["SecretArn"] and ":secret:rds!db-" in secret["SecretArn"]
    assert secret["KmsKeyId"] == f"arn:aws:kms:{harness.REGION}:{harness.ACCOUNT}:alias/aws/secretsmanager"
    shown = sm.describe_secret(SecretId=secret["SecretArn"])
    assert shown["OwningService"] == "rds" and shown["RotationEnabled"] and shown["RotationRules"] == {"AutomaticallyAfterDays": 7}
    assert (shown["NextRotationDate"] - shown["LastRotatedDate"]).days == 7
    assert {"Key": "aws:rds:primaryDBInstanceArn", "Value": made["DBInstanceArn"]} in shown["Tags"]
    assert secret["SecretArn"] in [s["ARN"] for s in sm.list_secrets(Filters=[{"Key": "owning-service", "Values": ["rds"]}])["SecretList"]]
    assert opens(db, login(sm, secret))
    for call, more in [
        (sm.delete_secret, {"ForceDeleteWithoutRecovery": True}), (sm.put_secret_value, {"SecretString": "x"}), (sm.update_secret, {"Description": "x"}),
        (sm.tag_resource, {"Tags": [{"Key": "a", "Value": "b"}]}), (sm.untag_resource, {"TagKeys": ["a"]}),
    ]:  # fmt: skip
        refused("InvalidRequestException", "managed by another service", call, SecretId=secret["SecretArn"], **more)
    rotate = {"DBInstanceIdentifier": db.name, "RotateMasterUserPassword": True}
    refused("InvalidParameterCombination", "immediately", rds.modify_db_instance, **rotate)
    turned(sm, db, lambda: rds.modify_db_instance(**rotate, ApplyImmediately=True))
    turned(sm, db, lambda: server.cli("rotate-secret", "--secret-id", secret["SecretArn"], "--rotation-rules", "AutomaticallyAfterDays=30", service="secretsmanager"))
    assert sm.describe_secret(SecretId=secret["SecretArn"])["RotationRules"] == {"AutomaticallyAfterDays": 30}
    turned(sm, db, lambda: sm.rotate_secret(SecretId=secret["SecretArn"]))
    password = engines.new_password()
    refused("InvalidParameterCombination", "MasterUserPassword", rds.modify_db_instance, DBInstanceIdentifier=db.name, MasterUserPassword=password)
    refused("InvalidParameterCombination", "MasterUserPassword", rds.modify_db_instance, DBInstanceIdentifier=db.name, ManageMasterUserPassword=False)
    db.modify(ManageMasterUserPassword=False, MasterUserPassword=password)
    assert "MasterUserSecret" not in db.describe()
    refused("ResourceNotFoundException", "", sm.describe_secret, SecretId=secret["SecretArn"])
    wait_for("the user's password opens it", lambda: tried(db, password), 60)
    server.cli("modify-db-instance", "--db-instance-identifier", db.name, "--manage-master-user-password", "--apply-immediately")
    secret = settled(db)
    assert opens(db, login(sm, secret))
    restored_one(server, sm, db, secret)
    db.delete()
    wait_for("the secret is gone", lambda: gone(sm, secret), 60)


def restored_one(server, sm, db, secret):
    """A restored instance whose password the service keeps has one of its own."""
    snapshot, name = f"{db.name}-s", f"{db.name}-r"
    server.rds.create_db_snapshot(DBSnapshotIdentifier=snapshot, DBInstanceIdentifier=db.name)
    server.rds.get_waiter("db_snapshot_available").wait(DBSnapshotIdentifier=snapshot, WaiterConfig={"Delay": 1, "MaxAttempts": 120})
    server.rds.restore_db_instance_from_db_snapshot(DBSnapshotIdentifier=snapshot, DBInstanceIdentifier=name, ManageMasterUserPassword=True)
    other = instances.Instance(server, db.engine, {**db.wish, "DBInstanceIdentifier": name})
    own = settled(other)
    assert own["SecretArn"] != secret["SecretArn"] and opens(other, login(sm, own))
    with pytest.raises(db.engine.refused()):
        opens(other, login(sm, secret))
    other.delete()


def tried(db, password):
    try:
        return opens(db, password)
    except db.engine.refused():
        return False


def gone(sm, secret):
    try:
        sm.describe_secret(SecretId=secret["SecretArn"])
    except botocore.exceptions.ClientError as e:
        return e.response["Error"]["Code"] == "ResourceNotFoundException"
    return False


def test_cluster(server, sm, engine):
    wish = clusters.request(engine, ManageMasterUserPassword=True, MasterUserPassword=None)
    made = server.rds.create_db_cluster(**wish)["DBCluster"]
    assert ":secret:rds!cluster-" in made["MasterUserSecret"]["SecretArn"]
    cluster = clusters.Cluster(server, engine, {**wish, "MasterUserPassword": ""})
    secret = settled(cluster)
    tags = sm.describe_secret(SecretId=secret["SecretArn"])["Tags"]
    assert {"Key": "aws:rds:primaryDBClusterArn", "Value": made["DBClusterArn"]} in tags
    assert opens(cluster, login(sm, secret))
    assert all("MasterUserSecret" not in one for one in cluster.servers().values())
    turned(sm, cluster, lambda: server.rds.modify_db_cluster(DBClusterIdentifier=cluster.name, RotateMasterUserPassword=True, ApplyImmediately=True))
    cluster.delete()
    wait_for("the secret is gone", lambda: gone(sm, secret), 60)


def test_what_is_refused(rds, engine):
    wish = instances.request(engine, ManageMasterUserPassword=True)
    refused("InvalidParameterCombination", "MasterUserPassword", rds.create_db_instance, **wish)
    wish = instances.request(engine, ManageMasterUserPassword=True, MasterUserPassword=None, MasterUserSecretKmsKeyId="alias/mine")
    refused("InvalidParameterValue", "KMS", rds.create_db_instance, **wish)
    refused("InvalidParameterCombination", "MasterUserSecretKmsKeyId", rds.create_db_instance, **instances.request(engine, MasterUserSecretKmsKeyId="alias/mine"))


def test_of_an_instance_that_is_not_managed(rds, resident):
    wish = {"DBInstanceIdentifier": resident.name, "ApplyImmediately": True}
    refused("InvalidParameterCombination", "isn't managed", rds.modify_db_instance, RotateMasterUserPassword=True, **wish)
