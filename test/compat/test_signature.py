"""SigV4: every way to get it wrong has AWS's own answer."""

import datetime
import socket
import urllib.parse

import boto3
import pytest

import harness

LIST = {"Action": "DescribeDBInstances"}
CREATE = {"Action": "CreateDBParameterGroup", "DBParameterGroupName": "forged", "DBParameterGroupFamily": "postgres15", "Description": "d"}


def ago(**span):
    return datetime.datetime.now(datetime.UTC).replace(tzinfo=None) - datetime.timedelta(**span)


def test_good_signature(server):
    assert server.raw(LIST)[:2] == (200, None)


@pytest.mark.parametrize(
    "how, status, code",
    [
        ({"secret": "wrong"}, 403, "SignatureDoesNotMatch"),
        ({"key": "AKIDNOBODY"}, 403, "InvalidClientTokenId"),
        ({"sign": False}, 403, "MissingAuthenticationToken"),
        ({"late": {"minutes": 6}}, 403, "SignatureDoesNotMatch"),
        ({"late": {"minutes": -6}}, 403, "SignatureDoesNotMatch"),
        ({"late": {"days": 400}}, 403, "SignatureDoesNotMatch"),
        ({"service": "sts"}, 403, "SignatureDoesNotMatch"),
    ],
    ids=["secret", "key", "unsigned", "old", "future", "very-old", "another-service"],
)
def test_refused(server, how, status, code):
    form = urllib.parse.urlencode({"Version": "2014-10-31", **CREATE})
    if "late" in how:
        how = {"when": ago(**how["late"])}
    assert server.raw(form, **how)[:2] == (status, code)
    assert server.raw({"Action": "DescribeDBParameterGroups", "DBParameterGroupName": "forged"})[1] == "DBParameterGroupNotFound"


def test_a_little_late_is_fine(server):
    assert server.raw(LIST, when=ago(minutes=4))[0] == 200


def spoil(name):
    def header(headers, body):
        headers["X-Probe"] = "two"

    def body(headers, body):
        return body.replace(b"Describe", b"describe")

    def action(headers, body):
        return body.replace(b"DescribeDBInstances", b"DescribeDBSubnetGroups")

    def dropped(headers, body):
        del headers["X-Probe"]

    def signature(headers, body):
        flipped = "0" if headers["Authorization"][-1] != "0" else "1"
        headers["Authorization"] = headers["Authorization"][:-1] + flipped

    def date(headers, body):
        headers["X-Amz-Date"] = ago(minutes=1).strftime("%Y%m%dT%H%M%SZ")

    def token(headers, body):
        headers["X-Amz-Security-Token"] = "stolen"

    def nonsense(headers, body):
        headers["Authorization"] = "AWS4-HMAC-SHA256 nonsense"

    def basic(headers, body):
        headers["Authorization"] = "Basic dXNlcjpwYXNz"

    return locals()[name]


@pytest.mark.parametrize(
    "what, codes",
    [
        ("header", {"SignatureDoesNotMatch"}), ("body", {"SignatureDoesNotMatch"}), ("action", {"SignatureDoesNotMatch"}),
        ("dropped", {"SignatureDoesNotMatch"}), ("signature", {"SignatureDoesNotMatch"}), ("date", {"SignatureDoesNotMatch"}),
        ("token", {"InvalidClientTokenId"}), ("nonsense", {"IncompleteSignature"}),
        ("basic", {"MissingAuthenticationToken", "IncompleteSignature"}),
    ],
)  # fmt: skip
def test_changed_after_signing(server, what, codes):
    status, code, text = server.raw(LIST, change=spoil(what))
    assert status in (400, 403) and code in codes, text


def test_boto3_sees_the_errors(server):
    for key, secret, code in [(harness.ACCESS_KEY, "wrong", "SignatureDoesNotMatch"), ("AKIDNOBODY", "x", "InvalidClientTokenId")]:
        client = server.client(access_key=key, secret_key=secret)
        with pytest.raises(client.exceptions.ClientError) as caught:
            client.describe_db_instances()
        assert caught.value.response["Error"]["Code"] == code
        assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403


def elsewhere(server, secret=harness.SECRET_KEY):
    return boto3.client(
        "rds", endpoint_url=server.url, region_name="eu-west-1", aws_access_key_id=harness.ACCESS_KEY, aws_secret_access_key=secret
    )


def test_any_region_is_served_where_none_was_named(server, resident):
    """Most clients have a region set for AWS; the service is the one that they mean."""
    arns = [i["DBInstanceArn"] for i in elsewhere(server).describe_db_instances()["DBInstances"]]
    assert arns and all(arn.startswith("arn:aws:rds:eu-west-1:") for arn in arns)
    client = elsewhere(server, secret="wrong")
    with pytest.raises(client.exceptions.ClientError, match="SignatureDoesNotMatch"):
        client.describe_db_instances()


def test_another_region_is_refused_where_one_was_named():
    server = harness.Server("--stop-databases-on-exit", "--region", "us-east-1")
    try:
        client = elsewhere(server.start())
        with pytest.raises(client.exceptions.ClientError, match="SignatureDoesNotMatch.*us-east-1"):
            client.describe_db_instances()
        topic = f"arn:aws:sns:eu-west-1:{harness.ACCOUNT}:t"
        sns, alarm = server.client("sns"), {"Namespace": "n", "MetricName": "m", "Statistic": "Sum", "Period": 60, "EvaluationPeriods": 1, "Threshold": 1}
        for call, wish, code, words in [
            (sns.publish, {"TopicArn": topic, "Message": "m"}, "InvalidParameter", 'region "eu-west-1"'),
            (sns.get_subscription_attributes, {"SubscriptionArn": topic + ":s"}, "InvalidParameter", 'region "eu-west-1"'),
            (server.client().create_event_subscription, {"SubscriptionName": "s", "SnsTopicArn": topic}, "SNSInvalidTopic", "another region"),
            (
                server.client("cloudwatch").put_metric_alarm,
                alarm | {"AlarmName": "a", "ComparisonOperator": "GreaterThanThreshold", "AlarmActions": [topic]},
                "ValidationError",
                "Invalid region eu-west-1 specified. Only us-east-1 is supported.",
            ),
        ]:
            with pytest.raises(client.exceptions.ClientError) as caught:
                call(**wish)
            error = caught.value.response["Error"]
            assert error["Code"] == code and words in error["Message"], error
    finally:
        server.close()


def test_presigned_url(server):
    client = server.client()
    url = client.generate_presigned_url("describe_db_instances", ExpiresIn=60)
    path = url.removeprefix(server.url)
    # botocore presigns the method that it would send: POST, with the action in the query.
    assert server.send("POST", path, "", {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"})[0] == 200
    assert server.send("GET", path)[:2] == (403, "SignatureDoesNotMatch")
    assert server.send("POST", path.replace("Describe", "Delete"), "")[:2] == (403, "SignatureDoesNotMatch")


def test_bodies_are_bounded(server):
    status, code, _ = server.raw("Action=DescribeDBInstances&Version=2014-10-31&Marker=" + "x" * (1 << 20))
    assert (status, code) == (413, "RequestEntityTooLarge")
    status, code, _ = server.raw("Action=DescribeDBInstances&Version=2014-10-31&" + "&".join(f"p{n}=1" for n in range(100_000)))
    assert status in (400, 413) and code != "InternalFailure"


def test_a_body_that_never_ends_holds_nobody_up(server):
    """One slow client, and the others are served."""
    host, port = urllib.parse.urlsplit(server.url).netloc.split(":")
    with socket.create_connection((host, int(port))) as slow:
        slow.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nAction=")
        assert server.raw(LIST)[0] == 200


def test_other_methods_and_paths(server):
    assert server.send("DELETE", "/")[0] in (403, 405)
    assert server.send("GET", "/healthz")[::2] == (200, "ok\n")
    assert server.send("GET", "/")[1] == "MissingAuthenticationToken"
    assert server.send("GET", "/kurabe/state/backup")[:2] == (403, "MissingAuthenticationToken")
    assert server.send("POST", "/", "{}", {"X-Amz-Target": "AmazonRDSv19.DescribeDBInstances", "Content-Type": "application/x-amz-json-1.1"})[0] == 404
