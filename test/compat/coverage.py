"""Writes docs/coverage.md: what every action of RDS does, and which tests show it.

The service itself says what it refuses and why; the run of the tests says what
was called with success. `KURABE_COVERAGE=write make compat` rewrites the page.
"""

import html
import re

import wire

OPENING = """# Which actions of RDS work

Written by the tests in `test/compat` out of the service's own operation table and
of what they called with success; `KURABE_COVERAGE=write make compat` writes it
again, and a test fails when it is out of date. "Works" means: called through boto3
and through the AWS CLI against a running service, with the reply checked against
botocore's model. An action that is not there answers `UnsupportedOperation`, HTTP
400, with the reason below; it never pretends.
"""

# What works of other services.
OTHERS = [("sts", "GetCallerIdentity")] + [
    ("ec2", f"Describe{what}") for what in ("AvailabilityZones", "Regions", "SecurityGroups", "Subnets", "Vpcs")
]


def refusal(server, action):
    """Why the service refuses an action whatever its parameters; None if it does not."""
    _, code, text = server.raw({"Action": action})
    if code != "UnsupportedOperation":
        return None
    said = html.unescape(re.search(r"<Message>(.*)</Message>", text, re.S).group(1))
    return said.removeprefix(f"{action} is not offered by this version of Kurabe: ").removesuffix("; see docs/coverage.md")


def files(tests):
    """test_echo.py::test_x, test_echo.py::test_y -> test_echo.py"""
    return ", ".join(sorted({t.split("::")[0] for t in tests})) or "–"


def page(server):
    works, declines, refused = [], [], {}
    for action in wire.actions("rds"):
        by = wire.successes["rds", action]
        reason = refusal(server, action)
        if reason is not None:
            refused.setdefault(reason, []).append(action)
        elif by["boto3"] or by["cli"]:
            works.append((action, by))
        else:
            declines.append(action)
    total = len(wire.actions("rds"))
    lines = [OPENING, f"Of {total} actions in botocore's model {len(works)} work.", ""]
    lines += ["## Works", "", "| action | shown with boto3 by | shown with the AWS CLI by |", "| --- | --- | --- |"]
    lines += [f"| {action} | {files(by['boto3'])} | {files(by['cli'])} |" for action, by in works]
    for service, action in OTHERS:
        by = wire.successes[service, action]
        lines += [f"| {service}:{action} | {files(by['boto3'])} | {files(by['cli'])} |"]
    lines += [""]
    lines += ["## Looks at its parameters and always declines", ""]
    lines += ["Option groups cannot be changed: engines load what their parameters name. Only the `default:` groups exist.", ""]
    lines += [f"- {action}" for action in declines] + ["", "## Not there", ""]
    for reason in sorted(refused):
        lines += [f"- {reason}: {', '.join(refused[reason])}"]
    return "\n".join(lines) + "\n"
