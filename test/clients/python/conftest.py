"""One service for all clients, started as the compatibility tests start theirs."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "compat"))

import engines  # noqa: E402
import harness  # noqa: E402

SUFFIX = "db.example"


@pytest.fixture(scope="session")
def server():
    s = harness.Server("--stop-databases-on-exit", "--endpoint-suffix", SUFFIX)
    try:
        yield s.start()
    finally:
        s.close()


@pytest.fixture(scope="session")
def offered(server):
    return {v["Engine"] for v in server.rds.describe_db_engine_versions()["DBEngineVersions"]}


@pytest.fixture(scope="session", params=list(engines.ENGINES))
def engine(request, offered):
    if request.param not in offered:
        pytest.skip(f"DescribeDBEngineVersions does not offer {request.param} on this machine")
    return engines.ENGINES[request.param]


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter):
    """The last line is that which scripts/clients.sh adds up."""
    count = {kind: len(terminalreporter.stats.get(kind, [])) for kind in ("passed", "failed", "error", "skipped")}
    terminalreporter.config.clients_totals = f"{count['passed']} passed, {count['failed'] + count['error']} failed, {count['skipped']} skipped"


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config):
    totals = getattr(config, "clients_totals", None)
    if totals:
        print(totals)
