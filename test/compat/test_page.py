"""More instances than a page holds, created and deleted at once."""

import concurrent.futures
import os

import pytest

import engines
import harness
import instances
from harness import wait_for

COUNT = 21  # the smallest page is 20
READY_WITHIN = 30  # seconds, for about this many


@pytest.fixture(scope="module")
def fleet():
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if memory < (COUNT + 1) * instances.GIB:
        pytest.skip(f"{COUNT} instances reserve {COUNT} GiB and this machine has {memory / instances.GIB:.1f}")
    s = harness.Server("--stop-databases-on-exit")
    try:
        yield s.start()
    finally:
        s.close()


def test_created_at_once(fleet):
    names = [f"fleet-{n:02}" for n in range(COUNT)]
    with concurrent.futures.ThreadPoolExecutor(COUNT) as pool:
        list(pool.map(lambda n: fleet.rds.create_db_instance(**instances.request(engines.POSTGRES, n)), names))
    assert instances.names(fleet) == names

    def available():
        pages = fleet.rds.get_paginator("describe_db_instances").paginate(PaginationConfig={"PageSize": 20})
        return all(i["DBInstanceStatus"] == "available" for p in pages for i in p["DBInstances"])

    wait_for("all available", available, READY_WITHIN, pause=0.3)
    endpoints = {i["Endpoint"]["Address"] for p in fleet.rds.get_paginator("describe_db_instances").paginate() for i in p["DBInstances"]}
    assert len(endpoints) == COUNT


def test_pages(fleet):
    pages = list(fleet.rds.get_paginator("describe_db_instances").paginate(PaginationConfig={"PageSize": 20}))
    assert [len(p["DBInstances"]) for p in pages] == [20, 1]
    assert pages[0]["Marker"] and "Marker" not in pages[1]
    assert [i for p in pages for i in p["DBInstances"]] == fleet.rds.describe_db_instances()["DBInstances"]
    every = fleet.cli("describe-db-instances", "--page-size", 20, "--query", "DBInstances[].DBInstanceIdentifier")
    assert every == instances.names(fleet)


def test_page_after_what_is_gone(fleet):
    """A marker stays good when the instance that it names has been deleted."""
    first = fleet.rds.describe_db_instances(MaxRecords=20)
    fleet.rds.delete_db_instance(DBInstanceIdentifier="fleet-19", SkipFinalSnapshot=True)
    wait_for("fleet-19 gone", lambda: not instances.exists(fleet, "fleet-19"))
    rest = fleet.rds.describe_db_instances(MaxRecords=20, Marker=first["Marker"])
    assert [i["DBInstanceIdentifier"] for i in rest["DBInstances"]] == ["fleet-20"]


def test_deleted_at_once(fleet):
    ids = [i["DbiResourceId"] for i in fleet.rds.describe_db_instances()["DBInstances"]]
    for name in instances.names(fleet):
        fleet.rds.delete_db_instance(DBInstanceIdentifier=name, SkipFinalSnapshot=True)
    wait_for("none left", lambda: not instances.names(fleet), 60, pause=0.3)
    assert list((fleet.data / "instances").iterdir()) == []
    assert [pid for i in ids for pid in harness.processes(i)] == []
    assert [g for i in ids for g in instances.cgroups(i)] == []
