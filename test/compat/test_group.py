"""Parameter groups, subnet groups, option groups and their tags."""

import pytest

import engines
import instances
from test_describe import arn, every


@pytest.fixture(scope="module")
def family(rds, engine):
    (version,) = rds.describe_db_engine_versions(Engine=engine.name, DefaultOnly=True)["DBEngineVersions"]
    return version["DBParameterGroupFamily"]


@pytest.fixture
def group(rds, family):
    name = f"group-{family.replace('.', '-')}"
    rds.create_db_parameter_group(DBParameterGroupName=name, DBParameterGroupFamily=family, Description="mine", Tags=[{"Key": "a", "Value": "b"}])
    yield name
    rds.delete_db_parameter_group(DBParameterGroupName=name)


def parameters(rds, group, **wish):
    return {p["ParameterName"]: p for p in every(rds, "describe_db_parameters", "Parameters", DBParameterGroupName=group, **wish)}


def set_one(rds, group, name, value, method="pending-reboot"):
    rds.modify_db_parameter_group(
        DBParameterGroupName=group, Parameters=[{"ParameterName": name, "ParameterValue": value, "ApplyMethod": method}]
    )


def test_parameters_are_all_there(rds, resident, family, engine):
    """Every parameter of the engine, once, whatever the page size."""
    default = f"default.{family}"
    listed = every(rds, "describe_db_parameters", "Parameters", DBParameterGroupName=default)
    paged = every(rds, "describe_db_parameters", "Parameters", DBParameterGroupName=default, PaginationConfig={"PageSize": 20})
    names = [p["ParameterName"] for p in listed]
    assert paged == listed and len(names) == len(set(names)) > 300
    if engine.name == "postgres":  # MariaDB lists what its program takes, and a server shows more than that
        with resident.connect() as connection:
            rows = engines.query(connection, "SELECT lower(name) FROM pg_settings WHERE name NOT LIKE '%.%'")
        assert {row[0] for row in rows} - set(names) == set()
    for p in listed:
        assert p["Source"] in ("system", "engine-default"), p
        assert p["ApplyType"] in ("static", "dynamic") and p["DataType"] and "IsModifiable" in p and p["ApplyMethod"], p
    pages = rds.get_paginator("describe_engine_default_parameters").paginate(DBParameterGroupFamily=family)
    assert [p["ParameterName"] for page in pages for p in page["EngineDefaults"]["Parameters"]] == names


def test_formula_and_fixed_parameters(rds, family, engine):
    default = parameters(rds, f"default.{family}")
    assert "{DBInstanceClassMemory" in default[engine.formula]["ParameterValue"]
    plumbing = {"postgres": ["data_directory", "listen_addresses", "hba_file", "fsync"], "mariadb": ["datadir", "bind_address", "socket"]}
    for name in plumbing[engine.name]:
        assert default[name]["IsModifiable"] is False


def test_parameter_of_the_service(rds, group, family):
    """What becomes of commits without a standby is asked for like anything else, and no engine knows it."""
    name = "kurabe.standby_lost"
    default = parameters(rds, f"default.{family}")[name]
    assert (default["ParameterValue"], default["AllowedValues"], default["Source"]) == ("degrade", "degrade,block", "system")
    assert default["ApplyType"] == "dynamic" and default["IsModifiable"] and default["DataType"] == "string"
    assert "standby" in default["Description"]
    with pytest.raises(rds.exceptions.ClientError, match="allowed values are: degrade,block"):
        set_one(rds, group, name, "stop", "immediate")
    set_one(rds, group, name, "block", "immediate")
    mine = parameters(rds, group, Source="user")
    assert mine[name]["ParameterValue"] == "block" and mine[name]["ApplyMethod"] == "immediate"


def test_life_of_a_parameter_group(rds, group, family, engine):
    name, value, _ = engine.static
    (mine,) = rds.describe_db_parameter_groups(DBParameterGroupName=group.upper())["DBParameterGroups"]
    assert (mine["DBParameterGroupFamily"], mine["Description"], mine["DBParameterGroupArn"]) == (family, "mine", arn("pg", group))
    assert rds.list_tags_for_resource(ResourceName=arn("pg", group))["TagList"] == [{"Key": "a", "Value": "b"}]
    set_one(rds, group, name, value)
    changed = parameters(rds, group, Source="user")
    assert set(changed) == {name} and changed[name]["ParameterValue"] == value and changed[name]["ApplyMethod"] == "pending-reboot"
    assert parameters(rds, group)[name]["Source"] == "user"
    rds.copy_db_parameter_group(
        SourceDBParameterGroupIdentifier=group, TargetDBParameterGroupIdentifier="copied", TargetDBParameterGroupDescription="copy"
    )
    assert parameters(rds, "copied", Source="user") == changed
    rds.reset_db_parameter_group(DBParameterGroupName=group, Parameters=[{"ParameterName": name, "ApplyMethod": "pending-reboot"}])
    assert parameters(rds, group, Source="user") == {}
    rds.reset_db_parameter_group(DBParameterGroupName="copied", ResetAllParameters=True)
    assert parameters(rds, "copied", Source="user") == {}
    listed = [g["DBParameterGroupName"] for g in every(rds, "describe_db_parameter_groups", "DBParameterGroups")]
    assert {group, "copied", f"default.{family}"} <= set(listed) and listed == sorted(set(listed))
    rds.delete_db_parameter_group(DBParameterGroupName="copied")


def test_parameter_group_errors(rds, group, family, engine):
    fails = rds.exceptions
    with pytest.raises(fails.DBParameterGroupAlreadyExistsFault):
        rds.create_db_parameter_group(DBParameterGroupName=group.upper(), DBParameterGroupFamily=family, Description="d")
    for call in (rds.describe_db_parameter_groups, rds.describe_db_parameters, rds.delete_db_parameter_group):
        with pytest.raises(fails.DBParameterGroupNotFoundFault):
            call(DBParameterGroupName="absent")
    with pytest.raises(fails.DBParameterGroupNotFoundFault):
        rds.copy_db_parameter_group(
            SourceDBParameterGroupIdentifier="absent", TargetDBParameterGroupIdentifier="c", TargetDBParameterGroupDescription="d"
        )
    with pytest.raises(fails.ClientError, match="InvalidParameterValue"):
        rds.create_db_parameter_group(DBParameterGroupName="x", DBParameterGroupFamily="oracle-ee-19", Description="d")
    with pytest.raises(fails.InvalidDBParameterGroupStateFault):
        rds.delete_db_parameter_group(DBParameterGroupName=f"default.{family}")
    with pytest.raises(fails.ClientError, match="Cannot modify a default parameter group"):
        rds.reset_db_parameter_group(ResetAllParameters=True, DBParameterGroupName=f"default.{family}")
    static, fixed = engine.static[0], {"postgres": "fsync", "mariadb": "datadir"}[engine.name]
    for name, value, method, said in [
        (static, engine.static[1], "immediate", "static parameter"), (fixed, "0", "pending-reboot", "cannot be modified"),
        ("no_such_thing", "1", "immediate", "Could not find parameter"), (static, "many", "pending-reboot", static),
        (static, "-5", "pending-reboot", static), (static, "{Nonsense/0}", "pending-reboot", static),
    ]:  # fmt: skip
        with pytest.raises(fails.ClientError, match=f"InvalidParameter(Value|Combination).*{said}"):
            set_one(rds, group, name, value, method)
    with pytest.raises(fails.ClientError, match="InvalidParameter"):
        rds.modify_db_parameter_group(DBParameterGroupName=group, Parameters=[])
    too_many = [{"ParameterName": f"p{n}", "ParameterValue": "1", "ApplyMethod": "immediate"} for n in range(21)]
    with pytest.raises(fails.ClientError, match="InvalidParameterValue.*20"):
        rds.modify_db_parameter_group(DBParameterGroupName=group, Parameters=too_many)
    assert parameters(rds, group, Source="user") == {}


def test_all_or_nothing(rds, group, engine):
    name, value, _ = engine.static
    with pytest.raises(rds.exceptions.ClientError):
        rds.modify_db_parameter_group(
            DBParameterGroupName=group,
            Parameters=[
                {"ParameterName": name, "ParameterValue": value, "ApplyMethod": "pending-reboot"},
                {"ParameterName": "no_such_thing", "ParameterValue": "1", "ApplyMethod": "pending-reboot"},
            ],
        )
    assert parameters(rds, group, Source="user") == {}


def test_group_of_another_family_is_refused(rds, offered, group, engine):
    others = [e for e in offered if e != engine.name]
    if not others:
        pytest.skip("only one engine is offered on this machine")
    with pytest.raises(rds.exceptions.ClientError, match="InvalidParameterCombination.*DBParameterGroupFamily"):
        rds.create_db_instance(**instances.request(engines.ENGINES[others[0]], DBParameterGroupName=group))


def test_subnet_groups(rds):
    two = ["subnet-us-east-1a", "subnet-us-east-1b"]
    made = rds.create_db_subnet_group(
        DBSubnetGroupName="Main", DBSubnetGroupDescription="d", SubnetIds=two, Tags=[{"Key": "k", "Value": "v"}]
    )["DBSubnetGroup"]
    assert made["DBSubnetGroupName"] == "main" and made["SubnetGroupStatus"] == "Complete"
    assert [s["SubnetIdentifier"] for s in made["Subnets"]] == two
    assert len({s["SubnetAvailabilityZone"]["Name"] for s in made["Subnets"]}) == 2
    assert rds.describe_db_subnet_groups(DBSubnetGroupName="MAIN")["DBSubnetGroups"] == [made]
    assert rds.list_tags_for_resource(ResourceName=made["DBSubnetGroupArn"])["TagList"] == [{"Key": "k", "Value": "v"}]
    out = rds.modify_db_subnet_group(DBSubnetGroupName="main", DBSubnetGroupDescription="wider", SubnetIds=[*two, "subnet-us-east-1c"])
    assert len(out["DBSubnetGroup"]["Subnets"]) == 3 and out["DBSubnetGroup"]["DBSubnetGroupDescription"] == "wider"
    names = [g["DBSubnetGroupName"] for g in every(rds, "describe_db_subnet_groups", "DBSubnetGroups")]
    assert {"default", "main"} <= set(names)
    fails = rds.exceptions
    for wrong, wish in [
        (fails.DBSubnetGroupAlreadyExistsFault, {"DBSubnetGroupName": "main", "SubnetIds": two}),
        (fails.DBSubnetGroupDoesNotCoverEnoughAZs, {"DBSubnetGroupName": "x", "SubnetIds": two[:1]}),
        (fails.InvalidSubnet, {"DBSubnetGroupName": "x", "SubnetIds": ["teapot", *two]}),
        (fails.InvalidSubnet, {"DBSubnetGroupName": "x", "SubnetIds": ["subnet-0123456789abcdef0", *two]}),
    ]:
        with pytest.raises(wrong):
            rds.create_db_subnet_group(DBSubnetGroupDescription="d", **wish)
    rds.delete_db_subnet_group(DBSubnetGroupName="main")
    for call in (rds.describe_db_subnet_groups, rds.delete_db_subnet_group):
        with pytest.raises(fails.DBSubnetGroupNotFoundFault):
            call(DBSubnetGroupName="main")
    with pytest.raises(fails.InvalidDBSubnetGroupStateFault):
        rds.delete_db_subnet_group(DBSubnetGroupName="default")


def test_groups_in_use_stay(rds, resident):
    now = resident.describe()
    with pytest.raises(rds.exceptions.InvalidDBSubnetGroupStateFault):
        rds.modify_db_subnet_group(DBSubnetGroupName=now["DBSubnetGroup"]["DBSubnetGroupName"], SubnetIds=["subnet-us-east-1a", "subnet-us-east-1b"])


def test_option_groups(rds, resident):
    default = resident.describe()["OptionGroupMemberships"][0]["OptionGroupName"]
    groups = every(rds, "describe_option_groups", "OptionGroupsList")
    (mine,) = [g for g in groups if g["OptionGroupName"] == default]
    assert mine["Options"] == [] and mine["EngineName"] == resident.engine.name
    assert rds.describe_option_groups(OptionGroupName=default)["OptionGroupsList"] == [mine]
    assert rds.describe_option_group_options(EngineName=resident.engine.name)["OptionGroupOptions"] == []
    fails = rds.exceptions
    with pytest.raises(fails.OptionGroupNotFoundFault):
        rds.describe_option_groups(OptionGroupName="absent")
    with pytest.raises(fails.ClientError, match="UnsupportedOperation.*engines load what their parameters name"):
        rds.create_option_group(OptionGroupName="o", EngineName="mariadb", MajorEngineVersion="10.11", OptionGroupDescription="d")
    with pytest.raises(fails.InvalidOptionGroupStateFault):
        rds.delete_option_group(OptionGroupName=default)
    with pytest.raises(fails.InvalidOptionGroupStateFault):
        rds.modify_option_group(OptionGroupName=default, OptionsToInclude=[{"OptionName": "X"}])
    with pytest.raises(fails.ClientError, match="UnsupportedOperation"):
        rds.copy_option_group(
            SourceOptionGroupIdentifier=default, TargetOptionGroupIdentifier="c", TargetOptionGroupDescription="d"
        )


def test_tags_of_unknown_resources(rds):
    for resource in (arn("db", "absent"), arn("pg", "absent"), arn("subgrp", "absent"), arn("og", "absent"), arn("snapshot", "absent"), "no-arn"):
        for call in (
            lambda r: rds.list_tags_for_resource(ResourceName=r),
            lambda r: rds.add_tags_to_resource(ResourceName=r, Tags=[{"Key": "a", "Value": "b"}]),
            lambda r: rds.remove_tags_from_resource(ResourceName=r, TagKeys=["a"]),
        ):
            with pytest.raises(rds.exceptions.ClientError, match="NotFound|InvalidParameterValue"):
                call(resource)


def test_numbers_of_enumerations(rds, group, engine):
    """An enumeration takes the notations that its engine takes, and no others."""
    name, taken, refused = {
        "mariadb": ("event_scheduler", ["1", "ON", "0"], ["7", "-1", "maybe"]),
        "postgres": ("synchronous_commit", ["1", "true", "on", "off"], ["7", "perhaps"]),
    }[engine.name]
    for value in taken:
        set_one(rds, group, name, value, "immediate")
        assert parameters(rds, group)[name]["ParameterValue"] == value
    for value in refused:
        with pytest.raises(rds.exceptions.ClientError, match=f"Invalid parameter value: {value} for: {name}"):
            set_one(rds, group, name, value, "immediate")
