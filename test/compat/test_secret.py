"""Runs after the others: no password that they used is to be found anywhere."""

import base64
import json
import os
import pathlib
import re
import subprocess

import engines
import harness
import instances
from harness import SECRET_KEY, processes


def patterns():
    """Every password and the root secret, plain and as something may have encoded it."""
    plain = [*engines.passwords, SECRET_KEY]
    return plain + [base64.b64encode(p.encode()).decode().rstrip("=") for p in plain] + [p.encode().hex() for p in plain]


def seen(text):
    return [p for p in patterns() if p in text]


def test_there_is_something_to_look_for(resident):
    with resident.connect() as connection:
        assert engines.query(connection, "SELECT 1")
    assert engines.passwords


def test_data_folder(server, resident, tmp_path):
    """State store, settings, logs and the databases' own files."""
    sample = server.data / "probe.txt"
    listed = tmp_path / "patterns"
    listed.write_text("\n".join(patterns()))
    grep = ["grep", "-r", "-l", "-a", "-F", "-f", str(listed), str(server.data)]
    sample.write_text("before " + engines.passwords[0])
    assert subprocess.run(grep, capture_output=True, text=True).stdout.split() == [str(sample)]  # it would be found
    sample.unlink()
    found = subprocess.run(grep, capture_output=True, text=True).stdout.split()
    assert found == []


def test_log_of_the_service(server):
    assert seen(server.log()) == []
    assert "request finished" in server.log()


def test_processes(server, resident):
    """Arguments and environment of the service and the engines."""
    ours = {server.process.pid, *processes(str(server.data))}
    assert len(ours) > 1
    for pid in ours:
        for file in ("cmdline", "environ"):
            try:
                text = pathlib.Path(f"/proc/{pid}/{file}").read_bytes().decode(errors="replace")
            except (PermissionError, FileNotFoundError):
                continue
            if pid == server.process.pid and file == "environ":
                text = text.replace("KURABE_ROOT_SECRET_KEY=" + SECRET_KEY, "")  # the user put it there
            assert seen(text) == [], (pid, file, re.sub(r"\0", " ", text)[:300])


def test_events_and_replies(rds, server):
    pages = rds.get_paginator("describe_events").paginate(Duration=24 * 60)
    assert seen(json.dumps(list(pages), default=str)) == []
    assert seen(json.dumps([rds.describe_db_instances(DBInstanceIdentifier=n) for n in instances.names(server)], default=str)) == []


def test_engine_logs_over_the_api(rds, server, resident):
    for file in rds.describe_db_log_files(DBInstanceIdentifier=resident.name)["DescribeDBLogFiles"]:
        part = rds.download_db_log_file_portion(DBInstanceIdentifier=resident.name, LogFileName=file["LogFileName"], NumberOfLines=9999)
        assert seen(part.get("LogFileData", "")) == []


def test_explain(server):
    (name, *_) = instances.names(server)
    text = json.dumps(server.client("kurabe").explain(Name=name), default=str)
    assert seen(text) == []
    assert "SCRAM-SHA-256$" not in text, "the verifier is a secret too"


def test_files_of_the_service_are_its_own(server):
    """Others on the machine can read neither keys nor state."""
    if os.getuid() != 0:
        private = [server.data]
    else:
        private = [server.data / "pki" / "ca.key", server.data / "etcd" / "member" / "snap" / "db", server.data / "host.json"]
    for path in private:
        assert path.exists()
        reachable, parent = True, path
        while parent != server.folder:
            bit = 0o001 if parent.is_dir() else 0o004
            reachable = reachable and bool(parent.stat().st_mode & bit)
            parent = parent.parent
        assert not reachable, path
