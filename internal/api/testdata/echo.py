"""Sends every action of a service with every member of its input set, in one protocol, to a
server that answers each with its input, and compares what botocore reads with what it sent.

    echo.py SERVICE PROTOCOL URL KEY SECRET
"""

import datetime
import json
import os
import sys
import tempfile

import botocore.config
import botocore.session

SERVICE, PROTOCOL, URL, KEY, SECRET = sys.argv[1:]
DEEPEST = 6  # of shapes that hold themselves


def client(folder):
    """A client whose model says that every output is the input."""
    loader = botocore.session.Session().get_component("data_loader")
    model = loader.load_service_model(SERVICE, "service-2")
    model["metadata"].update(protocol=PROTOCOL, protocols=[PROTOCOL])
    kept = {}
    for name, op in model["operations"].items():
        if PROTOCOL == "query" and "output" not in op:
            continue  # its answer has no result
        if "input" in op:
            kept[name] = dict(op, output=dict(op["input"], resultWrapper=name + "Result"))
            kept[name].pop("requestcompression", None)
    model["operations"] = kept
    where = os.path.join(folder, SERVICE, model["metadata"]["apiVersion"])
    os.makedirs(where)
    with open(os.path.join(where, "service-2.json"), "w") as f:
        json.dump(model, f)
    session = botocore.session.Session()
    session.get_component("data_loader").search_paths.insert(0, folder)
    return session.create_client(
        SERVICE, region_name="us-east-1", endpoint_url=URL, aws_access_key_id=KEY, aws_secret_access_key=SECRET,
        config=botocore.config.Config(parameter_validation=False, retries={"total_max_attempts": 1}, inject_host_prefix=False),
    )  # fmt: skip


def holds_union(shape, above=()):
    """Whether an input must have a union, which no action here takes."""
    if shape.type_name != "structure" or shape.name in above:
        return False
    return getattr(shape, "is_tagged_union", False) or any(
        holds_union(shape.members[m], (*above, shape.name)) for m in shape.required_members
    )


class Filler:
    """Makes a value of its own for every member."""

    def __init__(self):
        self.n = 0

    def fill(self, shape, depth=0):
        self.n += 1
        kind = shape.type_name
        if kind == "structure":
            members = {k: m for k, m in shape.members.items() if not getattr(m, "is_tagged_union", False)}
            return {k: self.fill(m, depth + 1) for k, m in members.items() if depth < DEEPEST or k in shape.required_members}
        if kind == "list":
            return [self.fill(shape.member, depth + 1) for _ in range(2)]
        if kind == "map":
            keys = shape.key.enum[:2] or ["a 比", "b<&>"]
            return {k: self.fill(shape.value, depth + 1) for k in keys}
        if kind == "timestamp":
            at = datetime.datetime.fromtimestamp(1_770_000_000 + self.n, datetime.UTC)
            return at.replace(microsecond=self.n % 1000 * 1000 if PROTOCOL == "query" else 0)  # it sends no more
        return {
            "string": lambda: shape.enum[0] if shape.enum else f"{shape.name} {self.n} <比&>\n\"",
            "boolean": lambda: self.n % 2 == 0,
            "integer": lambda: self.n - 20, "long": lambda: 1_770_000_000_000 + self.n,
            "float": lambda: self.n / 4, "double": lambda: self.n / 10,
            "blob": lambda: bytes([self.n % 256, 0, 255]),
        }[kind]()  # fmt: skip


def main():
    with tempfile.TemporaryDirectory() as folder:
        c = client(folder)
        sent = 0
        for name in sorted(c.meta.service_model.operation_names):
            shape = c.meta.service_model.operation_model(name).input_shape
            if holds_union(shape):
                continue
            want = Filler().fill(shape)
            got = c._make_api_call(name, dict(want))
            del got["ResponseMetadata"]
            if got != want:
                sys.exit(f"{name}:\nsent {want}\nread {got}")
            sent += 1
        print(sent, "actions")


main()
