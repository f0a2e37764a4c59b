"""Fixtures: one server for most tests, both engines where they are installed."""

import pytest

import engines
import harness
import instances

# The last two look at what all others left behind.
LAST = ["test_secret", "test_coverage"]


@pytest.hookimpl(trylast=True)  # after pytest has grouped the tests by fixture
def pytest_collection_modifyitems(config, items):
    def place(item):
        module = item.module.__name__
        return LAST.index(module) + 1 if module in LAST else 0

    items.sort(key=place)
    config.compat_modules = {item.module.__name__ for item in items}


@pytest.fixture(scope="session")
def server():
    s = harness.Server("--stop-databases-on-exit")
    try:
        yield s.start()
    finally:
        s.close()


@pytest.fixture(scope="session")
def rds(server):
    return server.rds


@pytest.fixture(scope="session")
def offered(rds):
    return {v["Engine"] for v in rds.describe_db_engine_versions()["DBEngineVersions"]}


@pytest.fixture(scope="session", params=list(engines.ENGINES))
def engine(request, offered):
    if request.param not in offered:
        pytest.skip(f"DescribeDBEngineVersions does not offer {request.param} on this machine")
    return engines.ENGINES[request.param]


@pytest.fixture(scope="session")
def postgres(offered):
    assert "postgres" in offered, "PostgreSQL is not offered; run scripts/install.sh"
    return engines.POSTGRES


@pytest.fixture
def resident(server, engine):
    """An instance for tests that only need one to be there and leave it as it is."""
    if engine.name not in _residents:
        _residents[engine.name] = instances.create(server, engine, name=f"resident-{engine.name}")
    return _residents[engine.name]


_residents = {}
