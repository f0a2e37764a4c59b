"""Every action once through the AWS CLI, as a user would type it."""

import engines
import instances
from harness import wait_for
from test_lifecycle import far_window


def one(answer, *path):
    for key in path:
        answer = answer[key]
    return answer


def test_life_of_an_instance(server, rds, engine):
    name, password = f"cli-{engine.name}", engines.new_password()
    by_name = ["--db-instance-identifier", name]
    made = server.cli(
        "create-db-instance", *by_name, "--engine", engine.name, "--db-instance-class", instances.CLASS, "--allocated-storage", 20,
        "--master-username", "boss", "--master-user-password", password, "--db-name", "app", "--tags", "Key=a,Value=b", "Key=c,Value=",
        "--no-auto-minor-version-upgrade", "--backup-retention-period", 3, "--preferred-maintenance-window", far_window(),
    )["DBInstance"]  # fmt: skip
    assert made["DBInstanceStatus"] == "creating" and made["TagList"] == [{"Key": "a", "Value": "b"}, {"Key": "c", "Value": ""}]
    # The CLI's waiter looks at once and then every 30 s: it is given what is there.
    wait_for("available", lambda: rds.describe_db_instances(DBInstanceIdentifier=name)["DBInstances"][0]["DBInstanceStatus"] == "available")
    server.cli("wait", "db-instance-available", *by_name)
    (now,) = server.cli("describe-db-instances", *by_name)["DBInstances"]
    assert (now["BackupRetentionPeriod"], now["AutoMinorVersionUpgrade"]) == (3, False)
    with engine.connect(now["Endpoint"], "boss", password, "app") as connection:
        assert engines.query(connection, "SELECT 1")[0][0] == 1
    out = server.cli("modify-db-instance", *by_name, "--allocated-storage", 22, "--no-apply-immediately")["DBInstance"]
    assert out["PendingModifiedValues"] == {"AllocatedStorage": 22}
    arn = now["DBInstanceArn"]
    (waiting,) = server.cli("describe-pending-maintenance-actions", "--resource-identifier", arn)["PendingMaintenanceActions"]
    assert waiting["ResourceIdentifier"] == arn
    server.cli(
        "apply-pending-maintenance-action", "--resource-identifier", arn, "--apply-action", "system-update", "--opt-in-type", "immediate"
    )
    db = instances.Instance(server, engine, {"DBInstanceIdentifier": name, "MasterUsername": "boss", "MasterUserPassword": password})
    assert db.wait()["AllocatedStorage"] == 22
    valid = server.cli("describe-valid-db-instance-modifications", *by_name)
    assert valid["ValidDBInstanceModificationsMessage"]["Storage"]
    logs = server.cli("describe-db-log-files", *by_name)["DescribeDBLogFiles"]
    part = server.cli("download-db-log-file-portion", *by_name, "--log-file-name", logs[-1]["LogFileName"], "--starting-token", 0)
    assert part["LogFileData"]
    assert server.cli("reboot-db-instance", *by_name)["DBInstance"]["DBInstanceStatus"] == "rebooting"
    db.wait()
    assert server.cli("stop-db-instance", *by_name)["DBInstance"]["DBInstanceStatus"] == "stopping"
    db.wait("stopped")
    assert server.cli("start-db-instance", *by_name)["DBInstance"]["DBInstanceStatus"] == "starting"
    db.wait()
    events = server.cli("describe-events", "--source-type", "db-instance", "--source-identifier", name)["Events"]
    assert len(events) >= 4
    assert server.cli("delete-db-instance", *by_name, "--skip-final-snapshot")["DBInstance"]["DBInstanceStatus"] == "deleting"
    wait_for("gone", lambda: not instances.exists(server, name))
    server.cli("wait", "db-instance-deleted", *by_name)
    assert "DBInstanceNotFound" in server.cli("describe-db-instances", *by_name, fails=True)


def test_what_can_be_had(server, postgres):
    engine = postgres
    (version,) = server.cli("describe-db-engine-versions", "--engine", engine.name, "--default-only")["DBEngineVersions"]
    assert server.cli("describe-db-major-engine-versions", "--engine", engine.name)["DBMajorEngineVersions"]
    options = server.cli("describe-orderable-db-instance-options", "--engine", engine.name, "--max-items", 5)
    assert len(options["OrderableDBInstanceOptions"]) == 5 and options["NextToken"]
    assert server.cli("describe-option-groups", "--engine-name", engine.name)["OptionGroupsList"]
    assert server.cli("describe-option-group-options", "--engine-name", engine.name)["OptionGroupOptions"] == []
    # --query runs over every page that the CLI fetches.
    names = server.cli(
        "describe-engine-default-parameters", "--db-parameter-group-family", version["DBParameterGroupFamily"],
        "--query", "EngineDefaults.Parameters[].ParameterName",
    )  # fmt: skip
    assert len(names) == len(set(names)) > 300


def test_parameter_groups(server, postgres):
    engine = postgres
    (version,) = server.cli("describe-db-engine-versions", "--engine", engine.name, "--default-only")["DBEngineVersions"]
    name, value, _ = engine.static
    by_name = ["--db-parameter-group-name", "cli"]
    made = server.cli(
        "create-db-parameter-group", *by_name, "--db-parameter-group-family", version["DBParameterGroupFamily"], "--description", "d"
    )
    wish = f"ParameterName={name},ParameterValue={value},ApplyMethod=pending-reboot"
    assert server.cli("modify-db-parameter-group", *by_name, "--parameters", wish)["DBParameterGroupName"] == "cli"
    assert one(server.cli("describe-db-parameters", *by_name, "--source", "user"), "Parameters", 0, "ParameterValue") == value
    server.cli(
        "copy-db-parameter-group", "--source-db-parameter-group-identifier", "cli",
        "--target-db-parameter-group-identifier", "cli-copy", "--target-db-parameter-group-description", "d",
    )  # fmt: skip
    assert len(server.cli("describe-db-parameter-groups", *by_name)["DBParameterGroups"]) == 1
    arn = made["DBParameterGroup"]["DBParameterGroupArn"]
    server.cli("add-tags-to-resource", "--resource-name", arn, "--tags", "Key=k,Value=v")
    assert server.cli("list-tags-for-resource", "--resource-name", arn)["TagList"] == [{"Key": "k", "Value": "v"}]
    server.cli("remove-tags-from-resource", "--resource-name", arn, "--tag-keys", "k")
    server.cli("reset-db-parameter-group", *by_name, "--reset-all-parameters")
    assert server.cli("describe-db-parameters", *by_name, "--source", "user")["Parameters"] == []
    server.cli("delete-db-parameter-group", *by_name)
    server.cli("delete-db-parameter-group", "--db-parameter-group-name", "cli-copy")


def test_subnet_groups(server):
    by_name = ["--db-subnet-group-name", "cli"]
    server.cli("create-db-subnet-group", *by_name, "--db-subnet-group-description", "d", "--subnet-ids", "subnet-us-east-1a", "subnet-us-east-1b")
    server.cli("modify-db-subnet-group", *by_name, "--subnet-ids", "subnet-us-east-1b", "subnet-us-east-1c")
    (group,) = server.cli("describe-db-subnet-groups", *by_name)["DBSubnetGroups"]
    assert [s["SubnetIdentifier"] for s in group["Subnets"]] == ["subnet-us-east-1b", "subnet-us-east-1c"]
    server.cli("delete-db-subnet-group", *by_name)


def test_account(server):
    assert server.cli("get-caller-identity", service="sts", anew=True)["Account"] == "000000000000"
    assert server.cli("describe-account-attributes")["AccountQuotas"]
    assert server.cli("describe-certificates")["Certificates"]
    assert server.cli("describe-source-regions")["SourceRegions"] == []
    assert server.cli("describe-event-categories")["EventCategoriesMapList"]


def test_refusals(server):
    said = server.cli("describe-db-cluster-endpoints", fails=True, anew=True)
    assert "(UnsupportedOperation)" in said and "custom endpoints belong to Aurora" in said
    said = server.cli("modify-db-instance", "--db-instance-identifier", "absent", "--backup-retention-period", 1, fails=True)
    assert "(DBInstanceNotFound)" in said
