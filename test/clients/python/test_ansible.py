"""Ansible's collection amazon.aws: each task twice, and the second changes nothing."""

import json
import pathlib
import subprocess
import sys

import aws
import engines
import instances
import pytest

VENV = pathlib.Path(sys.executable).parent.parent


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("ansible")


@pytest.fixture
def ansible(server, home):
    """Runs one task of amazon.aws and returns its result."""

    def run(module, **args):
        env = aws.environ(
            server, ANSIBLE_COLLECTIONS_PATH=str(VENV / "collections"), ANSIBLE_LOCAL_TEMP=str(home), ANSIBLE_REMOTE_TEMP=str(home),
            ANSIBLE_HOME=str(home), ANSIBLE_NOCOLOR="1", ANSIBLE_DEPRECATION_WARNINGS="0", LC_ALL="C.UTF-8",
        )  # fmt: skip
        args = json.dumps({"region": "us-east-1", **args})
        argv = [VENV / "bin" / "ansible", "localhost", "-i", "localhost,", "-c", "local", "-e", f"ansible_python_interpreter={sys.executable}"]
        done = subprocess.run([*argv, "-m", f"amazon.aws.{module}", "-a", args], capture_output=True, text=True, env=env, timeout=300)
        at = done.stdout.find("=> {")
        assert at >= 0, f"{module}: {done.stdout}{done.stderr}"
        answer = json.loads(done.stdout[at + 3 :])
        assert done.returncode == 0, f"{module} {args}: {answer.get('msg')}\n{answer.get('exception')}"
        return answer

    return run


@pytest.fixture
def twice(ansible):
    """Runs a task until it has changed something, and once more."""

    def run(module, **args):
        first = ansible(module, **args)
        assert first["changed"], f"{module} {args} changed nothing: {first}"
        second = ansible(module, **args)
        assert not second["changed"], f"{module} {args} changes something each time: {second}"
        return second

    return run


FAMILY = {"postgres": "postgres15", "mariadb": "mariadb10.11"}


def test_instance(engine, ansible, twice):
    """An instance and what belongs to it, from creation to removal, as a playbook has it."""
    kind = engine.name
    net, group, name = f"net-{kind}", f"group-{kind}", f"db-{kind}"
    subnets = ["subnet-us-east-1a", "subnet-us-east-1b"]
    twice("rds_subnet_group", name=net, state="present", description="two zones", subnets=subnets, tags={"team": "a"})
    dynamic, value, _ = engine.dynamic
    twice("rds_instance_param_group", name=group, state="present", description="ours", engine=FAMILY[kind], params={dynamic: value}, tags={"team": "a"})

    wish = dict(
        id=name, state="present", engine=kind, db_instance_class=instances.CLASS, allocated_storage=20, master_username="boss",
        master_user_password=engines.new_password(), db_name="app", db_subnet_group_name=net, db_parameter_group_name=group,
        backup_retention_period=0, tags={"team": "a", "stage": "test"}, apply_immediately=True, wait=True,
    )  # fmt: skip
    made = twice("rds_instance", **wish)
    assert made["db_instance_status"] == "available" and made["tags"] == {"team": "a", "stage": "test"}

    wish.update(allocated_storage=25, tags={"team": "b"}, purge_tags=True, backup_retention_period=1)
    made = twice("rds_instance", **wish)
    assert made["allocated_storage"] == 25 and made["tags"] == {"team": "b"}
    (info,) = ansible("rds_instance_info", db_instance_identifier=name)["instances"]
    assert info["tags"] == {"team": "b"} and info["db_instance_status"] == "available"

    twice("rds_instance", id=name, state="stopped", wait=True)
    twice("rds_instance", id=name, state="started", wait=True)
    assert ansible("rds_instance", id=name, state="rebooted", wait=True)["changed"]

    snapshot = f"snap-{kind}"
    twice("rds_instance_snapshot", id=snapshot, db_instance_identifier=name, tags={"team": "b"}, wait=True)
    (info,) = ansible("rds_snapshot_info", db_snapshot_identifier=snapshot)["snapshots"]
    # Not "tags": amazon.aws 10.1.2 makes those of a member that RDS does not send.
    assert info["status"] == "available" and info["tag_list"] == [{"key": "team", "value": "b"}]
    copy = dict(id=f"copy-{kind}", source_db_snapshot_identifier=snapshot, wait=True)
    twice("rds_instance_snapshot", **copy)

    back = dict(id=f"back-{kind}", creation_source="snapshot", snapshot_identifier=snapshot, db_instance_class=instances.CLASS)
    twice("rds_instance", **back, engine=kind, state="present", wait=True)

    for gone in (name, f"back-{kind}"):
        twice("rds_instance", id=gone, state="absent", skip_final_snapshot=True, wait=True)
    for gone in (snapshot, f"copy-{kind}"):
        twice("rds_instance_snapshot", id=gone, state="absent", wait=True)
    twice("rds_instance_param_group", name=group, state="absent")
    twice("rds_subnet_group", name=net, state="absent")


def test_info(engine, ansible):
    """What a playbook looks up before it makes anything."""
    versions = ansible("rds_engine_versions_info", engine=engine.name)["db_engine_versions"]
    assert versions and all(v["engine"] == engine.name for v in versions)
    groups = ansible("rds_instance_param_group_info")["db_instance_parameter_groups"]
    assert f"default.{FAMILY[engine.name]}" in {g["db_parameter_group_name"] for g in groups}
    groups = ansible("rds_option_group_info", engine_name=engine.name)["result"]
    assert {g["engine_name"] for g in groups} == {engine.name}
    assert not ansible("rds_instance_info", db_instance_identifier="absent")["instances"]


def test_cluster(server, ansible, twice):
    """A Multi-AZ DB cluster, which rds_cluster knows of RDS's PostgreSQL."""
    wish = dict(
        id="ring", state="present", engine="postgres", db_cluster_instance_class=instances.CLASS, allocated_storage=100, iops=1000, storage_type="io1",
        master_username="boss", master_user_password=engines.new_password(), database_name="app", tags={"team": "a"}, wait=True,
    )  # fmt: skip
    made = ansible("rds_cluster", **wish)
    assert made["changed"] and made["status"] == "available" and made["tags"] == {"team": "a"}
    # amazon.aws 10.1.2 sends StorageType each time where engine is postgres, on AWS too, and
    # says "changed"; nothing changes.
    again = ansible("rds_cluster", **wish)
    assert again["status"] == "available" and not again.get("pending_modified_values")
    same = {k: v for k, v in wish.items() if k not in ("engine", "storage_type")}
    assert not ansible("rds_cluster", **same)["changed"]
    assert twice("rds_cluster", **{**same, "tags": {"team": "b"}})["tags"] == {"team": "b"}
    (info,) = ansible("rds_cluster_info", cluster_id="ring")["clusters"]
    assert info["tags"] == {"team": "b"} and len(info["db_cluster_members"]) == 3
    twice("rds_cluster_snapshot", id="ring-snap", db_cluster_identifier="ring", tags={"team": "b"}, wait=True)
    (info,) = ansible("rds_snapshot_info", db_cluster_snapshot_identifier="ring-snap")["cluster_snapshots"]
    assert info["status"] == "available"
    twice("rds_cluster", id="ring", state="absent", skip_final_snapshot=True, wait=True)
    twice("rds_cluster_snapshot", id="ring-snap", state="absent", wait=True)
