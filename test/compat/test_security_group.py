"""Security groups: EC2's API by boto3 and the CLI, their members, and what the kernel lets through."""

import os
import re
import socket
import time

import pytest

import instances

WAIT = 120
ingress = {"IpProtocol": "tcp", "FromPort": 5432, "ToPort": 5433, "IpRanges": [{"CidrIp": "10.0.0.0/8", "Description": "ours"}]}


@pytest.fixture
def ec2(server):
    return server.client("ec2")


@pytest.fixture
def group(ec2):
    made = ec2.create_security_group(GroupName="shop", Description="of the shop", TagSpecifications=[{"ResourceType": "security-group", "Tags": [{"Key": "a", "Value": "b"}]}])
    yield made["GroupId"]
    ec2.delete_security_group(GroupId=made["GroupId"])


def refused(code, call, **arguments):
    with pytest.raises(Exception) as e:
        call(**arguments)
    assert e.value.response["Error"]["Code"] == code, e.value
    return e.value.response["Error"]["Message"]


def test_group(ec2, group):
    assert re.fullmatch(r"sg-[0-9a-f]{17}", group)
    (shown,) = ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"]
    assert shown["Tags"] == [{"Key": "a", "Value": "b"}] and shown["IpPermissions"] == []
    assert shown["IpPermissionsEgress"] == [{"IpProtocol": "-1", "UserIdGroupPairs": [], "IpRanges": [{"CidrIp": "0.0.0.0/0"}], "Ipv6Ranges": [], "PrefixListIds": []}]
    refused("InvalidGroup.Duplicate", ec2.create_security_group, GroupName="shop", Description="again")
    refused("InvalidVpcID.NotFound", ec2.create_security_group, GroupName="x", Description="x", VpcId="vpc-0123456789abcdef0")
    refused("InvalidGroup.NotFound", ec2.delete_security_group, GroupId="sg-0123456789abcdef0")
    (default,) = ec2.describe_security_groups(GroupNames=["default"])["SecurityGroups"]
    refused("CannotDelete", ec2.delete_security_group, GroupId=default["GroupId"])
    refused("InvalidParameterValue", ec2.create_security_group, GroupName="sg-x", Description="x")
    refused("DryRunOperation", ec2.create_security_group, GroupName="x", Description="x", DryRun=True)
    assert ec2.describe_network_interfaces(Filters=[{"Name": "group-id", "Values": [group]}])["NetworkInterfaces"] == []


def test_rules(ec2, group):
    (rule,) = ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[ingress])["SecurityGroupRules"]
    assert (rule["CidrIpv4"], rule["FromPort"], rule["ToPort"], rule["IsEgress"], rule["Description"]) == ("10.0.0.0/8", 5432, 5433, False, "ours")
    refused("InvalidPermission.Duplicate", ec2.authorize_security_group_ingress, GroupId=group, IpPermissions=[ingress])
    assert "10.0.0.0/8" in refused("InvalidParameterValue", ec2.authorize_security_group_ingress, GroupId=group, IpProtocol="tcp", FromPort=1, ToPort=2, CidrIp="10.1.1.1/8")
    assert "addresses" in refused("UnsupportedOperation", ec2.authorize_security_group_ingress, GroupId=group, IpPermissions=[{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}])
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[{"IpProtocol": "-1", "Ipv6Ranges": [{"CidrIpv6": "fd00::/8"}]}])
    (shown,) = ec2.describe_security_groups(Filters=[{"Name": "ip-permission.cidr", "Values": ["10.*"]}, {"Name": "group-name", "Values": ["shop"]}])["SecurityGroups"]
    assert [p["IpProtocol"] for p in shown["IpPermissions"]] == ["tcp", "-1"]
    id = rule["SecurityGroupRuleId"]
    ec2.modify_security_group_rules(GroupId=group, SecurityGroupRules=[{"SecurityGroupRuleId": id, "SecurityGroupRule": {"IpProtocol": "tcp", "FromPort": 1, "ToPort": 2, "CidrIpv4": "10.0.0.0/9"}}])
    ec2.update_security_group_rule_descriptions_ingress(GroupId=group, SecurityGroupRuleDescriptions=[{"SecurityGroupRuleId": id, "Description": "new"}])
    ec2.create_tags(Resources=[id, group], Tags=[{"Key": "k", "Value": "v"}])
    (now,) = ec2.describe_security_group_rules(SecurityGroupRuleIds=[id])["SecurityGroupRules"]
    assert (now["CidrIpv4"], now["FromPort"], now["Description"], now["Tags"]) == ("10.0.0.0/9", 1, "new", [{"Key": "k", "Value": "v"}])
    assert {t["ResourceId"] for t in ec2.describe_tags(Filters=[{"Name": "key", "Values": ["k"]}])["Tags"]} == {id, group}
    ec2.delete_tags(Resources=[group], Tags=[{"Key": "k"}])
    assert ec2.describe_security_group_rules(Filters=[{"Name": "group-id", "Values": [group]}, {"Name": "tag-key", "Values": ["none"]}])["SecurityGroupRules"] == []
    assert ec2.revoke_security_group_ingress(GroupId=group, SecurityGroupRuleIds=[id])["RevokedSecurityGroupRules"][0]["SecurityGroupRuleId"] == id
    refused("InvalidSecurityGroupRuleId.NotFound", ec2.revoke_security_group_ingress, GroupId=group, SecurityGroupRuleIds=[id])
    refused("InvalidPermission.NotFound", ec2.revoke_security_group_ingress, GroupId=group, IpPermissions=[ingress])
    everything = [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]
    ec2.update_security_group_rule_descriptions_egress(GroupId=group, IpPermissions=[{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0", "Description": "all"}]}])
    ec2.revoke_security_group_egress(GroupId=group, IpPermissions=everything)
    ec2.authorize_security_group_egress(GroupId=group, IpPermissions=everything)
    many = [{"CidrIp": f"10.0.{n}.0/24"} for n in range(61)]
    refused("RulesPerSecurityGroupLimitExceeded", ec2.authorize_security_group_ingress, GroupId=group, IpPermissions=[{"IpProtocol": "-1", "IpRanges": many}])


def test_cli(server):
    def cli(*arguments):
        return server.cli(*arguments, service="ec2")

    id = cli("create-security-group", "--group-name", "by-cli", "--description", "d")["GroupId"]
    one = ["--group-id", id, "--protocol", "tcp", "--port", "5432", "--cidr", "10.0.0.0/8"]
    rule = cli("authorize-security-group-ingress", *one)["SecurityGroupRules"][0]["SecurityGroupRuleId"]
    cli("modify-security-group-rules", "--group-id", id, "--security-group-rules", f"SecurityGroupRuleId={rule},SecurityGroupRule={{IpProtocol=tcp,FromPort=5432,ToPort=5432,CidrIpv4=10.0.0.0/9}}")
    cli("update-security-group-rule-descriptions-ingress", "--group-id", id, "--security-group-rule-descriptions", f"SecurityGroupRuleId={rule},Description=d")
    assert cli("describe-security-group-rules", "--filters", f"Name=group-id,Values={id}")["SecurityGroupRules"]
    cli("revoke-security-group-ingress", "--group-id", id, "--security-group-rule-ids", rule)
    everything = ["--group-id", id, "--ip-permissions", "IpProtocol=-1,IpRanges=[{CidrIp=0.0.0.0/0,Description=x}]"]
    cli("update-security-group-rule-descriptions-egress", *everything)
    cli("revoke-security-group-egress", *everything)
    cli("authorize-security-group-egress", *everything)
    cli("create-tags", "--resources", id, "--tags", "Key=a,Value=b")
    assert cli("describe-tags", "--filters", f"Name=resource-id,Values={id}")["Tags"]
    cli("delete-tags", "--resources", id)
    assert cli("describe-network-interfaces")["NetworkInterfaces"] == []
    cli("delete-security-group", "--group-id", id)


def reaches(endpoint, source):
    with socket.socket() as s:
        s.settimeout(2)
        s.bind((source, 0))
        try:
            s.connect((endpoint["Address"], endpoint["Port"]))
        except OSError:
            return False
    return True


def active(rds, name, groups):
    end = time.monotonic() + WAIT
    while True:
        (i,) = rds.describe_db_instances(DBInstanceIdentifier=name)["DBInstances"]
        if sorted((g["VpcSecurityGroupId"], g["Status"]) for g in i["VpcSecurityGroups"]) == sorted((g, "active") for g in groups):
            return i
        assert time.monotonic() < end, i["VpcSecurityGroups"]
        time.sleep(0.1)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_members(server, ec2, group, engine):
    rds = server.rds
    assert "sg-12345678" in refused("InvalidParameterValue", rds.create_db_instance, **instances.request(engine, "unknown-group", VpcSecurityGroupIds=["sg-12345678"]))
    ec2.authorize_security_group_ingress(GroupId=group, IpProtocol="tcp", FromPort=1024, ToPort=65535, CidrIp="127.0.0.2/32")
    rds.create_db_instance(**instances.request(engine, "filtered", VpcSecurityGroupIds=[group]))
    try:
        rds.get_waiter("db_instance_available").wait(DBInstanceIdentifier="filtered", WaiterConfig={"Delay": 1, "MaxAttempts": WAIT})
        endpoint = active(rds, "filtered", [group])["Endpoint"]
        assert reaches(endpoint, "127.0.0.2") and not reaches(endpoint, "127.0.0.1")
        refused("DependencyViolation", ec2.delete_security_group, GroupId=group)
        with socket.socket() as living:
            living.settimeout(WAIT)
            living.bind(("127.0.0.2", 0))
            living.connect((endpoint["Address"], endpoint["Port"]))
            ec2.revoke_security_group_ingress(GroupId=group, IpProtocol="tcp", FromPort=1024, ToPort=65535, CidrIp="127.0.0.2/32")
            try:
                while living.recv(1000):  # the greeting of MariaDB comes first
                    pass
            except ConnectionResetError:
                pass
        (default,) = ec2.describe_security_groups(GroupNames=["default"])["SecurityGroups"]
        rds.modify_db_instance(DBInstanceIdentifier="filtered", VpcSecurityGroupIds=[default["GroupId"]])
        active(rds, "filtered", [default["GroupId"]])
        assert reaches(endpoint, "127.0.0.1")
    finally:
        rds.delete_db_instance(DBInstanceIdentifier="filtered", SkipFinalSnapshot=True)
        rds.get_waiter("db_instance_deleted").wait(DBInstanceIdentifier="filtered", WaiterConfig={"Delay": 1, "MaxAttempts": WAIT})
