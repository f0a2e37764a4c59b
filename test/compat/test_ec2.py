"""The network as EC2's API shows it, which is the one that RDS's API names."""

import re

import pytest

import harness

FORM = re.compile(r"(vpc|subnet|sg)-[0-9a-f]{17}")
ZONES = [f"{harness.REGION}{letter}" for letter in "abc"]


def test_network(server):
    ec2, rds = server.client("ec2"), server.rds
    (vpc,) = ec2.describe_vpcs(Filters=[{"Name": "is-default", "Values": ["true"]}])["Vpcs"]
    subnets = ec2.describe_subnets(Filters=[{"Name": "vpc-id", "Values": [vpc["VpcId"]]}, {"Name": "default-for-az", "Values": ["true"]}])["Subnets"]
    (group,) = ec2.describe_security_groups(GroupNames=["default"])["SecurityGroups"]
    assert all(FORM.fullmatch(id) for id in [vpc["VpcId"], group["GroupId"], *(s["SubnetId"] for s in subnets)])
    assert group["VpcId"] == vpc["VpcId"] and group["IpPermissions"][0]["IpRanges"] == [{"CidrIp": "0.0.0.0/0"}]
    assert [s["AvailabilityZone"] for s in subnets] == ZONES
    assert [z["ZoneName"] for z in ec2.describe_availability_zones()["AvailabilityZones"]] == ZONES
    assert [r["RegionName"] for r in ec2.describe_regions()["Regions"]] == [harness.REGION]

    ids = [s["SubnetId"] for s in subnets]
    default = rds.describe_db_subnet_groups(DBSubnetGroupName="default")["DBSubnetGroups"][0]
    assert default["VpcId"] == vpc["VpcId"] and [s["SubnetIdentifier"] for s in default["Subnets"]] == ids
    made = rds.create_db_subnet_group(DBSubnetGroupName="ec2", DBSubnetGroupDescription="d", SubnetIds=[ids[1], "subnet-" + ZONES[0]])["DBSubnetGroup"]
    try:
        assert {s["SubnetIdentifier"]: s["SubnetAvailabilityZone"]["Name"] for s in made["Subnets"]} == {ids[1]: ZONES[1], "subnet-" + ZONES[0]: ZONES[0]}
        (kept,) = ec2.describe_subnets(SubnetIds=["subnet-" + ZONES[0]])["Subnets"]
        assert kept["AvailabilityZone"] == ZONES[0] and not kept["DefaultForAz"]
    finally:
        rds.delete_db_subnet_group(DBSubnetGroupName="ec2")


def test_filters(server):
    ec2 = server.client("ec2")

    def zones(*filters):
        found = ec2.describe_subnets(Filters=[{"Name": name, "Values": values} for name, values in filters])["Subnets"]
        return [s["AvailabilityZone"] for s in found if s["DefaultForAz"]]

    assert zones(("availability-zone", ["*-1?"])) == ZONES and zones(("availability-zone", ["*-1"])) == []
    assert zones(("availability-zone", ZONES[:2]), ("availabilityZone", ZONES[1:])) == ZONES[1:2]
    assert zones(("tag:Name", ["x"])) == [] and zones(("availability-zone", [r"us-east-1\?"])) == []
    assert zones(("availability-zone", ["us.east.1a"])) == []
    assert ec2.describe_vpcs(Filters=[{"Name": "state", "Values": ["pending"]}])["Vpcs"] == []


@pytest.mark.parametrize("call,arguments,code,text", [
    ("describe_subnets", {"SubnetIds": ["subnet-0123456789abcdef0"]}, "InvalidSubnetID.NotFound", "The subnet ID 'subnet-0123456789abcdef0' does not exist"),
    ("describe_vpcs", {"VpcIds": ["vpc-0123456789abcdef0"]}, "InvalidVpcID.NotFound", "vpc-0123456789abcdef0"),
    ("describe_security_groups", {"GroupIds": ["sg-0123456789abcdef0"]}, "InvalidGroup.NotFound", "sg-0123456789abcdef0"),
    ("describe_security_groups", {"GroupNames": ["<other>"]}, "InvalidGroup.NotFound", "'<other>'"),
    ("describe_availability_zones", {"ZoneNames": ["mars-1a"]}, "InvalidParameterValue", "mars-1a"),
    ("describe_regions", {"RegionNames": ["mars-1"]}, "InvalidParameterValue", "mars-1"),
    ("describe_vpcs", {"Filters": [{"Name": "cidr", "Values": ["10.0.0.0/8"]}]}, "InvalidParameterValue", "The filter 'cidr' is invalid"),
    ("describe_vpcs", {"DryRun": True}, "DryRunOperation", "DryRun flag is set"),
    ("describe_instances", {}, "UnsupportedOperation", "the network of the databases"),
    ("describe_availability_zones", {"ZoneIds": ["use1-az1"]}, "InvalidParameterValue", "unknown parameter ZoneId.1"),
])  # fmt: skip
def test_refused(server, call, arguments, code, text):
    ec2 = server.client("ec2")
    with pytest.raises(ec2.exceptions.ClientError) as refused:
        getattr(ec2, call)(**arguments)
    error = refused.value.response["Error"]
    assert error["Code"] == code and text in error["Message"], error


def test_wrong_key(server):
    ec2 = server.client("ec2", secret_key="wrong")
    with pytest.raises(ec2.exceptions.ClientError, match="SignatureDoesNotMatch"):
        ec2.describe_vpcs()


def test_cli(server):
    (vpc,) = server.cli("describe-vpcs", service="ec2")["Vpcs"]
    found = server.cli("describe-subnets", "--filters", f"Name=vpc-id,Values={vpc['VpcId']}", service="ec2")["Subnets"]
    assert {s["AvailabilityZone"] for s in found} == set(ZONES)
    for action, member in [("availability-zones", "AvailabilityZones"), ("regions", "Regions"), ("security-groups", "SecurityGroups")]:
        assert server.cli(f"describe-{action}", service="ec2")[member]
