"""The Resource Groups Tagging API, which tools ask for the tags of RDS's resources."""

import contextlib

import pytest


@contextlib.contextmanager
def group(rds, name, **tags):
    made = rds.create_db_subnet_group(
        DBSubnetGroupName=name, DBSubnetGroupDescription="d", SubnetIds=["subnet-us-east-1a", "subnet-us-east-1b"],
        Tags=[{"Key": k, "Value": v} for k, v in tags.items()],
    )["DBSubnetGroup"]["DBSubnetGroupArn"]  # fmt: skip
    try:
        yield made
    finally:
        rds.delete_db_subnet_group(DBSubnetGroupName=name)


def test_tags_are_the_same(server):
    """What one API sets the other one shows."""
    rds, tagging = server.rds, server.client("resourcegroupstaggingapi")
    with group(rds, "tagged-one", tagged="yes") as one, group(rds, "tagged-two", tagged="no") as two:
        pages = tagging.get_paginator("get_resources").paginate(
            TagFilters=[{"Key": "tagged", "Values": ["yes", "no"]}], ResourceTypeFilters=["rds:subgrp"], PaginationConfig={"PageSize": 1}
        )
        found = [r["ResourceARN"] for page in pages for r in page["ResourceTagMappingList"]]
        assert found == [one, two]
        assert "tagged" in tagging.get_tag_keys()["TagKeys"]
        assert tagging.get_tag_values(Key="tagged")["TagValues"] == ["no", "yes"]

        absent = one.replace("tagged-one", "absent")
        failed = tagging.tag_resources(ResourceARNList=[one, absent], Tags={"tagged": "again", "more": ""})["FailedResourcesMap"]
        assert list(failed) == [absent] and failed[absent]["ErrorCode"] == "InvalidParameterException"
        tags = {t["Key"]: t["Value"] for t in rds.list_tags_for_resource(ResourceName=one)["TagList"]}
        assert tags == {"tagged": "again", "more": ""}
        assert not tagging.untag_resources(ResourceARNList=[one, two], TagKeys=["tagged", "more"])["FailedResourcesMap"]
        assert rds.list_tags_for_resource(ResourceName=one)["TagList"] == []
        assert tagging.get_resources(ResourceARNList=[one, two])["ResourceTagMappingList"] == []


def test_with_the_cli(server):
    def cli(action, *args):
        return server.cli(action, *args, service="resourcegroupstaggingapi")

    with group(server.rds, "tagged-cli", by="cli") as one:
        assert cli("tag-resources", "--resource-arn-list", one, "--tags", "by=hand,more=")["FailedResourcesMap"] == {}
        assert cli("get-resources", "--tag-filters", "Key=by,Values=hand")["ResourceTagMappingList"] == [
            {"ResourceARN": one, "Tags": [{"Key": "by", "Value": "hand"}, {"Key": "more", "Value": ""}]}
        ]
        assert "by" in cli("get-tag-keys")["TagKeys"] and cli("get-tag-values", "--key", "by")["TagValues"] == ["hand"]
        assert cli("untag-resources", "--resource-arn-list", one, "--tag-keys", "more")["FailedResourcesMap"] == {}


def test_refused(server):
    tagging = server.client("resourcegroupstaggingapi")
    with pytest.raises(tagging.exceptions.InvalidParameterException, match="Tag policies are not supported"):
        tagging.get_resources(IncludeComplianceDetails=True)
    with pytest.raises(tagging.exceptions.ClientError, match="UnsupportedOperation.*reports on them are not supported"):
        tagging.describe_report_creation()
