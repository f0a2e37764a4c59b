"""Instances as the tests make and watch them."""

import itertools
import pathlib
import time

import engines
from harness import wait_for

CLASS, BIGGER = "db.local.micro", "db.local.small"
GIB = 1 << 30
_count = itertools.count(1)


def new_name(prefix="db"):
    return f"{prefix}-{next(_count)}"


def request(engine, name=None, **over):
    """The parameters of a small instance."""
    wish = {
        "DBInstanceIdentifier": name or new_name(), "Engine": engine.name, "DBInstanceClass": CLASS, "AllocatedStorage": 20,
        "MasterUsername": "boss", "MasterUserPassword": engines.new_password(), "DBName": "app",
        "BackupRetentionPeriod": 0,  # a test that is not about backups does not wait for one
    }  # fmt: skip
    wish.update(over)
    return {k: v for k, v in wish.items() if v is not None}


class Instance:
    """A created instance and the password that opens it."""

    def __init__(self, server, engine, wish):
        self.server, self.engine, self.wish = server, engine, wish
        self.name, self.user, self.password = wish["DBInstanceIdentifier"].lower(), wish["MasterUsername"], wish["MasterUserPassword"]

    def describe(self):
        (only,) = self.server.rds.describe_db_instances(DBInstanceIdentifier=self.name)["DBInstances"]
        return only

    def status(self):
        return self.describe()["DBInstanceStatus"]

    def wait(self, status="available", timeout=60):
        """Polls as a waiter does, faster; fails where botocore's waiter would."""
        bad = {"failed", "incompatible-restore", "incompatible-parameters", "incompatible-network", "deleting"} - {status}

        def reached():
            now = self.describe()
            assert now["DBInstanceStatus"] not in bad, f"{self.name} is {now['DBInstanceStatus']}: {now.get('StatusInfos')}"
            return now if now["DBInstanceStatus"] == status else None

        try:
            return wait_for(f"{self.name} {status}", reached, timeout)
        except AssertionError as e:
            now = self.describe()
            said = [line for line in self.server.log().splitlines() if now["DbiResourceId"] in line]
            raise AssertionError("\n".join([str(e), str(now.get("StatusInfos")), *said[-30:]])) from None

    def modify(self, wait=True, **wish):
        """Modifies at once and waits as users do: for "available", nothing else."""
        out = self.server.rds.modify_db_instance(DBInstanceIdentifier=self.name, ApplyImmediately=True, **wish)["DBInstance"]
        if wait:
            self.wait()
        return out

    def connect(self, password=None, database="app", **how):
        return self.engine.connect(self.describe()["Endpoint"], self.user, password or self.password, database, **how)

    def setting(self, name):
        with self.connect() as connection:
            return self.engine.setting(connection, name)

    def delete(self, wait=True):
        self.server.rds.delete_db_instance(DBInstanceIdentifier=self.name, SkipFinalSnapshot=True)
        if wait:
            wait_for(f"{self.name} gone", lambda: not exists(self.server, self.name))


def create(server, engine, wait=True, **over):
    wish = request(engine, **over)
    server.rds.create_db_instance(**wish)
    instance = Instance(server, engine, wish)
    if wait:
        instance.wait()
    return instance


def exists(server, name):
    try:
        server.rds.describe_db_instances(DBInstanceIdentifier=name)
    except server.rds.exceptions.DBInstanceNotFoundFault:
        return False
    return True


def names(server):
    pages = server.rds.get_paginator("describe_db_instances").paginate()
    return [i["DBInstanceIdentifier"] for page in pages for i in page["DBInstances"]]


def cgroups(resource_id):
    """The control groups that carry an instance's id."""
    found = []
    for controller in [pathlib.Path("/sys/fs/cgroup"), *pathlib.Path("/sys/fs/cgroup").glob("*/")]:
        for host in controller.glob("kurabe-host-*"):
            found += [str(p) for p in host.rglob("*") if p.is_dir() and resource_id in p.name]
    return found


def stable_for(seconds, look):
    """Asserts that look returns the same all the time."""
    first, end = look(), time.monotonic() + seconds
    while time.monotonic() < end:
        again = look()
        assert again == first, f"changed from {first} to {again}"
        time.sleep(0.1)
    return first
