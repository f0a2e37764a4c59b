"""AWS's Python driver wrapper follows a failover by names, with certificates verified."""

import json
import pathlib
import select
import subprocess
import sys
import urllib.request

import aws
import clusters
import conftest
import engines
import harness
import instances
import pytest

CLIENT = pathlib.Path(__file__).with_name("failover.py")
WAIT = 300


def kurabe(server, *args):
    return [str(harness.BINARY), *args, "--endpoint", server.url, "--data", str(server.data)]


def under_names(server, *command):
    return [*kurabe(server, "exec"), "--", *map(str, command)]


def lose_writer(server, name, user, password, endpoint, dialect, ca):
    """Kills the writer below a client of the wrapper; returns what the client has seen."""
    port = endpoint["Port"]
    pattern = "?." + endpoint["Address"].split(".", 1)[1].removeprefix("cluster-")
    told = {
        "host": endpoint["Address"], "port": port, "user": user, "password": password, "dbname": "app", "sslrootcert": str(ca),
        "suffix": conftest.SUFFIX, "cluster_instance_host_pattern": pattern, "dialect": dialect,
    }  # fmt: skip
    argv, env = under_names(server, sys.executable, CLIENT), aws.environ(server, FAILOVER_TOLD=json.dumps(told))
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as client:
        try:
            can, _, _ = select.select([client.stdout], [], [], 120)
            first = client.stdout.readline() if can else "nothing"
            assert first == "ready\n", f"{first!r}: {'' if not can else client.stderr.read()}"
            drill = subprocess.run(
                kurabe(server, "drill", name, "--kill", "writer", "--yes"), capture_output=True, text=True, timeout=WAIT,
                env=aws.environ(server, KURABE_DRILL_PASSWORD=password),
            )  # fmt: skip
            assert drill.returncode == 0, drill.stdout + drill.stderr
            out, errors = client.communicate(timeout=WAIT)
            assert client.returncode == 0, errors
            return json.loads(out)
        finally:
            client.kill()


@pytest.fixture(scope="session")
def ca(server, tmp_path_factory):
    file = tmp_path_factory.mktemp("ca") / "ca.pem"
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(server.url + "/ca.pem") as reply:
        file.write_bytes(reply.read())
    return file


def check(seen):
    assert seen["how"] == "FailoverSuccessError"
    assert seen["before"][1] is False and seen["after"][1] is False and seen["after"][2] == "on"
    assert seen["found"] >= seen["rows"] > 0, "an acknowledged row is missing"


def test_cluster(server, ca):
    wish = clusters.request(engines.POSTGRES, name="followed-ring")
    server.rds.create_db_cluster(**wish)
    ring = clusters.Cluster(server, engines.POSTGRES, wish)
    now = ring.whole(300)
    before = ring.writer()
    seen = lose_writer(server, ring.name, ring.user, ring.password, {"Address": now["Endpoint"], "Port": now["Port"]}, "multi-az-pg", ca)
    check(seen)
    ring.whole(300)
    after = ring.writer()
    assert after != before
    ids = {n: i["DbiResourceId"] for n, i in ring.servers().items()}
    assert (seen["before"][0], seen["after"][0]) == (ids[before], ids[after])
    ring.delete()


def test_instance(server, ca):
    """To the wrapper a Multi-AZ instance is one server, whose name leads to the new writer."""
    pair = instances.create(server, engines.POSTGRES, name="followed-pair", MultiAZ=True, wait=False)
    pair.wait(timeout=300)
    before = pair.describe()
    seen = lose_writer(server, pair.name, pair.user, pair.password, before["Endpoint"], "multi-az-pg", ca)
    check(seen)
    assert pair.describe()["AvailabilityZone"] != before["AvailabilityZone"]
    pair.delete()
