"""SNS: topics, subscriptions that agree first, and notifications over HTTP and by mail."""

import contextlib
import http.server
import json
import socket
import threading
import urllib.parse
import urllib.request

import pytest
from aiosmtpd.controller import Controller
from botocore.exceptions import ClientError

import harness
from harness import wait_for

# What an action of SNS is not: the reason stands in the error.
DECLINED = {
    "AddPermission": {"TopicArn": "a", "Label": "l", "AWSAccountId": ["0"], "ActionName": ["Publish"]},
    "CheckIfPhoneNumberIsOptedOut": {"phoneNumber": "1"}, "CreatePlatformApplication": {"Name": "n", "Platform": "p", "Attributes": {}},
    "GetDataProtectionPolicy": {"ResourceArn": "a"}, "GetSMSAttributes": {}, "ListPlatformApplications": {}, "ListOriginationNumbers": {},
}  # fmt: skip


@pytest.fixture(scope="session")
def sns(server):
    return server.client("sns")


class Subscriber:
    """An HTTP server on loopback that keeps what it is sent."""

    def __init__(self):
        self.got, outer = [], self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                outer.got.append((self.path, dict(self.headers), body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def documents(self, path, kind):
        found = [json.loads(body) for at, headers, body in list(self.got) if at == path and headers.get("x-amz-sns-message-type") == kind]
        return found

    def one(self, path, kind="Notification"):
        return wait_for(f"a {kind} at {path}", lambda: self.documents(path, kind), timeout=60)[-1]


@pytest.fixture(scope="module")
def subscriber():
    s = Subscriber()
    yield s
    s.server.shutdown()


@pytest.fixture
def topic(sns, request):
    name = "t-" + request.node.name.translate(str.maketrans("[]_.", "----"))[:200]
    arn = sns.create_topic(Name=name)["TopicArn"]
    yield arn
    sns.delete_topic(TopicArn=arn)


def open_link(url):
    with urllib.request.urlopen(url, timeout=30) as answer:
        return answer.read().decode()


def code_of(call, **wish):
    with pytest.raises(ClientError) as refused:
        call(**wish)
    return refused.value.response["Error"]["Code"], refused.value.response["Error"]["Message"]


def test_topics(server, sns):
    tags = [{"Key": "team", "Value": "blue"}]
    arn = sns.create_topic(Name="orders", Attributes={"DisplayName": "Orders"}, Tags=tags)["TopicArn"]
    assert arn == f"arn:aws:sns:{harness.REGION}:{harness.ACCOUNT}:orders"
    assert server.cli("create-topic", "--name", "orders", service="sns")["TopicArn"] == arn  # once more is no other
    assert code_of(sns.create_topic, Name="orders", Attributes={"DisplayName": "Other"})[0] == "InvalidParameter"
    code, message = code_of(sns.create_topic, Name="orders.fifo", Attributes={"FifoTopic": "true"})
    assert code == "InvalidParameter" and "FIFO" in message
    assert code_of(sns.create_topic, Name="a b")[0] == "InvalidParameter"
    assert arn in [t["TopicArn"] for t in sns.list_topics()["Topics"]]
    assert arn in [t["TopicArn"] for t in server.cli("list-topics", service="sns")["Topics"]]
    found = sns.get_topic_attributes(TopicArn=arn)["Attributes"]
    assert found["Owner"] == harness.ACCOUNT and found["DisplayName"] == "Orders" and found["SubscriptionsConfirmed"] == "0"
    assert json.loads(found["Policy"])["Statement"] and json.loads(found["EffectiveDeliveryPolicy"])["http"]
    server.cli("set-topic-attributes", "--topic-arn", arn, "--attribute-name", "SignatureVersion", "--attribute-value", "2", service="sns")
    sns.set_topic_attributes(TopicArn=arn, AttributeName="DisplayName", AttributeValue="New")
    found = server.cli("get-topic-attributes", "--topic-arn", arn, service="sns")["Attributes"]
    assert found["SignatureVersion"] == "2" and found["DisplayName"] == "New"
    for name, value, why in [
        ("KmsMasterKeyId", "alias/aws/sns", "not encrypted"), ("TracingConfig", "Active", "no tracing"), ("SignatureVersion", "3", "1 (SHA-1)"),
        ("DeliveryPolicy", '{"http":{"defaultHealthyRetryPolicy":{"numRetries":1000}}}', "numRetries"), ("Nothing", "x", "no attribute"),
        ("Policy", '{"Statement":[{"Effect":"Deny","Principal":"*"}]}', "denials"), ("HTTPSuccessFeedbackRoleArn", "arn:aws:iam::0:role/r", "no log"),
    ]:  # fmt: skip
        code, message = code_of(sns.set_topic_attributes, TopicArn=arn, AttributeName=name, AttributeValue=value)
        assert code == "InvalidParameter" and why in message, (name, message)
    assert sns.list_tags_for_resource(ResourceArn=arn)["Tags"] == tags
    sns.tag_resource(ResourceArn=arn, Tags=[{"Key": "env", "Value": ""}])
    server.cli("tag-resource", "--resource-arn", arn, "--tags", "Key=team,Value=red", service="sns")
    sns.untag_resource(ResourceArn=arn, TagKeys=["env"])
    server.cli("untag-resource", "--resource-arn", arn, "--tag-keys", "absent", service="sns")
    assert server.cli("list-tags-for-resource", "--resource-arn", arn, service="sns")["Tags"] == [{"Key": "team", "Value": "red"}]
    sns.delete_topic(TopicArn=arn)
    server.cli("delete-topic", "--topic-arn", arn, service="sns")  # one that is gone is no error
    assert code_of(sns.get_topic_attributes, TopicArn=arn)[0] == "NotFound"
    assert code_of(sns.list_tags_for_resource, ResourceArn=arn)[0] == "ResourceNotFound"
    assert code_of(sns.get_topic_attributes, TopicArn="orders")[0] == "InvalidParameter"


def test_subscription(server, sns, subscriber, topic):
    """The handshake over a link, notifications with attributes and a filter, and the end by a link."""
    answer = sns.subscribe(TopicArn=topic, Protocol="http", Endpoint=subscriber.url + "/a")
    assert answer["SubscriptionArn"] == "pending confirmation"
    asked = subscriber.one("/a", "SubscriptionConfirmation")
    assert asked["TopicArn"] == topic and asked["SignatureVersion"] == "1" and len(asked["Token"]) == 64
    (listed,) = sns.list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"]
    assert listed["SubscriptionArn"] == "PendingConfirmation" and listed["Endpoint"] == subscriber.url + "/a"
    assert sns.get_topic_attributes(TopicArn=topic)["Attributes"]["SubscriptionsPending"] == "1"
    sns.publish(TopicArn=topic, Message="too early")
    with pytest.raises(urllib.error.HTTPError):
        open_link(asked["SubscribeURL"].replace(asked["Token"], "0" * 64))
    assert "<ConfirmSubscriptionResult><SubscriptionArn>" in open_link(asked["SubscribeURL"])
    (listed,) = server.cli("list-subscriptions-by-topic", "--topic-arn", topic, service="sns")["Subscriptions"]
    arn = listed["SubscriptionArn"]
    assert arn.startswith(topic + ":") and arn in [s["SubscriptionArn"] for s in sns.list_subscriptions()["Subscriptions"]]
    assert sns.subscribe(TopicArn=topic, Protocol="http", Endpoint=subscriber.url + "/a")["SubscriptionArn"] == arn
    attributes = {"kind": {"DataType": "String", "StringValue": "x"}, "n": {"DataType": "Number", "StringValue": "3"}, "b": {"DataType": "Binary", "BinaryValue": b"\x00\xff"}}
    message_id = sns.publish(TopicArn=topic, Subject="Hello", Message="比べる <&>", MessageAttributes=attributes)["MessageId"]
    got = subscriber.one("/a")
    assert got["MessageId"] == message_id and got["Message"] == "比べる <&>" and got["Subject"] == "Hello"
    assert got["MessageAttributes"] == {"kind": {"Type": "String", "Value": "x"}, "n": {"Type": "Number", "Value": "3"}, "b": {"Type": "Binary", "Value": "AP8="}}
    assert [d["Message"] for d in subscriber.documents("/a", "Notification")] == ["比べる <&>"]
    certificate = open_certificate(server, got["SigningCertURL"])
    assert "BEGIN CERTIFICATE" in certificate and got["SigningCertURL"].startswith("https://127.0.0.1:")
    # A filter that is set later holds from then on.
    sns.set_subscription_attributes(SubscriptionArn=arn, AttributeName="FilterPolicy", AttributeValue='{"n":[{"numeric":[">",5]}]}')
    for n in (5, 6):
        server.cli("publish", "--topic-arn", topic, "--message", f"n is {n}", "--message-attributes", json.dumps({"n": {"DataType": "Number", "StringValue": str(n)}}), service="sns")
    wait_for("the one that passes", lambda: subscriber.documents("/a", "Notification")[-1]["Message"] == "n is 6")
    assert len(subscriber.documents("/a", "Notification")) == 2
    found = server.cli("get-subscription-attributes", "--subscription-arn", arn, service="sns")["Attributes"]
    assert found["PendingConfirmation"] == "false" and found["FilterPolicyScope"] == "MessageAttributes" and found["ConfirmationWasAuthenticated"] == "false"
    assert "<UnsubscribeResponse" in open_link(got["UnsubscribeURL"])
    assert code_of(sns.get_subscription_attributes, SubscriptionArn=arn)[0] == "NotFound"
    assert sns.list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"] == []
    found = sns.get_topic_attributes(TopicArn=topic)["Attributes"]
    assert (found["SubscriptionsConfirmed"], found["SubscriptionsPending"], found["SubscriptionsDeleted"]) == ("0", "0", "1")
    # The endpoint is told, and may take it back.
    ended = subscriber.one("/a", "UnsubscribeConfirmation")
    assert arn in ended["Message"] and len(ended["Token"]) == 64 and ended["Token"] != asked["Token"]
    assert arn in open_link(ended["SubscribeURL"])
    sns.publish(TopicArn=topic, Message="again", MessageAttributes={"n": {"DataType": "Number", "StringValue": "7"}})
    wait_for("it goes on", lambda: subscriber.documents("/a", "Notification")[-1]["Message"] == "again")
    sns.unsubscribe(SubscriptionArn=arn)  # by a signed request nobody is asked
    assert sns.get_topic_attributes(TopicArn=topic)["Attributes"]["SubscriptionsDeleted"] == "0"
    sns.unsubscribe(SubscriptionArn=arn)  # one that has ended is no error
    server.cli("unsubscribe", "--subscription-arn", arn, service="sns")


def open_certificate(server, url):
    import ssl

    context = ssl.create_default_context(cafile=str(server.data / "ca.pem"))
    with urllib.request.urlopen(url, timeout=30, context=context) as answer:
        return answer.read().decode()


def test_confirmation_by_the_api(server, sns, subscriber, topic):
    """Raw delivery, a batch, and a subscription that only a signed request ends."""
    arn = sns.subscribe(TopicArn=topic, Protocol="http", Endpoint=subscriber.url + "/raw", Attributes={"RawMessageDelivery": "true"}, ReturnSubscriptionArn=True)["SubscriptionArn"]
    assert arn.startswith(topic + ":") and sns.get_subscription_attributes(SubscriptionArn=arn)["Attributes"]["PendingConfirmation"] == "true"
    token = subscriber.one("/raw", "SubscriptionConfirmation")["Token"]
    assert code_of(sns.confirm_subscription, TopicArn=topic, Token="0" * 64)[0] == "InvalidParameter"
    confirmed = sns.confirm_subscription(TopicArn=topic, Token=token, AuthenticateOnUnsubscribe="true")
    assert confirmed["SubscriptionArn"] == arn
    assert server.cli("confirm-subscription", "--topic-arn", topic, "--token", token, service="sns")["SubscriptionArn"] == arn
    with pytest.raises(urllib.error.HTTPError) as refused:
        open_link(server.url + "/?" + urllib.parse.urlencode({"Action": "Unsubscribe", "SubscriptionArn": arn}))
    assert refused.value.code == 403
    entries = [{"Id": f"e{n}", "Message": f"m{n}"} for n in range(3)]
    done = sns.publish_batch(TopicArn=topic, PublishBatchRequestEntries=[*entries, {"Id": "bad", "Message": "x", "Subject": "a\nb"}])
    assert [e["Id"] for e in done["Successful"]] == ["e0", "e1", "e2"] and done["Failed"][0]["Id"] == "bad"
    server.cli("publish-batch", "--topic-arn", topic, "--publish-batch-request-entries", "Id=last,Message=m3", service="sns")
    bodies = lambda: [body for path, headers, body in list(subscriber.got) if path == "/raw" and headers.get("x-amz-sns-rawdelivery") == "true"]
    wait_for("the batch, in order", lambda: bodies() == ["m0", "m1", "m2", "m3"])
    assert code_of(sns.publish_batch, TopicArn=topic, PublishBatchRequestEntries=[entries[0]] * 2)[0] == "BatchEntryIdsNotDistinct"
    server.cli("set-subscription-attributes", "--subscription-arn", arn, "--attribute-name", "RawMessageDelivery", "--attribute-value", "false", service="sns")
    assert arn in [s["SubscriptionArn"] for s in server.cli("list-subscriptions", service="sns")["Subscriptions"]]
    sns.unsubscribe(SubscriptionArn=arn)


def test_chat(server, sns, subscriber, topic):
    """A chat's webhook is asked in words and confirmed by whoever reads them."""
    server.cli("subscribe", "--topic-arn", topic, "--protocol", "http", "--notification-endpoint", subscriber.url + "/hook#slack", service="sns")
    texts = lambda: [json.loads(body)["text"] for path, _, body in list(subscriber.got) if path == "/hook"]
    question = wait_for("the question", texts)[0]
    open_link(question.split("<")[1].split(">")[0])
    sns.publish(TopicArn=topic, Subject="Disk", Message="<full> & more")
    wait_for("the message", lambda: texts()[1:] == ["*Disk*\n&lt;full&gt; &amp; more"])


def test_what_is_refused(sns, topic):
    for protocol, endpoint, why in [
        ("sms", "+4112345", "not offered"), ("lambda", "arn:aws:lambda:x", "not offered"), ("gopher", "x", "Does not support"),
        ("http", "https://h", "begins with http://"), ("https", "https://169.254.169.254/latest", "metadata"), ("http", "http://[fe80::1]/", "metadata"),
        ("email", "a@b.example", "--smtp-server"), ("email", "nobody", "Invalid email"),
    ]:  # fmt: skip
        code, message = code_of(sns.subscribe, TopicArn=topic, Protocol=protocol, Endpoint=endpoint)
        assert code == "InvalidParameter" and why in message, message
    for name, value, why in [
        ("FilterPolicy", '{"a":"b"}', "must be a list"), ("RedrivePolicy", "{}", "no queues"), ("DeliveryPolicy", "x", "form"), ("Other", "x", "no attribute"),
        ("FilterPolicyScope", "x", "MessageBody"),
    ]:  # fmt: skip
        code, message = code_of(sns.subscribe, TopicArn=topic, Protocol="https", Endpoint="https://h.example/", Attributes={name: value})
        assert code == "InvalidParameter" and why in message, message
    for wish, why in [
        ({"Message": ""}, "Empty"), ({"Message": "x" * (256 * 1024 + 1)}, "too long"), ({"Message": "x", "Subject": "s" * 101}, "Subject"),
        ({"Message": "x", "MessageStructure": "json"}, "JSON"), ({"Message": "x", "MessageDeduplicationId": "g"}, "topic type"),
        ({"Message": "x", "MessageAttributes": {"a": {"DataType": "Number", "StringValue": "x"}}}, "number"),
    ]:  # fmt: skip
        code, message = code_of(sns.publish, TopicArn=topic, **wish)
        assert code == ("ParameterValueInvalid" if "MessageAttributes" in wish else "InvalidParameter") and why in message, (code, message)
    assert code_of(sns.publish, TopicArn=topic + "x", Message="x")[0] == "NotFound"
    sns.publish(TopicArn=topic, Message="\u65e5" * 80_000)  # 240 kB, three times as many in the form


@pytest.mark.parametrize("action", DECLINED)
def test_declined(sns, action):
    from botocore import xform_name

    code, message = code_of(getattr(sns, xform_name(action)), **DECLINED[action])
    assert code == "UnsupportedOperation" and "not offered" in message, message


class Mails:
    """Keeps what an SMTP server is given."""

    def __init__(self):
        self.got = []

    async def handle_DATA(self, server, session, envelope):
        self.got.append(envelope)
        return "250 OK"


def free_port():
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as s:
        return s.getsockname()[1]


@contextlib.contextmanager
def mail_server():
    mails = Mails()
    controller = Controller(mails, hostname="127.0.0.1", port=free_port())
    controller.start()
    try:
        yield mails, f"127.0.0.1:{controller.port}"
    finally:
        controller.stop()


def test_mail():
    """A mail asks first; its link confirms; then notifications come as mails."""
    import email
    import email.policy

    def parse(envelope):
        return email.message_from_bytes(envelope.content, policy=email.policy.default)

    with mail_server() as (mails, address):
        s = harness.Server("--smtp-server", address, "--smtp-from", "Kurabe <alerts@kurabe.example>")
        try:
            s.start()
            sns = s.client("sns", watched=False)
            arn = sns.create_topic(Name="mails", Attributes={"DisplayName": "Mails"})["TopicArn"]
            sns.subscribe(TopicArn=arn, Protocol="email", Endpoint="dba@company.example")
            first = wait_for("the question", lambda: mails.got, timeout=60)[0]
            assert first.mail_from == "alerts@kurabe.example" and first.rcpt_tos == ["dba@company.example"]
            (link,) = [line for line in parse(first).get_content().splitlines() if line.startswith("http")]
            open_link(link)
            sns.publish(TopicArn=arn, Subject="Disk full", Message="比べる\n" + "x" * 2000)
            second = parse(wait_for("the notification", lambda: mails.got[1:], timeout=60)[0])
            assert second["Subject"] == "Disk full" and "比べる" in second.get_content() and "x" * 2000 in second.get_content()
            assert "Action=Unsubscribe" in second["List-Unsubscribe"] and second["From"] == "Kurabe <alerts@kurabe.example>"
        finally:
            s.close()
