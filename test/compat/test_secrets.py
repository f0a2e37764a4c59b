"""Secrets Manager: secrets, their versions and stages, through boto3 and the AWS CLI."""

import datetime
import re
import uuid

import botocore.exceptions
import pytest

import engines
import harness

# What an action of Secrets Manager is not: the reason stands in the error.
DECLINED = {
    "PutResourcePolicy": {"SecretId": "a", "ResourcePolicy": "{}"}, "DeleteResourcePolicy": {"SecretId": "a"}, "ValidateResourcePolicy": {"ResourcePolicy": "{}"},
    "ReplicateSecretToRegions": {"SecretId": "a", "AddReplicaRegions": [{"Region": "eu-west-1"}]}, "StopReplicationToReplica": {"SecretId": "a"},
    "RemoveRegionsFromReplication": {"SecretId": "a", "RemoveReplicaRegions": ["eu-west-1"]}, "CancelRotateSecret": {"SecretId": "a"},
}  # fmt: skip


@pytest.fixture(scope="session")
def sm(server):
    return server.client("secretsmanager")


@pytest.fixture
def name(sm, request):
    name = "test/" + re.sub(r"[^a-zA-Z0-9]+", "-", request.node.name)
    yield name
    sm.delete_secret(SecretId=name, ForceDeleteWithoutRecovery=True)


def cli(server, action, *args, **how):
    return server.cli(action, *args, service="secretsmanager", **how)


def refused(code, said, call, **wish):
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        call(**wish)
    error = caught.value.response["Error"]
    assert error["Code"] == code and said in error["Message"], error


def stages(sm, secret):
    return {v: sorted(s) for v, s in sm.describe_secret(SecretId=secret)["VersionIdsToStages"].items()}


def test_a_secret_from_its_creation_to_its_end(server, sm, name):
    value, tags = engines.new_password(), [{"Key": "team", "Value": "blue"}]
    made = sm.create_secret(Name=name, SecretString=value, Description="of a test", Tags=tags)
    assert re.fullmatch(rf"arn:aws:secretsmanager:{harness.REGION}:{harness.ACCOUNT}:secret:{name}-[A-Za-z0-9]{{6}}", made["ARN"])
    for id in (name, made["ARN"], made["ARN"][:-7]):
        got = sm.get_secret_value(SecretId=id)
        assert (got["SecretString"], got["VersionId"], got["VersionStages"]) == (value, made["VersionId"], ["AWSCURRENT"])
        assert "SecretBinary" not in got
    assert cli(server, "get-secret-value", "--secret-id", name)["SecretString"] == value
    shown = sm.describe_secret(SecretId=name)
    assert (shown["Name"], shown["Description"], shown["Tags"]) == (name, "of a test", tags)
    assert shown["LastAccessedDate"].hour == 0 and shown["CreatedDate"] <= shown["LastChangedDate"]
    assert not {"DeletedDate", "KmsKeyId", "RotationEnabled", "OwningService"} & shown.keys()
    assert cli(server, "describe-secret", "--secret-id", name)["ARN"] == made["ARN"]
    assert "ResourcePolicy" not in sm.get_resource_policy(SecretId=name)
    sm.tag_resource(SecretId=name, Tags=[{"Key": "team", "Value": "red"}, {"Key": "more", "Value": ""}])
    sm.untag_resource(SecretId=name, TagKeys=["more"])
    assert sm.describe_secret(SecretId=name)["Tags"] == [{"Key": "team", "Value": "red"}]
    cli(server, "delete-secret", "--secret-id", name)
    sm.restore_secret(SecretId=name)
    ends = sm.delete_secret(SecretId=name, RecoveryWindowInDays=7)["DeletionDate"]
    assert abs(ends - datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=7)) < datetime.timedelta(hours=1)
    refused("InvalidRequestException", "marked for deletion", sm.get_secret_value, SecretId=name)
    refused("InvalidRequestException", "already scheduled for deletion", sm.create_secret, Name=name, SecretString=value)
    assert name not in [s["Name"] for s in sm.list_secrets()["SecretList"]]
    assert name in [s["Name"] for s in sm.list_secrets(IncludePlannedDeletion=True)["SecretList"]]
    assert cli(server, "restore-secret", "--secret-id", made["ARN"])["Name"] == name
    assert sm.get_secret_value(SecretId=name)["SecretString"] == value
    sm.delete_secret(SecretId=name, ForceDeleteWithoutRecovery=True)
    refused("ResourceNotFoundException", "can't find the specified secret", sm.describe_secret, SecretId=made["ARN"])


def test_with_the_cli(server, sm, name):
    made = cli(server, "create-secret", "--name", name, "--secret-string", engines.new_password(), "--tags", "Key=team,Value=blue")
    cli(server, "tag-resource", "--secret-id", made["ARN"], "--tags", "Key=more,Value=yes")
    cli(server, "untag-resource", "--secret-id", name, "--tag-keys", "team")
    assert sm.describe_secret(SecretId=name)["Tags"] == [{"Key": "more", "Value": "yes"}]
    assert cli(server, "get-resource-policy", "--secret-id", name) == {"ARN": made["ARN"], "Name": name}
    cli(server, "delete-secret", "--secret-id", name, "--force-delete-without-recovery")


def test_versions_and_stages(server, sm, name):
    one, two, three = (engines.new_password() for _ in range(3))
    first = sm.create_secret(Name=name, SecretString=one)["VersionId"]
    second = sm.put_secret_value(SecretId=name, SecretString=two)["VersionId"]
    assert stages(sm, name) == {first: ["AWSPREVIOUS"], second: ["AWSCURRENT"]}
    third = cli(server, "put-secret-value", "--secret-id", name, "--secret-string", three, "--version-stages", "AWSPENDING", "mine")
    assert third["VersionStages"] == ["AWSPENDING", "mine"]
    third = third["VersionId"]
    assert sm.get_secret_value(SecretId=name, VersionStage="AWSPENDING")["SecretString"] == three
    assert sm.get_secret_value(SecretId=name)["SecretString"] == two
    assert sm.get_secret_value(SecretId=name, VersionId=first)["SecretString"] == one
    refused("InvalidRequestException", "not associated", sm.get_secret_value, SecretId=name, VersionId=first, VersionStage="AWSCURRENT")
    refused("ResourceNotFoundException", "staging label: none", sm.get_secret_value, SecretId=name, VersionStage="none")
    refused("ResourceNotFoundException", "VersionId: " + "0" * 32, sm.get_secret_value, SecretId=name, VersionId="0" * 32)
    move = {"SecretId": name, "VersionStage": "AWSCURRENT", "MoveToVersionId": third}
    refused("InvalidParameterException", f"attached to version {second}", sm.update_secret_version_stage, **move)
    sm.update_secret_version_stage(**move, RemoveFromVersionId=second)
    assert stages(sm, name) == {second: ["AWSPREVIOUS"], third: ["AWSCURRENT", "AWSPENDING", "mine"]}
    cli(server, "update-secret-version-stage", "--secret-id", name, "--version-stage", "AWSPENDING", "--remove-from-version-id", third)
    listed = {v["VersionId"]: v.get("VersionStages") for v in sm.list_secret_version_ids(SecretId=name)["Versions"]}
    assert listed.keys() == {second, third}
    page = sm.list_secret_version_ids(SecretId=name, IncludeDeprecated=True, MaxResults=2)
    rest = sm.list_secret_version_ids(SecretId=name, IncludeDeprecated=True, MaxResults=2, NextToken=page["NextToken"])
    assert [v["VersionId"] for v in page["Versions"] + rest["Versions"]] == [first, second, third] and "NextToken" not in rest
    assert len(cli(server, "list-secret-version-ids", "--secret-id", name)["Versions"]) == 2
    fourth = cli(server, "update-secret", "--secret-id", name, "--secret-string", one, "--description", "new")["VersionId"]
    assert stages(sm, name) == {third: ["AWSPREVIOUS", "mine"], fourth: ["AWSCURRENT"]}
    assert "VersionId" not in sm.update_secret(SecretId=name, Description="newer")
    assert sm.describe_secret(SecretId=name)["Description"] == "newer"


def test_a_token_repeats_its_request_only(sm, name):
    token, value = str(uuid.uuid4()), engines.new_password()
    wish = {"Name": name, "SecretString": value, "ClientRequestToken": token}
    assert sm.create_secret(**wish)["VersionId"] == sm.create_secret(**wish)["VersionId"] == token
    refused("ResourceExistsException", token, sm.create_secret, **{**wish, "SecretString": "other"})
    refused("ResourceExistsException", "already exists", sm.create_secret, Name=name, SecretString=value)
    put = {"SecretId": name, "SecretString": value, "ClientRequestToken": token}
    assert sm.put_secret_value(**put)["VersionStages"] == ["AWSCURRENT"]
    refused("ResourceExistsException", token, sm.put_secret_value, **{**put, "SecretString": "other"})
    refused("InvalidParameterException", "printable", sm.put_secret_value, **{**put, "ClientRequestToken": "/" * 32})


def test_values_are_what_they_were(sm, name):
    binary = bytes(range(256)) * 256
    sm.create_secret(Name=name, SecretBinary=binary)
    got = sm.get_secret_value(SecretId=name)
    assert got["SecretBinary"] == binary and "SecretString" not in got
    text = "\U0001f511 é\u0001\n\"'<>&" + "x" * 60000 + "arn:aws:rds:us-east-1:000000000000:db:x"
    sm.put_secret_value(SecretId=name, SecretString=text)
    assert sm.get_secret_value(SecretId=name)["SecretString"] == text
    refused("InvalidParameterException", "65536 bytes", sm.put_secret_value, SecretId=name, SecretString="é" * 32769)
    refused("InvalidParameterException", "both", sm.put_secret_value, SecretId=name, SecretString="a", SecretBinary=b"a")
    refused("InvalidRequestException", "either", sm.put_secret_value, SecretId=name)


def test_lists_and_batches(server, sm):
    made, prefix = {}, "listed-" + uuid.uuid4().hex[:8]
    for n in range(3):
        value = engines.new_password()
        made[f"{prefix}/{n}"] = value
        sm.create_secret(Name=f"{prefix}/{n}", SecretString=value, Description=f"Number {n}", Tags=[{"Key": prefix, "Value": str(n)}])
    of = [{"Key": "name", "Values": [prefix]}]
    names = list(made)
    pages = sm.get_paginator("list_secrets").paginate(Filters=of, SortOrder="asc", PaginationConfig={"PageSize": 2})
    assert [s["Name"] for page in pages for s in page["SecretList"]] == names
    assert [s["Name"] for s in sm.list_secrets(Filters=of, SortOrder="desc", SortBy="name")["SecretList"]] == names[::-1]
    for filters, found in {
        ("tag-key", prefix): names, ("tag-value", "1"): names[1:2], ("description", "number 2"): names[2:], ("all", f"{prefix}"): names,
        ("owning-service", "rds"): [], ("name", "!" + prefix): [],
    }.items():  # fmt: skip
        listed = cli(server, "list-secrets", "--sort-order", "asc", "--filters", f"Key={filters[0]},Values={filters[1]}", f"Key=tag-key,Values={prefix}")
        assert [s["Name"] for s in listed["SecretList"]] == found, filters
    batch = sm.batch_get_secret_value(SecretIdList=[*names, "absent"])
    assert {s["Name"]: s["SecretString"] for s in batch["SecretValues"]} == made
    assert [(e["SecretId"], e["ErrorCode"]) for e in batch["Errors"]] == [("absent", "ResourceNotFoundException")]
    assert len(cli(server, "batch-get-secret-value", "--filters", f"Key=tag-key,Values={prefix}")["SecretValues"]) == 3
    refused("InvalidParameterException", "not both", sm.batch_get_secret_value, SecretIdList=["a"], Filters=of)
    for one in made:
        sm.delete_secret(SecretId=one, ForceDeleteWithoutRecovery=True)


def test_random_passwords(server, sm):
    password = sm.get_random_password()["RandomPassword"]
    assert len(password) == 32 and password != sm.get_random_password()["RandomPassword"]
    for pattern in "[a-z]", "[A-Z]", "[0-9]", "[^a-zA-Z0-9]":
        assert re.search(pattern, password)
    digits = cli(server, "get-random-password", "--exclude-punctuation", "--exclude-uppercase", "--exclude-lowercase", "--password-length", "100")
    assert re.fullmatch("[0-9]{100}", digits["RandomPassword"])
    refused("InvalidParameterException", "too short", sm.get_random_password, PasswordLength=3)


def test_what_is_refused(sm):
    token = "t" * 32
    for code, said, wish in [
        ("ValidationException", "Invalid name", {"Name": "a b"}), ("InvalidParameterException", "RDS manages", {"Name": "rds!db-1"}),
        ("InvalidParameterException", "KMS", {"Name": "a", "KmsKeyId": "alias/mine"}),
        ("InvalidParameterException", "region", {"Name": "a", "AddReplicaRegions": [{"Region": "eu-west-1"}]}),
        ("InvalidParameterException", "Type", {"Name": "a", "Type": "Some"}), ("InvalidParameterException", "aws:", {"Name": "a", "Tags": [{"Key": "aws:x", "Value": "1"}]}),
    ]:  # fmt: skip
        refused(code, said, sm.create_secret, SecretString="v", ClientRequestToken=token, **wish)
    refused("ResourceNotFoundException", "can't find", sm.delete_secret, SecretId="absent")
    assert sm.delete_secret(SecretId="absent", ForceDeleteWithoutRecovery=True)["Name"] == "absent"
    refused("InvalidParameterException", "between 7 and 30", sm.delete_secret, SecretId="absent", RecoveryWindowInDays=6)
    sm.create_secret(Name="not-rotated", SecretString="v")
    refused("InvalidRequestException", "Lambda", sm.rotate_secret, SecretId="not-rotated")
    sm.delete_secret(SecretId="not-rotated", ForceDeleteWithoutRecovery=True)


@pytest.mark.parametrize("action", DECLINED)
def test_declined(sm, action):
    call = getattr(sm, botocore.xform_name(action))
    refused("UnsupportedOperation", action, call, **DECLINED[action])


def test_secrets_of_another_region(server, sm, name):
    import test_nothing

    value = engines.new_password()
    arn = sm.create_secret(Name=name, SecretString=value)["ARN"]
    there = test_nothing.foreign(server, "secretsmanager", "eu-west-1").get_secret_value(SecretId=arn.replace(harness.REGION, "eu-west-1"))
    assert there["SecretString"] == value and ":eu-west-1:" in there["ARN"]


def test_secrets_outlive_the_service(sm, name):
    """In a service of its own, which is killed: the key is in its folder."""
    own, value = harness.Server("--stop-databases-on-exit"), engines.new_password()
    try:
        client = own.start().client("secretsmanager")
        client.create_secret(Name=name, SecretString=value)
        own.signal_and_wait(9)
        again = own.start().client("secretsmanager")
        assert again.get_secret_value(SecretId=name)["SecretString"] == value
    finally:
        own.close()
