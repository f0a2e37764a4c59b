"""A service of an earlier version, this one and the earlier one again over the same folder.

`make upgrade FROM=…` builds the earlier program and starts this. Clients write all the while:
no session ends, no write fails, and what was acknowledged is there.
"""

import os
import pathlib
import signal
import sys
import threading
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "compat"))

import engines  # noqa: E402
import harness  # noqa: E402
import instances  # noqa: E402

NOW = harness.BINARY
EARLIER = pathlib.Path(os.environ.get("KURABE_EARLIER_BIN", "/nowhere"))


class Ledger(threading.Thread):
    """One session that commits a number every few milliseconds and keeps what was acknowledged."""

    def __init__(self, db):
        super().__init__(daemon=True)
        self.db, self.acknowledged, self.error, self.ended = db, 0, None, threading.Event()
        self.began = threading.Event()
        with db.connect() as c:
            engines.query(c, "CREATE TABLE ledger (n bigint PRIMARY KEY)")
        self.start()
        assert self.began.wait(60)

    def run(self):
        try:
            with self.db.connect() as c:
                self.began.set()
                while not self.ended.is_set():
                    engines.query(c, f"INSERT INTO ledger VALUES ({self.acknowledged + 1})")
                    self.acknowledged += 1
                    time.sleep(0.005)
        except Exception as e:  # whatever it is, the client saw it
            self.error = e

    def end(self):
        self.ended.set()
        self.join(60)
        assert self.error is None, f"after {self.acknowledged} commits: {self.error!r}"
        with self.db.connect() as c:
            ((found,),) = engines.query(c, "SELECT count(*) FROM ledger")
        assert found == self.acknowledged > 100


@pytest.fixture
def server():
    assert EARLIER.exists(), "KURABE_EARLIER_BIN names no program; start make upgrade FROM=…"
    s = harness.Server("--stop-databases-on-exit")
    s.flags = []
    yield s
    s.flags = ["--stop-databases-on-exit"]
    if s.process is None:
        harness.BINARY = NOW
        s.start()
    else:  # the flag is one of the start
        s.signal_and_wait(signal.SIGTERM)
        s.start()
    s.close()


def restart(server, binary, how):
    server.signal_and_wait(how)
    harness.BINARY = binary
    server.start()


def test_there_and_back(server):
    harness.BINARY = EARLIER
    server.start()
    made = [instances.create(server, engine, BackupRetentionPeriod=1) for engine in engines.ENGINES.values()]
    for db in made:
        db.wait()
    running = [harness.processes(db.describe()["DbiResourceId"]) for db in made]
    ledgers = [Ledger(db) for db in made]
    for n, (binary, how) in enumerate([(NOW, signal.SIGTERM), (EARLIER, signal.SIGKILL), (NOW, signal.SIGKILL), (EARLIER, signal.SIGTERM), (NOW, signal.SIGTERM)]):
        restart(server, binary, how)
        for db in made:
            db.wait()
            name = f"{db.name}-{n}"
            server.rds.create_db_snapshot(DBInstanceIdentifier=db.name, DBSnapshotIdentifier=name)
            server.rds.get_waiter("db_snapshot_available").wait(DBSnapshotIdentifier=name, WaiterConfig={"Delay": 1, "MaxAttempts": 90})
            db.wait()
            taken = {s["DBSnapshotIdentifier"] for s in server.rds.describe_db_snapshots(DBInstanceIdentifier=db.name, SnapshotType="manual")["DBSnapshots"]}
            assert taken == {f"{db.name}-{m}" for m in range(n + 1)}
    for ledger in ledgers:
        ledger.end()
    for db, before in zip(made, running):
        assert before[0] in harness.processes(db.describe()["DbiResourceId"]), "the server is another process"
