"""Checks every reply against botocore's model, as text: the parser of boto3
ignores what it does not know and so hides mistakes.

It also records which action each test called with success.
"""

import collections
import functools
import json
import os
import pathlib
import re
import xml.etree.ElementTree as ET

import botocore.session
from botocore import xform_name

# What every service of AWS may answer with, beside what an action declares.
COMMON_ERRORS = {
    "InvalidParameterValue", "InvalidParameterCombination", "MissingParameter", "UnsupportedOperation", "InvalidAction",
    "MissingAction", "Throttling", "ServiceUnavailable", "AccessDenied", "SignatureDoesNotMatch", "InvalidClientTokenId",
    "MissingAuthenticationToken", "IncompleteSignature", "RequestExpired", "RequestEntityTooLarge", "MalformedInput",
    "ValidationError",
}  # fmt: skip

# Absent groups that an action takes but declares no error for: RDS answers with
# the error of the action that describes them.
_GROUPS = {"DBParameterGroupNotFound", "DBSubnetGroupNotFoundFault", "OptionGroupNotFoundFault"}
UNDECLARED = {
    "ModifyDBInstance": _GROUPS, "ListTagsForResource": _GROUPS, "AddTagsToResource": _GROUPS, "RemoveTagsFromResource": _GROUPS,
}  # fmt: skip

TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z")

# The services behind the port, as botocore calls them. test_coverage compares them with the
# service's own table.
SERVICES = ["rds", "cloudwatch", "logs", "pi", "ec2", "resourcegroupstaggingapi", "sts", "sns", "secretsmanager", "kurabe"]

MODELS = str(pathlib.Path(__file__).resolve().parents[2] / "docs" / "models")  # of our own
os.environ["AWS_DATA_PATH"] = MODELS

# successes: (service, action) -> {"boto3": {test, …}, "cli": {test, …}}
successes = collections.defaultdict(lambda: {"boto3": set(), "cli": set()})


@functools.cache
def model(service):
    return botocore.session.Session().get_service_model(service)


def actions(service):
    return sorted(model(service).operation_names)


@functools.cache
def action_of(service, command):
    return {xform_name(name, "-"): name for name in actions(service)}[command]


def record(client, service, action):
    if client == "cli":
        action = action_of(service, action)
    # folder/file::test[parameters] (phase): parameters may hold anything, slashes too.
    test = os.environ.get("PYTEST_CURRENT_TEST", "").split("[")[0].split(" ")[0]
    test = test.rsplit("/", 1)[-1]
    if test:
        successes[service, action][client].add(test)


def watch(client):
    """Has every reply to a boto3 client checked and recorded."""
    service = client.meta.service_model.service_name

    protocol = client.meta.service_model.resolved_protocol

    def check(http_response, parsed, model, **_):
        text, problems = http_response.content.decode(), []
        if http_response.status_code < 300:
            record("boto3", service, model.name)
        if protocol == "query":
            problems = (error_problems if http_response.status_code >= 300 else reply_problems)(model, text)
        elif protocol == "json" and http_response.status_code < 300:
            document_problems(model.output_shape, json.loads(text), model.name, problems)
        assert not problems, f"{model.name}: " + "; ".join(problems) + "\n" + text[:4000]

    client.meta.events.register(f"after-call.{service}", check)


def error_code(text):
    """The code of an error reply, None when it is none."""
    if "<ErrorResponse" not in text:
        return None
    root = ET.fromstring(text)
    return next(e.text for e in root.iter() if local(e) == "Code")


def local(element):
    return element.tag.rsplit("}", 1)[-1]


def namespace(operation):
    return operation.service_model.metadata["xmlNamespace"]


def error_problems(operation, text):
    root = ET.fromstring(text)
    problems = []
    if root.tag != "{%s}ErrorResponse" % namespace(operation):
        return [f"root is {root.tag}"]
    if [local(e) for e in root] != ["Error", "RequestId"]:
        problems.append(f"holds {[local(e) for e in root]}")
    fields = {local(e): e.text for e in root[0]}
    if set(fields) != {"Type", "Code", "Message"} or not fields["Message"] or fields["Type"] not in ("Sender", "Receiver"):
        problems.append(f"error is {fields}")
    declared = {s.metadata.get("error", {}).get("code", s.name) for s in operation.error_shapes}
    if fields.get("Code") not in declared | COMMON_ERRORS | UNDECLARED.get(operation.name, set()):
        problems.append(f"code {fields.get('Code')} is neither declared by {operation.name} nor common")
    return problems


def reply_problems(operation, text):
    root = ET.fromstring(text)
    ns = namespace(operation)
    if root.tag != "{%s}%sResponse" % (ns, operation.name):
        return [f"root is {root.tag}"]
    problems = [f"{e.tag} is outside the namespace" for e in root.iter() if not e.tag.startswith("{%s}" % ns)]
    metadata = [e for e in root if local(e) == "ResponseMetadata"]
    if len(metadata) != 1 or [local(e) for e in metadata[0]] != ["RequestId"] or not metadata[0][0].text:
        problems.append("no RequestId in ResponseMetadata")
    rest = [e for e in root if local(e) != "ResponseMetadata"]
    shape = operation.output_shape
    if shape is None:
        return problems + [f"unknown {local(e)}" for e in rest]
    wrapper = shape.serialization.get("resultWrapper")
    if [local(e) for e in rest] != [wrapper]:
        return problems + [f"holds {[local(e) for e in rest]}, not {wrapper}"]
    walk(shape, rest[0], wrapper, problems)
    return problems


def walk(shape, element, path, problems):
    kind = shape.type_name
    if kind == "structure":
        walk_structure(shape, element, path, problems)
    elif kind == "list":
        name = shape.member.serialization.get("name", "member")
        for n, item in enumerate(element):
            if local(item) != name:
                problems.append(f"{path}: item <{local(item)}>, not <{name}>")
                continue
            walk(shape.member, item, f"{path}[{n}]", problems)
    elif kind == "map":
        names = [shape.key.serialization.get("name", "key"), shape.value.serialization.get("name", "value")]
        for n, entry in enumerate(element):
            if local(entry) != "entry" or [local(e) for e in entry] != names:
                problems.append(f"{path}: <{local(entry)}> with {[local(e) for e in entry]}, not an entry of {names}")
                continue
            walk(shape.value, entry[1], f"{path}[{n}]", problems)
    else:
        walk_scalar(shape, element, path, problems)


def walk_structure(shape, element, path, problems):
    known = {m.serialization.get("name", name): (name, m) for name, m in shape.members.items()}
    seen = set()
    if element.text and element.text.strip():
        problems.append(f"{path}: text {element.text!r} in a structure")
    for child in element:
        name = local(child)
        if name not in known:
            problems.append(f"{path}: unknown element {name}")
            continue
        if name in seen:
            problems.append(f"{path}: {name} twice")
        seen.add(name)
        walk(known[name][1], child, f"{path}.{name}", problems)
    for required in shape.required_members:
        if shape.members[required].serialization.get("name", required) not in seen:
            problems.append(f"{path}: {required} is missing")


def document_problems(shape, value, path, problems):
    """What a JSON reply holds that the model does not know, or lacks."""
    kind = shape.type_name if shape else "structure"
    types = {"structure": dict, "map": dict, "list": list, "string": str, "blob": str, "boolean": bool, "integer": int, "long": int}
    if kind == "timestamp" and shape.serialization.get("timestampFormat"):
        types["timestamp"] = str
    if value is None or getattr(shape, "is_document_type", False):
        return  # our own service has nulls for what is not there
    if not isinstance(value, types.get(kind, (int, float))):
        problems.append(f"{path}: {value!r:.200} is no {kind}")
    elif kind == "structure":
        members = shape.members if shape else {}
        problems += [f"{path}: unknown member {name}" for name in value if name not in members]
        problems += [f"{path}: {name} is missing" for name in getattr(shape, "required_members", []) if name not in value]
        for name in members.keys() & value.keys():
            document_problems(members[name], value[name], f"{path}.{name}", problems)
    elif kind in ("list", "map"):
        for n, item in value.items() if kind == "map" else enumerate(value):
            document_problems(shape.value if kind == "map" else shape.member, item, f"{path}[{n}]", problems)


def walk_scalar(shape, element, path, problems):
    text = element.text or ""
    if len(element):
        problems.append(f"{path}: elements in a {shape.type_name}")
    good = {
        "integer": lambda: -(2**31) <= int(text) < 2**31,
        "long": lambda: -(2**63) <= int(text) < 2**63,
        "double": lambda: float(text) == float(text),
        "float": lambda: float(text) == float(text),
        "boolean": lambda: text in ("true", "false"),
        "timestamp": lambda: bool(TIMESTAMP.fullmatch(text)),
        "string": lambda: text not in ("None", "null", "<nil>") and (not shape.enum or text in shape.enum),
    }[shape.type_name]
    try:
        ok = good()
    except ValueError:
        ok = False
    if not ok:
        problems.append(f"{path}: {text!r} is no {shape.type_name} {shape.enum if shape.type_name == 'string' else ''}")
