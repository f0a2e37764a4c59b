"""CloudWatch's metrics through SDKs and CLIs of two generations: those that ask in JSON, and
those before, that send forms and read XML."""

import json
import os
import pathlib
import subprocess
import sys

import aws
import engines
import instances
import pytest

CLIENT = pathlib.Path(__file__).with_name("metrics_client.py")
GENERATIONS = {"json": pathlib.Path(sys.executable).parent, "query": pathlib.Path(os.environ.get("KURABE_EARLIER_CLIENTS", "/nowhere")) / "bin"}


@pytest.fixture(scope="module")
def instance(server, offered):
    return instances.create(server, engines.ENGINES[sorted(offered)[0]], name="measured")


@pytest.mark.parametrize("protocol", list(GENERATIONS))
def test_boto3(server, instance, protocol):
    argv = [GENERATIONS[protocol] / "python", CLIENT, server.url, instance.name, f"by-{protocol}"]
    done = subprocess.run(argv, capture_output=True, text=True, env=aws.environ(server), timeout=240)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["protocol"] == protocol, seen
    assert seen["ascending"] and seen["values"] == [1]
    assert seen["own"] == [499500, 1000, "Count", True]
    assert seen["listed"] == [{"Namespace": f"by-{protocol}", "MetricName": "m", "Dimensions": [{"Name": "a", "Value": "1"}]}]
    assert seen["alarm"] == [[{"Name": "a", "Value": "1"}], 900.5, True, True, 1, [999.0], []]
    assert seen["refused"] == [
        ["InvalidParameterValueException", "InvalidParameterValue"], ["InvalidNextToken", "InvalidNextToken"], ["ValidationError"], ["ClientError", "UnsupportedOperation"],
        ["ResourceNotFound", "ResourceNotFound"],
    ]  # fmt: skip


def test_earlier_cli(server, instance):
    argv = [GENERATIONS["query"] / "python", "-m", "awscli", "--output", "json", "cloudwatch", "get-metric-data"]
    argv += ["--start-time", "2000-01-01T00:00:00Z", "--end-time", "2100-01-01T00:00:00Z", "--metric-data-queries"]
    argv += ['[{"Id":"m1","MetricStat":{"Metric":{"Namespace":"AWS/RDS","MetricName":"CPUUtilization"},"Period":60,"Stat":"Average"}}]']
    done = subprocess.run(argv, capture_output=True, text=True, env=aws.environ(server), timeout=120)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["MetricDataResults"][0]["Values"]
