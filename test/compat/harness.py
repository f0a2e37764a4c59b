"""The service under test, and the ways to reach it: boto3, the AWS CLI, raw HTTP.

Nothing here may leave the machine: every client gets an endpoint on loopback,
and the environment of the AWS CLI has proxies that answer nobody.
"""

import atexit
import contextlib
import http.client
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

import boto3
import botocore.auth
import botocore.awsrequest
import botocore.credentials
from botocore.config import Config

import wire

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("KURABE_BIN", ROOT / "bin" / "kurabe")).absolute()
REGION = "us-east-1"
ACCOUNT = "000000000000"
ACCESS_KEY, SECRET_KEY = "AKIDCOMPATIBLE", "compat-root-secret-7Yq2"
CGROUPS = pathlib.Path("/sys/fs/cgroup")
READY_TIMEOUT = 60  # a first start also asks every engine for its parameters
STOP_TIMEOUT = 60


class Server:
    """One service with a data folder of its own.

    Only the first of a run makes the engines' templates, which takes seconds; the
    others begin with a copy of them, as a service does that was upgraded.
    """

    templates = None

    def __init__(self, *flags, env=None):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kurabe-compat-"))
        self.folder.chmod(0o755)  # the engines' users pass through
        self.data = self.folder / "data"
        self.flags = list(flags)
        self.env = env or {}
        self.process = None
        self.url = None
        self.clients = {}

    def argv(self, *extra, listen="127.0.0.1:0"):
        return [str(BINARY), "server", "--data", str(self.data), "--listen", listen, *self.flags, *extra]

    def environ(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "KURABE_"))}
        return env | {"KURABE_ROOT_ACCESS_KEY": ACCESS_KEY, "KURABE_ROOT_SECRET_KEY": SECRET_KEY} | self.env

    def launch(self, *extra, listen="127.0.0.1:0"):
        """Starts the program and returns what it printed first on standard output."""
        self.errors = open(self.folder / "stderr.txt", "ab")
        self.process = subprocess.Popen(
            self.argv(*extra, listen=listen), stdout=subprocess.PIPE, stderr=self.errors, text=True, env=self.environ()
        )
        ready, _, _ = select.select([self.process.stdout], [], [], READY_TIMEOUT)
        assert ready, f"nothing on standard output after {READY_TIMEOUT} s:\n{self.log()}"
        return self.process.stdout.readline().rstrip("\n")

    def start(self, *extra):
        # The port is kept over restarts, as a user's would be.
        listen = self.url.removeprefix("http://") if self.url else "127.0.0.1:0"
        own = self.data / "templates"
        if Server.templates and not self.data.exists():
            self.data.mkdir()
            subprocess.run(["cp", "-a", str(Server.templates), str(own)], check=True)
        line = self.launch(*extra, listen=listen)
        assert line.startswith("kurabe ready http://127.0.0.1:"), f"{line!r}\n{self.log()}"
        self.url = line.removeprefix("kurabe ready ")
        if Server.templates is None:
            Server.templates = pathlib.Path(tempfile.mkdtemp(prefix="kurabe-compat-templates-")) / "templates"
            atexit.register(shutil.rmtree, Server.templates.parent, ignore_errors=True)
            subprocess.run(["cp", "-a", str(own), str(Server.templates)], check=True)
        return self

    def signal_and_wait(self, number, timeout=STOP_TIMEOUT):
        """Ends the service by a signal; returns its exit code and the seconds it took."""
        began = time.monotonic()
        self.process.send_signal(number)
        code = self.process.wait(timeout)
        rest = self.process.stdout.read()
        self.process.stdout.close()
        self.errors.close()
        self.process = None
        assert rest == "", f"more on standard output than the one line: {rest!r}"
        return code, time.monotonic() - began

    def log(self):
        return (self.folder / "stderr.txt").read_text(errors="replace")

    def close(self):
        """Stops everything and removes the folder; what survives is a failure."""
        if self.process is not None:
            self.signal_and_wait(signal.SIGTERM)
        left = processes(str(self.data))
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        self.remove_cgroups()
        shutil.rmtree(self.folder, ignore_errors=True)
        assert not left, f"processes of the service were left: {left}"

    def remove_cgroups(self):
        """Removes the empty control groups of a service that nobody starts again."""
        try:
            host = "kurabe-" + json.loads((self.data / "host.json").read_text())["id"]
        except (OSError, ValueError):
            return
        for group in [*CGROUPS.glob(host), *CGROUPS.glob(f"*/{host}")]:
            for folder, _, _ in os.walk(group, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(folder)

    # --- clients ---------------------------------------------------------------

    def client(self, service="rds", access_key=ACCESS_KEY, secret_key=SECRET_KEY, watched=True, **config):
        """A boto3 client whose replies are checked against botocore's model and recorded, if watched."""
        key = (service, access_key, secret_key, watched, tuple(sorted(config.items())), self.url)
        if key not in self.clients:
            session = boto3.session.Session(
                aws_access_key_id=access_key, aws_secret_access_key=secret_key, region_name=REGION
            )
            client = session.client(
                service, endpoint_url=self.url,
                config=Config(retries={"total_max_attempts": 1}, max_pool_connections=40, proxies={}, inject_host_prefix=False, **config),
            )
            if watched:
                wire.watch(client)
            self.clients[key] = client
        return self.clients[key]

    @property
    def rds(self):
        return self.client()

    def cli(self, action, *args, service="rds", fails=False, anew=False):
        """Runs the AWS CLI; returns what it printed as JSON, or its error text. Started
        anew it is the program as users have it; otherwise see awsfork."""
        program = shutil.which("aws", path=os.path.dirname(sys.executable) + ":" + os.environ["PATH"])
        nowhere = "http://127.0.0.1:9"  # the discard port: nobody listens
        env = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")} | {
            "AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY, "AWS_DEFAULT_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_MAX_ATTEMPTS": "1", "AWS_DATA_PATH": wire.MODELS, "AWS_PAGER": "", "HTTP_PROXY": nowhere, "HTTPS_PROXY": nowhere, "NO_PROXY": "127.0.0.1",
        }  # fmt: skip
        for lower in ("http_proxy", "https_proxy", "no_proxy"):
            env[lower] = env[lower.upper()]
        argv = [program, "--endpoint-url", self.url, "--output", "json", service, action, *map(str, args)]
        done = subprocess.run(argv, capture_output=True, text=True, env=env, timeout=90) if anew else forked(argv, env, 90)
        if fails:
            assert done.returncode != 0, f"{argv} did not fail: {done.stdout}"
            return done.stderr
        assert done.returncode == 0, f"{argv}: {done.stderr}"
        if action != "wait":
            wire.record("cli", service, action)
        return json.loads(done.stdout) if done.stdout.strip() else None

    def raw(self, params, service="rds", sign=True, change=None, key=ACCESS_KEY, secret=SECRET_KEY, when=None, method="POST"):
        """Sends a form by hand; change may spoil the request after it was signed.
        Returns status, error code (None when it went well) and the reply's text."""
        versions = {"rds": "2014-10-31", "sts": "2011-06-15"}
        body = params if isinstance(params, (str, bytes)) else urllib.parse.urlencode({"Version": versions[service], **params})
        body = body.encode() if isinstance(body, str) else body
        request = botocore.awsrequest.AWSRequest(
            method=method, url=self.url + "/", data=body,
            headers={"Content-Type": "application/x-www-form-urlencoded; charset=utf-8", "X-Probe": "one"},
        )  # fmt: skip
        if sign:
            auth = botocore.auth.SigV4Auth(botocore.credentials.Credentials(key, secret), service, REGION)
            if when is None:
                auth.add_auth(request)
            else:
                sign_at(auth, request, when)
        headers = dict(request.headers.items())
        if change:
            body = change(headers, body) or body
        return self.send(method, "/", body, headers)

    def send(self, method, path, body=None, headers=None):
        host = urllib.parse.urlsplit(self.url).netloc
        connection = http.client.HTTPConnection(host, timeout=30)
        try:
            try:
                connection.request(method, path, body, headers or {})
            except (BrokenPipeError, ConnectionResetError):
                pass  # refused in the middle of the body: the answer is there
            reply = connection.getresponse()
            text = reply.read().decode()
            return reply.status, wire.error_code(text), text
        finally:
            connection.close()


_cli = None  # the process that has read the AWS CLI
_cli_lock = threading.Lock()


def forked(argv, env, timeout):
    """What subprocess.run returns, of a command of the AWS CLI."""
    global _cli
    with _cli_lock, tempfile.TemporaryDirectory() as folder:
        if _cli is None:
            program = pathlib.Path(__file__).with_name("awsfork.py")
            clean = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "KURABE_"))}
            _cli = subprocess.Popen([sys.executable, "-B", str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=clean)
            atexit.register(lambda: (_cli.stdin.close(), _cli.wait(10)))
        out, err = (pathlib.Path(folder, name) for name in ("stdout", "stderr"))
        out.touch(), err.touch()
        command = {"argv": argv, "env": env, "stdout": str(out), "stderr": str(err), "timeout": timeout}
        _cli.stdin.write(json.dumps(command) + "\n")
        _cli.stdin.flush()
        code = json.loads(_cli.stdout.readline())
        assert code is not None, f"{argv}: not within {timeout} s: {err.read_text()}"
        return subprocess.CompletedProcess(argv, code, out.read_text(), err.read_text())


def sign_at(auth, request, when):
    """Signs as a machine whose clock says when."""
    real = botocore.auth.get_current_datetime
    botocore.auth.get_current_datetime = lambda *_, **__: when
    try:
        auth.add_auth(request)
    finally:
        botocore.auth.get_current_datetime = real


def processes(text):
    """The ids of processes with text in their command line or working folder."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            line = (entry / "cmdline").read_bytes().decode(errors="replace")
            if text in line or text in os.readlink(entry / "cwd"):
                found.append(int(entry.name))
        except OSError:
            continue
    return [pid for pid in found if pid != os.getpid()]


def wait_for(what, condition, timeout=30, pause=0.05):
    """Waits until condition returns something true, and returns that."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"not within {timeout} s: {what}"
        time.sleep(pause)
