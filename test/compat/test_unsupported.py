"""The actions of RDS that this version does not have: each says so in one way."""

import pytest

import coverage
import wire


@pytest.mark.parametrize("action", wire.actions("rds"))
def test_action_answers(server, action):
    """Without parameters: either there is no such action, with a reason, or it
    looks at the parameters. Never a failure of ours, never a reset connection."""
    status, code, text = server.raw({"Action": action})
    assert status in (200, 400, 404), text
    assert code != "InternalFailure"
    if code == "UnsupportedOperation":
        assert status == 400 and f"{action} is not offered by this version of Kurabe: " in text and "docs/coverage.md" in text
        assert coverage.refusal(server, "rds", action)


def test_client_sees_unsupported_operation(rds):
    for call, wish in [
        (rds.describe_db_cluster_endpoints, {}), (rds.describe_db_recommendations, {}),
        (rds.delete_blue_green_deployment, {"BlueGreenDeploymentIdentifier": "bgd-0123456789abcdef"}), (rds.switchover_global_cluster, {"GlobalClusterIdentifier": "g", "TargetDbClusterIdentifier": "c"}),
    ]:  # fmt: skip
        with pytest.raises(rds.exceptions.ClientError) as caught:
            call(**wish)
        assert caught.value.response["Error"]["Code"] == "UnsupportedOperation"
        assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400


def test_unknown_actions(server):
    assert server.raw({"Action": "BrewCoffee"})[:2] == (400, "InvalidAction")
    assert server.raw({"Action": ""})[:2] == (400, "MissingAction")
    assert server.raw({})[:2] == (400, "MissingAction")
    assert server.raw({"Action": "DescribeDBInstances", "Version": "2013-01-01"})[1] in ("InvalidAction", "InvalidParameterValue")


def test_malformed_forms(server):
    for form in (
        "Action=DescribeDBInstances&Version=2014-10-31&MaxRecords=many",
        "Action=DescribeDBInstances&Version=2014-10-31&Filters.Filter.1.Values.Value.1=x&Filters.Filter.x.Name=y",
        "Action=DescribeDBInstances&Version=2014-10-31&Filters.Filter.99999999.Name=engine",
        "Action=ModifyDBInstance&Version=2014-10-31&DBInstanceIdentifier=x&ApplyImmediately=perhaps",
        "Action=DescribeEvents&Version=2014-10-31&StartTime=yesterday",
        "Action=DescribeDBInstances&Version=2014-10-31&%zz=1",
        b"\x00\xff" * 50,
    ):
        status, code, text = server.raw(form)
        assert status == 400 and code not in (None, "InternalFailure"), (form, text)


def test_both_spellings_of_lists(server):
    """botocore sends Filters.Filter.1, others Filters.member.1."""
    for item in ("Filter", "member"):
        value = "member" if item == "member" else "Value"
        form = {"Action": "DescribeDBInstances", f"Filters.{item}.1.Name": "engine", f"Filters.{item}.1.Values.{value}.1": "none"}
        status, _, text = server.raw(form)
        assert status == 200 and "<DBInstance>" not in text, text
