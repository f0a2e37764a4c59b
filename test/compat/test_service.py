"""The program itself: restarts under open connections, and starts that must fail."""

import signal
import subprocess
import time

import pytest

import engines
import harness
import instances
from harness import wait_for

END_LIMIT = 5  # seconds from SIGTERM to the end


@pytest.fixture(scope="module")
def own():
    """A server whose databases outlive it."""
    s = harness.Server()
    try:
        yield s.start()
    finally:
        # Only a server that is told so stops its databases.
        if s.process is None:
            s.start("--stop-databases-on-exit")
        else:
            s.signal_and_wait(signal.SIGTERM)
            s.start("--stop-databases-on-exit")
        s.close()


@pytest.fixture(scope="module")
def db(own, engine):
    made = instances.create(own, engine, name=f"kept-{engine.name}")
    yield made
    made.delete()


def works(connection):
    return engines.query(connection, "SELECT 1")[0][0] == 1


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL], ids=lambda s: s.name)
def test_connections_survive(own, db, how):
    before = db.describe()
    events = own.rds.describe_events(Duration=60)["Events"]
    with db.connect() as connection:
        code, took = own.signal_and_wait(how)
        if how is not signal.SIGKILL:
            assert code == 0 and took < END_LIMIT
        assert works(connection)
        with db.engine.connect(before["Endpoint"], db.user, db.password, "app") as fresh:
            assert works(fresh)  # nobody needs the service to log in
        own.start()
        assert works(connection)
        instances.stable_for(1, lambda: db.describe() == before)
        assert works(connection)
    assert own.rds.describe_events(Duration=60)["Events"] == events


def test_accepted_means_kept(own, db):
    """kill -9 right after the answer: the new service does what was asked."""
    wish = instances.request(db.engine)
    own.rds.create_db_instance(**wish)
    own.signal_and_wait(signal.SIGKILL)
    own.start()
    made = instances.Instance(own, db.engine, wish)
    resource = made.wait()["DbiResourceId"]
    with made.connect() as connection:
        assert works(connection)
    own.rds.delete_db_instance(DBInstanceIdentifier=made.name, SkipFinalSnapshot=True)
    own.signal_and_wait(signal.SIGKILL)
    own.start()
    wait_for("deleted", lambda: not instances.exists(own, made.name))
    assert harness.processes(resource) == [] and instances.cgroups(resource) == []
    assert not (own.data / "instances" / resource).exists()


def test_password_change_over_a_kill(own, db):
    new = engines.new_password()
    db.modify(MasterUserPassword=new, wait=False)
    own.signal_and_wait(signal.SIGKILL)
    own.start()
    db.wait()
    db.password = new
    with db.connect() as connection:
        assert works(connection)


def test_stop_databases_on_exit(own, db):
    with db.connect() as connection:
        engines.query(connection, "CREATE TABLE kept (n int)")
        engines.query(connection, "INSERT INTO kept VALUES (7)")
    own.signal_and_wait(signal.SIGTERM)
    own.start("--stop-databases-on-exit")
    resource = db.describe()["DbiResourceId"]
    assert harness.processes(resource)
    code, _ = own.signal_and_wait(signal.SIGTERM)
    assert code == 0 and harness.processes(resource) == []
    own.start()
    db.wait()
    with db.connect() as connection:
        assert engines.query(connection, "SELECT n FROM kept")[0][0] == 7


# --- starts that fail ----------------------------------------------------------


def start_fails(data, *more, listen="127.0.0.1:0", env=None):
    """Runs a server that must end by itself; returns what it said."""
    done = subprocess.run(
        [str(harness.BINARY), "server", "--data", str(data), "--listen", listen, *more],
        capture_output=True, text=True, timeout=60, env=env or harness.Server.environ(harness.Server.__new__(NoServer)),
    )  # fmt: skip
    assert done.returncode not in (0, None) and done.stdout == "", done
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("kurabe: ") and "goroutine" not in done.stderr and "panic" not in done.stderr, done.stderr
    return last


class NoServer(harness.Server):
    env = {}


def test_second_server_on_the_same_data(own):
    began = time.monotonic()
    said = start_fails(own.data)
    assert str(own.data) in said and ("in use" in said or "another" in said), said
    assert time.monotonic() - began < 10
    assert own.raw({"Action": "DescribeDBInstances"})[0] == 200


def test_taken_port(own, tmp_path):
    address = own.url.removeprefix("http://")
    said = start_fails(tmp_path / "data", listen=address)
    assert address in said and "address already in use" in said and "--listen" in said


def test_wrong_flags(tmp_path):
    for flag, value in [("--account", "12"), ("--listen", "nowhere"), ("--address-pool", "10.0.0.0/8"), ("--log-level", "loud")]:
        said = start_fails(tmp_path / "data", flag, value)
        assert flag in said, said


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """The data folder of a service that ended cleanly; tests spoil copies of it."""
    s = harness.Server()
    s.start()
    s.rds.create_db_parameter_group(DBParameterGroupName="kept", DBParameterGroupFamily=first_family(s), Description="d")
    s.signal_and_wait(signal.SIGTERM)
    yield s
    s.close()


def first_family(s):
    return s.rds.describe_db_engine_versions()["DBEngineVersions"][0]["DBParameterGroupFamily"]


@pytest.fixture
def copy(template):
    s = harness.Server()
    subprocess.run(["cp", "-a", str(template.data), str(s.data)], check=True)
    yield s
    s.close()


def test_copy_starts(copy):
    copy.start()
    assert copy.rds.describe_db_parameter_groups(DBParameterGroupName="kept")["DBParameterGroups"]


def test_corrupt_state_store(copy):
    store = copy.data / "etcd" / "member" / "snap" / "db"
    spoiled = b"\x00garbage\xff" * 4096
    store.write_bytes(spoiled)
    said = start_fails(copy.data)
    assert "state store" in said and "etcd" in said, said
    assert store.read_bytes() == spoiled, "evidence was changed"


def test_corrupt_log_of_the_state_store(copy):
    for file in (copy.data / "etcd" / "member" / "wal").glob("*.wal"):
        file.write_bytes(b"garbage" * 1000)
    assert "state store" in start_fails(copy.data)


def test_unreadable_host_file(copy):
    (copy.data / "host.json").write_text("{ not json")
    said = start_fails(copy.data)
    assert "host.json" in said and "backup" in said


def test_corrupt_certificate_authority(copy):
    (copy.data / "pki" / "ca.key").write_text("no key")
    assert "certificate authority" in start_fails(copy.data)


def test_data_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("x")
    assert "file" in start_fails(tmp_path / "file")
    assert "file" in start_fails(tmp_path / "file" / "below")


def test_credentials_are_made_once():
    """Without root credentials in the environment they are made and kept."""
    s = harness.Server()
    try:
        s.environ = lambda: {k: v for k, v in harness.Server.environ(s).items() if not k.startswith("KURABE_ROOT")}
        s.start()
        path = s.data / "credentials"
        text = path.read_text()
        assert path.stat().st_mode & 0o777 == 0o600
        values = dict(line.split(" = ") for line in text.splitlines() if " = " in line)
        client = s.client("sts", access_key=values["aws_access_key_id"], secret_key=values["aws_secret_access_key"])
        assert client.get_caller_identity()["Account"] == harness.ACCOUNT
        assert values["aws_secret_access_key"] not in s.log()
        s.signal_and_wait(signal.SIGTERM)
        s.start()
        assert path.read_text() == text
    finally:
        s.close()


def test_folder_that_the_engines_users_cannot_enter():
    """The service is root and a parent is private: engines run all the same."""
    s = harness.Server("--stop-databases-on-exit")
    try:
        s.folder.chmod(0o700)
        s.start()
        db = instances.create(s, engines.POSTGRES)
        with db.connect() as connection:
            assert works(connection)
        db.delete()
    finally:
        s.close()
