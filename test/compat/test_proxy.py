"""DB proxies: every action by boto3 and by the AWS CLI, and clients that connect through one."""

import contextlib
import json

import pytest

import engines
import harness
import instances
from harness import wait_for

ROLE = f"arn:aws:iam::{harness.ACCOUNT}:role/proxy"
FAMILY = {"postgres": "POSTGRESQL", "mariadb": "MYSQL"}
PASSWORD = {"postgres": "POSTGRES_SCRAM_SHA_256", "mariadb": "MYSQL_NATIVE_PASSWORD"}
PORT = {"postgres": 5432, "mariadb": 3306}


def subnets(server):
    return [s["SubnetId"] for s in server.client("ec2").describe_subnets()["Subnets"]][:2]


def group(server):
    (only,) = server.client("ec2").describe_security_groups(Filters=[{"Name": "group-name", "Values": ["default"]}])["SecurityGroups"]
    return only["GroupId"]


@contextlib.contextmanager
def secret(server, name, user, password):
    secrets = server.client("secretsmanager")
    made = secrets.create_secret(Name=name, SecretString=json.dumps({"username": user, "password": password}))
    try:
        yield made["ARN"]
    finally:
        secrets.delete_secret(SecretId=name, ForceDeleteWithoutRecovery=True)


def wish(server, engine, name, *secrets, **over):
    return {
        "DBProxyName": name, "EngineFamily": FAMILY[engine], "RoleArn": ROLE, "VpcSubnetIds": subnets(server),
        "Auth": [{"AuthScheme": "SECRETS", "SecretArn": s, "IAMAuth": "DISABLED"} for s in secrets],
    } | over  # fmt: skip


def proxy_of(rds, name):
    (only,) = rds.describe_db_proxies(DBProxyName=name)["DBProxies"]
    return only


def wait_available(rds, name):
    """As Terraform's provider waits: nothing but creating and modifying comes before."""

    def reached():
        status = proxy_of(rds, name)["Status"]
        assert status in ("creating", "modifying", "available"), status
        return status == "available"

    wait_for(f"proxy {name} available", reached, 120)


def wait_gone(rds, name):
    def gone():
        try:
            assert proxy_of(rds, name)["Status"] == "deleting"
        except rds.exceptions.DBProxyNotFoundFault:
            return True

    wait_for(f"proxy {name} gone", gone, 120)


@contextlib.contextmanager
def proxy(server, engine, name, *secrets, **over):
    rds = server.rds
    rds.create_db_proxy(**wish(server, engine, name, *secrets, **over))
    try:
        wait_available(rds, name)
        yield name
    finally:
        rds.delete_db_proxy(DBProxyName=name)
        wait_gone(rds, name)


@contextlib.contextmanager
def removed(rds, name):
    """What a test that fails has left does not stand in the way of others."""
    try:
        yield
    finally:
        with contextlib.suppress(rds.exceptions.DBProxyNotFoundFault, rds.exceptions.InvalidDBProxyStateFault):
            rds.delete_db_proxy(DBProxyName=name)


def wait_target(rds, name, state="AVAILABLE", reason=None):
    def reached():
        for t in rds.describe_db_proxy_targets(DBProxyName=name)["Targets"]:
            health = t.get("TargetHealth", {})
            if health.get("State") == state and health.get("Reason") == reason:
                return t

    return wait_for(f"a target of {name} {state}", reached, 120)


def endpoint_of(rds, name, engine):
    return {"Address": proxy_of(rds, name)["Endpoint"], "Port": PORT[engine]}


def test_life(server, rds, resident):
    """A client logs in with the password of the secret, and what was asked for is shown."""
    engine = resident.engine
    name = f"life-{engine.name}"
    with secret(server, name, resident.user, resident.password) as arn, removed(rds, name):
        made = rds.create_db_proxy(**wish(server, engine.name, name, arn, RequireTLS=True, IdleClientTimeout=600, DebugLogging=True, Tags=[{"Key": "a", "Value": "b"}]))["DBProxy"]
        assert made["Status"] == "creating" and made["DBProxyArn"].startswith(f"arn:aws:rds:us-east-1:{harness.ACCOUNT}:db-proxy:prx-")
        wait_available(rds, name)
        have = proxy_of(rds, name)
        expected = {
            "EngineFamily": FAMILY[engine.name], "RoleArn": ROLE, "RequireTLS": True, "IdleClientTimeout": 600, "DebugLogging": True,
            "VpcSubnetIds": sorted(subnets(server)), "VpcSecurityGroupIds": [group(server)], "DefaultAuthScheme": "NONE",
            "EndpointNetworkType": "IPV4", "TargetConnectionNetworkType": "IPV4",
            "Auth": [{"AuthScheme": "SECRETS", "SecretArn": arn, "IAMAuth": "DISABLED", "ClientPasswordAuthType": PASSWORD[engine.name]}],
        }  # fmt: skip
        have["VpcSubnetIds"].sort()
        assert {k: have[k] for k in expected} == expected
        (target,) = rds.register_db_proxy_targets(DBProxyName=name, DBInstanceIdentifiers=[resident.name])["DBProxyTargets"]
        assert (target["Type"], target["RdsResourceId"], target["Port"]) == ("RDS_INSTANCE", resident.name, PORT[engine.name])
        with pytest.raises(rds.exceptions.DBProxyTargetAlreadyRegisteredFault):
            rds.register_db_proxy_targets(DBProxyName=name, DBInstanceIdentifiers=[resident.name])
        assert wait_target(rds, name)["Role"] == "READ_WRITE"
        at = endpoint_of(rds, name, engine.name)
        with engine.connect(at, resident.user, resident.password, "app", tls=True, ca=str(server.data / "ca.pem")) as connection:
            assert engines.query(connection, "SELECT 1")[0][0] == 1
        assert server.client("kurabe").describe_proxy(Name=name)  # as `kurabe proxy top` asks
        with pytest.raises(engine.refused()), engine.connect(at, resident.user, engines.new_password(), "app", tls=True):
            pass

        # A changed secret takes effect without a restart.
        password = engines.new_password()
        resident.modify(MasterUserPassword=password)
        resident.password = password
        server.client("secretsmanager").put_secret_value(SecretId=name, SecretString=json.dumps({"username": resident.user, "password": password}))

        def logs_in():
            try:
                with engine.connect(at, resident.user, password, "app", tls=True):
                    return True
            except engine.refused():
                return False

        wait_for("a login with the new password", logs_in, 60)
        rds.deregister_db_proxy_targets(DBProxyName=name, DBInstanceIdentifiers=[resident.name])
        with pytest.raises(rds.exceptions.DBProxyTargetNotFoundFault):
            rds.deregister_db_proxy_targets(DBProxyName=name, DBInstanceIdentifiers=[resident.name])
        assert rds.describe_db_proxy_targets(DBProxyName=name)["Targets"] == []
        assert rds.delete_db_proxy(DBProxyName=name)["DBProxy"]["Status"] == "deleting"
        wait_gone(rds, name)
    told = [e["Message"] for e in rds.describe_events(SourceType="db-proxy", SourceIdentifier=name)["Events"]]
    assert told == [f"RDS created DB proxy {name}", f"RDS deleted DB proxy {name}"]


def test_changes(server, rds, postgres, offered):
    with secret(server, "changes", "boss", engines.new_password()) as arn, secret(server, "changes-2", "boss2", engines.new_password()) as more:
        with proxy(server, "postgres", "changes", arn):
            out = rds.modify_db_proxy(
                DBProxyName="changes", NewDBProxyName="changed", RequireTLS=True, IdleClientTimeout=60, DebugLogging=True, RoleArn=ROLE + "2",
                SecurityGroups=[group(server)], Auth=[{"SecretArn": arn}, {"SecretArn": more, "Description": "the second"}],
            )["DBProxy"]  # fmt: skip
            try:
                assert out["DBProxyName"] == "changed"
                wait_available(rds, "changed")
                have = proxy_of(rds, "changed")
                assert (have["RequireTLS"], have["IdleClientTimeout"], have["DebugLogging"], have["RoleArn"]) == (True, 60, True, ROLE + "2")
                assert [(a["SecretArn"], a.get("Description")) for a in have["Auth"]] == [(arn, None), (more, "the second")]
                with pytest.raises(rds.exceptions.DBProxyNotFoundFault):
                    proxy_of(rds, "changes")
                # The target group.
                modify = {"DBProxyName": "changed", "TargetGroupName": "default"}
                pool = {"MaxConnectionsPercent": 40, "MaxIdleConnectionsPercent": 10, "ConnectionBorrowTimeout": 0, "InitQuery": "SET TIME ZONE 'UTC'", "SessionPinningFilters": []}
                assert rds.modify_db_proxy_target_group(**modify, ConnectionPoolConfig=pool)["DBProxyTargetGroup"]["ConnectionPoolConfig"] == pool
                (shown,) = rds.describe_db_proxy_target_groups(DBProxyName="changed", TargetGroupName="default")["TargetGroups"]
                assert shown["ConnectionPoolConfig"] == pool and shown["TargetGroupArn"].split(":")[5:6] == ["target-group"]
                rds.modify_db_proxy_target_group(**modify, ConnectionPoolConfig={"MaxConnectionsPercent": 27})
                (shown,) = rds.describe_db_proxy_target_groups(DBProxyName="changed")["TargetGroups"]
                assert shown["ConnectionPoolConfig"]["MaxIdleConnectionsPercent"] == 13
                wait_available(rds, "changed")
            finally:
                rds.modify_db_proxy(DBProxyName="changed", NewDBProxyName="changes")
            told = [e["EventCategories"] for e in rds.describe_events(SourceType="db-proxy", SourceIdentifier="changes")["Events"]]
            assert ["configuration change"] in told


def test_endpoints(server, rds, postgres):
    with secret(server, "ends", "boss", engines.new_password()) as arn, proxy(server, "postgres", "ends", arn):
        made = rds.create_db_proxy_endpoint(
            DBProxyName="ends", DBProxyEndpointName="reads", VpcSubnetIds=subnets(server), TargetRole="READ_ONLY", Tags=[{"Key": "k", "Value": "v"}]
        )["DBProxyEndpoint"]
        assert (made["TargetRole"], made["IsDefault"], made["DBProxyName"], made["VpcId"]) == ("READ_ONLY", False, "ends", proxy_of(rds, "ends")["VpcId"])

        def endpoint(name):
            (only,) = rds.describe_db_proxy_endpoints(DBProxyName="ends", DBProxyEndpointName=name)["DBProxyEndpoints"]
            return only

        wait_for("the endpoint", lambda: endpoint("reads")["Status"] == "available", 60)
        assert endpoint("reads")["Endpoint"] != endpoint("default")["Endpoint"] == proxy_of(rds, "ends")["Endpoint"]
        arn = made["DBProxyEndpointArn"]
        assert rds.list_tags_for_resource(ResourceName=arn)["TagList"] == [{"Key": "k", "Value": "v"}]
        with pytest.raises(rds.exceptions.DBProxyEndpointAlreadyExistsFault):
            rds.create_db_proxy_endpoint(DBProxyName="ends", DBProxyEndpointName="reads", VpcSubnetIds=subnets(server))
        rds.modify_db_proxy_endpoint(DBProxyEndpointName="reads", NewDBProxyEndpointName="more", VpcSecurityGroupIds=[group(server)])
        assert endpoint("more")["DBProxyEndpointArn"] == arn
        assert rds.delete_db_proxy_endpoint(DBProxyEndpointName="more")["DBProxyEndpoint"]["Status"] == "deleting"
        with pytest.raises(rds.exceptions.DBProxyEndpointNotFoundFault):
            endpoint("more")
        pages = rds.get_paginator("describe_db_proxy_endpoints").paginate(DBProxyName="ends")
        assert [e["DBProxyEndpointName"] for page in pages for e in page["DBProxyEndpoints"]] == ["default"]


def test_tags(server, rds, postgres):
    with secret(server, "tagged", "boss", engines.new_password()) as arn, proxy(server, "postgres", "tagged", arn, Tags=[{"Key": "tagged", "Value": "proxy"}]):
        name = proxy_of(rds, "tagged")["DBProxyArn"]
        rds.add_tags_to_resource(ResourceName=name, Tags=[{"Key": "more", "Value": ""}])
        assert proxy_of(rds, "tagged")["Status"] == "available"  # tags change nothing of the proxy
        tagging = server.client("resourcegroupstaggingapi")
        found = tagging.get_resources(TagFilters=[{"Key": "tagged", "Values": ["proxy"]}], ResourceTypeFilters=["rds:db-proxy"])["ResourceTagMappingList"]
        assert [r["ResourceARN"] for r in found] == [name]
        rds.remove_tags_from_resource(ResourceName=name, TagKeys=["tagged", "more"])
        assert rds.list_tags_for_resource(ResourceName=name)["TagList"] == []
        with pytest.raises(rds.exceptions.DBProxyNotFoundFault):
            rds.list_tags_for_resource(ResourceName=name + "x")


def test_health(server, rds, resident):
    """A target says why nobody can be led to it."""
    name = f"ill-{resident.engine.name}"
    with secret(server, name, resident.user, engines.new_password()) as arn, proxy(server, resident.engine.name, name, arn):
        assert rds.describe_db_proxy_targets(DBProxyName=name)["Targets"] == []
        rds.register_db_proxy_targets(DBProxyName=name, TargetGroupName="default", DBInstanceIdentifiers=[resident.name])
        assert wait_target(rds, name, "UNAVAILABLE", "AUTH_FAILURE")["TargetHealth"]["Description"]


def test_target_that_goes(server, rds, postgres):
    with secret(server, "goes", "boss", engines.new_password()) as arn, proxy(server, "postgres", "goes", arn):
        instance = instances.create(server, postgres)
        rds.register_db_proxy_targets(DBProxyName="goes", DBInstanceIdentifiers=[instance.name])
        instance.delete()
        assert rds.describe_db_proxy_targets(DBProxyName="goes")["Targets"] == []
        told = [e["Message"] for e in rds.describe_events(SourceType="db-proxy", SourceIdentifier="goes")["Events"]]
        assert f"RDS detected deletion of DB instance {instance.name} and automatically removed it from target group default of DB proxy goes" in told


def test_refusals(server, rds, postgres, resident):
    wanted = wish(server, "postgres", "no", f"arn:aws:secretsmanager:us-east-1:{harness.ACCOUNT}:secret:no-AbCdEf")
    auth = wanted["Auth"][0]
    for change, code, text in [
        ({"Auth": [auth | {"IAMAuth": "REQUIRED"}]}, "InvalidParameterCombination", "no IAM"),
        ({"Auth": [auth | {"UserName": "app"}]}, "InvalidParameterValue", "UserName must not be set in UserAuthConfig when SECRETS AuthScheme is used."),
        ({"Auth": [auth | {"ClientPasswordAuthType": "POSTGRES_MD5"}]}, "InvalidParameterCombination", "POSTGRES_SCRAM_SHA_256"),
        ({"Auth": []}, "InvalidParameterCombination", "Auth"),
        ({"DefaultAuthScheme": "IAM_AUTH"}, "InvalidParameterCombination", "no IAM"),
        ({"EngineFamily": "SQLSERVER"}, "InvalidParameterValue", "EngineFamily"),
        ({"EndpointNetworkType": "DUAL"}, "InvalidParameterCombination", "IPv4"),
        ({"TargetConnectionNetworkType": "IPV6"}, "InvalidParameterCombination", "IPv4"),
        ({"VpcSubnetIds": ["subnet-0123456789abcdef0", "subnet-1"]}, "InvalidSubnet", "subnet-1"),
        ({"IdleClientTimeout": 0}, "InvalidParameterValue", "IdleClientTimeout"),
        ({"DBProxyName": "a-"}, "InvalidParameterValue", "DBProxyName"),
    ]:  # fmt: skip
        with pytest.raises(rds.exceptions.ClientError) as refused:
            rds.create_db_proxy(**wanted | change)
        assert refused.value.response["Error"]["Code"] == code and text in str(refused.value), change
    for call, absent in [
        (rds.describe_db_proxies, "DBProxyNotFoundFault"), (rds.delete_db_proxy, "DBProxyNotFoundFault"), (rds.describe_db_proxy_targets, "DBProxyNotFoundFault"),
        (rds.describe_db_proxy_target_groups, "DBProxyNotFoundFault"), (rds.describe_db_proxy_endpoints, "DBProxyNotFoundFault"),
    ]:  # fmt: skip
        with pytest.raises(getattr(rds.exceptions, absent)):
            call(DBProxyName="absent")
    assert "no" not in [p["DBProxyName"] for page in rds.get_paginator("describe_db_proxies").paginate() for p in page["DBProxies"]]
    with proxy(server, "postgres", "no", wanted["Auth"][0]["SecretArn"]):
        with pytest.raises(rds.exceptions.DBProxyAlreadyExistsFault):
            rds.create_db_proxy(**wanted)
        with pytest.raises(rds.exceptions.DBProxyTargetGroupNotFoundFault):
            rds.describe_db_proxy_targets(DBProxyName="no", TargetGroupName="other")
        with pytest.raises(rds.exceptions.DBInstanceNotFoundFault):
            rds.register_db_proxy_targets(DBProxyName="no", DBInstanceIdentifiers=["absent"])
        with pytest.raises(rds.exceptions.DBClusterNotFoundFault):
            rds.register_db_proxy_targets(DBProxyName="no", DBClusterIdentifiers=["absent"])
        if resident.engine.name != "postgres":
            with pytest.raises(rds.exceptions.ClientError, match="InvalidParameterValue.*Unsupported Database engine"):
                rds.register_db_proxy_targets(DBProxyName="no", DBInstanceIdentifiers=[resident.name])
        with pytest.raises(rds.exceptions.InvalidDBProxyEndpointStateFault):
            rds.delete_db_proxy_endpoint(DBProxyEndpointName="default")
        with pytest.raises(rds.exceptions.ClientError, match="InvalidParameterCombination.*NewName"):
            rds.modify_db_proxy_target_group(DBProxyName="no", TargetGroupName="default", NewName="other")


def test_with_the_cli(server, rds, postgres):
    cli = server.cli
    with secret(server, "cli-proxy", "boss", engines.new_password()) as arn:
        by_name = ["--db-proxy-name", "cli-proxy"]
        made = cli("create-db-proxy", *by_name, "--engine-family", "POSTGRESQL", "--auth", f"SecretArn={arn}", "--role-arn", ROLE, "--vpc-subnet-ids", *subnets(server))
        assert made["DBProxy"]["Status"] == "creating"
        wait_available(rds, "cli-proxy")
        cli("modify-db-proxy", *by_name, "--require-tls", "--idle-client-timeout", 90)
        (have,) = cli("describe-db-proxies", *by_name)["DBProxies"]
        assert (have["RequireTLS"], have["IdleClientTimeout"]) == (True, 90)
        cli("modify-db-proxy-target-group", *by_name, "--target-group-name", "default", "--connection-pool-config", "MaxConnectionsPercent=30,ConnectionBorrowTimeout=5")
        (shown,) = cli("describe-db-proxy-target-groups", *by_name)["TargetGroups"]
        assert shown["ConnectionPoolConfig"]["ConnectionBorrowTimeout"] == 5
        said = cli("register-db-proxy-targets", *by_name, "--db-instance-identifiers", "absent", fails=True)
        assert "(DBInstanceNotFound)" in said
        instance = instances.create(server, postgres)
        cli("register-db-proxy-targets", *by_name, "--db-instance-identifiers", instance.name)
        (target,) = cli("describe-db-proxy-targets", *by_name)["Targets"]
        assert target["RdsResourceId"] == instance.name
        cli("deregister-db-proxy-targets", *by_name, "--db-instance-identifiers", instance.name)
        instance.delete(wait=False)
        end = ["--db-proxy-endpoint-name", "cli-end"]
        cli("create-db-proxy-endpoint", *by_name, *end, "--vpc-subnet-ids", *subnets(server))
        cli("modify-db-proxy-endpoint", *end, "--new-db-proxy-endpoint-name", "cli-other")
        assert len(cli("describe-db-proxy-endpoints", *by_name)["DBProxyEndpoints"]) == 2
        cli("delete-db-proxy-endpoint", "--db-proxy-endpoint-name", "cli-other")
        cli("delete-db-proxy", *by_name)
        wait_gone(rds, "cli-proxy")
