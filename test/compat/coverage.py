"""Writes docs/coverage.md: what every action of every service does, and which tests show it.

The service itself says what it refuses and why; the run of the tests says what
was called with success. `KURABE_COVERAGE=write make compat` rewrites the page.
"""

import re

from botocore.exceptions import ClientError

import harness
import wire

OPENING = """# Which actions work

Written by the tests in `test/compat` out of the service's own operation tables and
of what they called with success; `KURABE_COVERAGE=write make compat` writes it
again, and a test fails when it is out of date. "Works" means: called through boto3
and through the AWS CLI against a running service, with the reply checked against
its model. An action that is not there answers `UnsupportedOperation`, HTTP
400, with the reason below; it never pretends.
"""

# Of the actions that are there and did not succeed in these tests.
DECLINED = {
    "rds": "They look at their parameters and always decline, since option groups cannot be changed: engines load what their parameters "
    "name. Only the `default:` groups exist.",
    "kurabe": "They need hosts or losses that these tests do not have; other tests show them.",
}
MANY = 100  # absent actions of one reason that are counted and not named


def _signed(**_):
    """Every action is signed here: some of STS would not be."""
    return "v4"


def refusal(server, service, action):
    """Why the service refuses an action whatever its parameters; None if it does not."""
    wish = {"SourceRegion": harness.REGION} if (service, action) == ("ec2", "CopySnapshot") else {}  # botocore itself wants it
    client = server.client(service, watched=False, parameter_validation=False)
    client.meta.events.register_first(f"choose-signer.{service}.{action}", _signed, unique_id=f"signed {service} {action}")
    try:
        client._make_api_call(action, wish)
    except ClientError as e:
        error = e.response["Error"]
        if error["Code"] == "UnsupportedOperation":
            return error["Message"].removeprefix(f"{action} is not offered by this version of Kurabe: ").removesuffix("; see docs/coverage.md")
    return None


def sort(server, service):
    """The actions of a service: works [(action, tests)], declines [action], refused {reason: [action]}."""
    works, declines, refused = [], [], {}
    for action in wire.actions(service):
        by = wire.successes[service, action]
        reason = refusal(server, service, action)
        if reason is not None:
            refused.setdefault(reason, []).append(action)
        elif by["boto3"] or by["cli"]:
            works.append((action, by))
        else:
            declines.append(action)
    return works, declines, refused


def files(tests):
    """test_echo.py::test_x, test_echo.py::test_y -> test_echo.py"""
    return ", ".join(sorted({t.split("::")[0] for t in tests})) or "–"


def page(server):
    lines = [OPENING]
    for service in wire.SERVICES:
        works, declines, refused = sort(server, service)
        lines += [f"## {wire.model(service).metadata['serviceFullName']}", ""]
        lines += [f"Of {len(wire.actions(service))} actions in the model {len(works)} work.", ""]
        lines += ["| action | shown with boto3 by | shown with the AWS CLI by |", "| --- | --- | --- |"]
        lines += [f"| {action} | {files(by['boto3'])} | {files(by['cli'])} |" for action, by in works] + [""]
        if declines:
            lines += [f"Not shown by these tests: {', '.join(declines)}. {DECLINED[service]}", ""]
        if refused:
            lines += ["Not there:", ""]
        for reason, actions in sorted(refused.items()):
            lines += [f"- {reason}: " + (", ".join(actions) if len(actions) <= MANY else f"the other {len(actions)}")]
        lines += [""] * bool(refused)
    return "\n".join(lines)
