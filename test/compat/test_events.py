"""Events and subscriptions to them: what happens to an instance reaches an HTTP subscriber, in order."""

import http.server
import json
import threading
import urllib.request

import pytest
from botocore.exceptions import ClientError

import harness
from harness import wait_for

ACCOUNT, REGION = harness.ACCOUNT, harness.REGION


@pytest.fixture(scope="module")
def inbox(server):
    """A topic, and the events that its HTTP subscriber was sent."""
    got = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()
            if document["Type"] == "SubscriptionConfirmation":
                threading.Thread(target=lambda: urllib.request.urlopen(document["SubscribeURL"], timeout=30).read()).start()
            elif document["Message"].startswith("{"):
                assert document["Subject"] == "RDS Notification Message", document
                got.append(json.loads(document["Message"]) | {"attributes": document.get("MessageAttributes", {})})

        def log_message(self, *args):
            pass

    listener = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=listener.serve_forever, daemon=True).start()
    sns = server.client("sns")
    topic = sns.create_topic(Name="events")["TopicArn"]
    made = sns.subscribe(TopicArn=topic, Protocol="http", Endpoint=f"http://127.0.0.1:{listener.server_port}/", ReturnSubscriptionArn=True)
    wait_for(
        "the subscriber's confirmation",
        lambda: sns.get_subscription_attributes(SubscriptionArn=made["SubscriptionArn"])["Attributes"]["PendingConfirmation"] == "false",
        timeout=120,
    )
    yield topic, got
    sns.delete_topic(TopicArn=topic)
    listener.shutdown()


@pytest.fixture
def subscription(rds):
    yield "ops"
    for s in rds.describe_event_subscriptions()["EventSubscriptionsList"]:
        rds.delete_event_subscription(SubscriptionName=s["CustSubscriptionId"])


def ids(got):
    return [e["Event ID"].split("#")[1] for e in got]


def test_events_reach_a_subscriber(server, rds, inbox, subscription, resident):
    topic, got = inbox
    got.clear()  # of the other engine
    made = rds.create_event_subscription(
        SubscriptionName=subscription, SnsTopicArn=topic, SourceType="db-instance", SourceIds=[resident.name],
        EventCategories=["availability", "configuration change"], Tags=[{"Key": "team", "Value": "web"}],
    )["EventSubscription"]  # fmt: skip
    assert (made["Status"], made["Enabled"], made["SourceIdsList"]) == ("creating", True, [resident.name])
    arn = f"arn:aws:rds:{REGION}:{ACCOUNT}:es:{subscription}"
    assert (made["EventSubscriptionArn"], made["CustomerAwsId"], made["SnsTopicArn"]) == (arn, ACCOUNT, topic)
    assert rds.list_tags_for_resource(ResourceName=arn)["TagList"] == [{"Key": "team", "Value": "web"}]
    rds.reboot_db_instance(DBInstanceIdentifier=resident.name)
    resident.wait()
    wait_for("the event of the reboot", lambda: got, timeout=120)
    (event,) = got
    assert ids(got) == ["RDS-EVENT-0006"]
    assert event["Event Source"] == "db-instance" and event["Source ID"] == resident.name and event["Event Message"] == "DB instance restarted"
    assert event["Source ARN"] == f"arn:aws:rds:{REGION}:{ACCOUNT}:db:{resident.name}"
    assert event["attributes"] == {
        "EventID": {"Type": "String", "Value": "RDS-EVENT-0006"}, "Resource": {"Type": "String", "Value": event["Source ARN"]},
    }  # fmt: skip
    told = [e["Message"] for e in rds.describe_events(SourceType="db-instance", SourceIdentifier=resident.name, Duration=60)["Events"]]
    assert "DB instance restarted" in told


def test_a_subscription_by_the_cli(server, rds, inbox, subscription, resident):
    topic, _ = inbox
    by_name = ["--subscription-name", subscription]
    made = server.cli("create-event-subscription", *by_name, "--sns-topic-arn", topic, "--source-type", "db-instance", "--no-enabled")
    assert made["EventSubscription"]["Enabled"] is False
    added = server.cli("add-source-identifier-to-subscription", *by_name, "--source-identifier", resident.name)["EventSubscription"]
    assert added["SourceIdsList"] == [resident.name] and added["Status"] == "modifying"
    removed = server.cli("remove-source-identifier-from-subscription", *by_name, "--source-identifier", resident.name)["EventSubscription"]
    assert removed.get("SourceIdsList", []) == []
    changed = server.cli("modify-event-subscription", *by_name, "--enabled", "--event-categories", "failover", "low storage")["EventSubscription"]
    assert changed["Enabled"] and changed["EventCategoriesList"] == ["failover", "low storage"]
    (now,) = server.cli("describe-event-subscriptions", *by_name)["EventSubscriptionsList"]
    assert now["Status"] == "active" and now["EventCategoriesList"] == ["failover", "low storage"]
    assert server.cli("delete-event-subscription", *by_name)["EventSubscription"]["Status"] == "deleting"


def test_changes_and_pages(rds, inbox, subscription, resident):
    topic, _ = inbox
    for n in range(25):
        rds.create_event_subscription(SubscriptionName=f"ops-{n:02}", SnsTopicArn=topic, SourceType="db-instance", Enabled=False)
    pages = list(rds.get_paginator("describe_event_subscriptions").paginate(PaginationConfig={"PageSize": 20}))
    assert [len(p["EventSubscriptionsList"]) for p in pages] == [20, 5]
    assert rds.add_source_identifier_to_subscription(SubscriptionName="ops-00", SourceIdentifier=resident.name)["EventSubscription"]["SourceIdsList"]
    rds.remove_source_identifier_from_subscription(SubscriptionName="ops-00", SourceIdentifier=resident.name)
    assert rds.modify_event_subscription(SubscriptionName="ops-00", Enabled=True)["EventSubscription"]["Enabled"] is True
    quota = {q["AccountQuotaName"]: q for q in rds.describe_account_attributes()["AccountQuotas"]}["EventSubscriptions"]
    assert (quota["Used"], quota["Max"]) == (25, 50)


def test_refusals(rds, inbox, subscription, resident):
    topic, _ = inbox
    good = {"SubscriptionName": subscription, "SnsTopicArn": topic, "SourceType": "db-instance"}
    rds.create_event_subscription(**good)
    for change, code in [
        ({}, "SubscriptionAlreadyExist"),
        ({"SubscriptionName": "b", "SnsTopicArn": "events"}, "SNSInvalidTopic"),
        ({"SubscriptionName": "b", "SnsTopicArn": topic + "-absent"}, "SNSTopicArnNotFound"),
        ({"SubscriptionName": "b", "EventCategories": ["tea"]}, "SubscriptionCategoryNotFound"),
        ({"SubscriptionName": "b", "SourceIds": ["absent"]}, "SourceNotFound"),
        ({"SubscriptionName": "b", "SourceType": "teapot"}, "InvalidParameterValue"),
    ]:
        with pytest.raises(ClientError) as refused:
            rds.create_event_subscription(**good | change)
        assert refused.value.response["Error"]["Code"] == code, refused.value
    for call in (rds.modify_event_subscription, rds.delete_event_subscription, rds.describe_event_subscriptions):
        with pytest.raises(rds.exceptions.SubscriptionNotFoundFault):
            call(SubscriptionName="absent")


def test_categories(rds):
    listed = {c["SourceType"]: c["EventCategories"] for c in rds.describe_event_categories()["EventCategoriesMapList"]}
    assert "read replica" in listed["db-instance"] and listed["db-parameter-group"] == ["configuration change"]
    (one,) = rds.describe_event_categories(SourceType="db-snapshot")["EventCategoriesMapList"]
    assert one["EventCategories"] == listed["db-snapshot"]
