#!/usr/bin/env python3
"""Write the wire tables of the services from botocore's models.

Run through `go generate ./internal/aws/shape`, or with --check to fail when a
committed file is not what this script writes. The versions below are pinned: a
newer model is a reviewed change of the generated files.
"""
import gzip
import json
import os
import subprocess
import sys
import textwrap

import botocore

BOTOCORE = "1.43.11"
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", "..", "..", ".."))

SHAPE = "internal/aws/shape"

# Botocore's name and version, the Go name, whether members are written (those of our own
# structs say them).
SERVICES = [
    ("rds", "2014-10-31", "RDS", True),
    ("sts", "2011-06-15", "STS", True),
    ("ec2", "2016-11-15", "EC2", False),
    ("resourcegroupstaggingapi", "2017-01-26", "Tagging", False),
    ("pi", "2018-02-27", "PI", True),
    ("cloudwatch", "2010-08-01", "Monitoring", True),
    ("sns", "2010-03-31", "SNS", True),
    ("logs", "2014-03-28", "Logs", True),
    ("secretsmanager", "2017-10-17", "Secrets", True),
]

# Shapes that aws-sdk-go-v2/service/rds v1.132.0 and cloudwatch v1.76.0 know and
# botocore 1.43.11 does not yet. Each line goes when botocore's model has it.
NEWER = {
    "cloudwatch": {"errors": {"ValidationError": "ValidationException"}},
    "rds": {
        "actions": ["CancelDBCapacityReservation", "CreateDBCapacityReservation",
                    "DescribeDBCapacityReservations", "ModifyDBCapacityReservation"],
        "elements": {
            "TargetResourceConfigurations": "TargetResourceConfiguration",
            "AvailableCapacityPerAvailabilityZoneList": "AvailableCapacityPerAvailabilityZone",
            "CreateDBClusterInput.AssociatedRoles": "DBClusterAssociatedRole",
            "RestoreDBClusterFromS3Input.AssociatedRoles": "DBClusterAssociatedRole",
            "RestoreDBClusterFromSnapshotInput.AssociatedRoles": "DBClusterAssociatedRole",
            "RestoreDBClusterToPointInTimeInput.AssociatedRoles": "DBClusterAssociatedRole",
        },
    },
}


def load(service, version):
    path = os.path.join(os.path.dirname(botocore.__file__), "data", service, version, "service-2.json.gz")
    with gzip.open(path) as f:
        return json.load(f)


def go_types(model):
    """Yield (Go type name, shape) of every structure that can be on the wire."""
    shapes, tops = model["shapes"], set()
    for name, op in model["operations"].items():
        for key, suffix in (("input", "Input"), ("output", "Output")):
            if key in op:
                tops.add(op[key]["shape"])
                yield name + suffix, shapes[op[key]["shape"]]
    for name, shape in shapes.items():
        if shape["type"] == "structure" and name not in tops and not shape.get("exception"):
            yield name, shape


def member_table(model, lower):
    """Return the element name of each list, the odd wire names, the required members."""
    shapes, by_field, names, required = model["shapes"], {}, {}, {}
    for type_name, shape in go_types(model):
        if shape.get("required"):
            required[type_name] = [upper(m) for m in shape["required"]]
        for member, ref in shape["members"].items():
            wire = ref.get("locationName", member)
            if wire != ruled(member, lower):
                names[f"{type_name}.{upper(member)}"] = wire
            target = shapes[ref["shape"]]
            assert not target.get("flattened") and not ref.get("flattened"), "flattened: teach the codec first"
            formats = {target.get("timestampFormat"), ref.get("timestampFormat")}
            assert formats == {None}, "a format of timestamps: teach the codec first"
            if target["type"] == "map" and "locationName" in target["key"]:
                names_of = f'{target["key"]["locationName"]},{target["value"]["locationName"]}'
                by_field.setdefault(upper(member), {}).setdefault(names_of, []).append(type_name)
            if target["type"] == "list":
                element = target["member"].get("locationName", "member")
                by_field.setdefault(upper(member), {}).setdefault(element, []).append(type_name)
    return by_field, names, required


def mostly_lower(model):
    """Whether the members of a service begin in lower case, but those that `names` lists."""
    members = [m for _, shape in go_types(model) for m in shape["members"]]
    return sum(m[0].islower() for m in members) * 2 > len(members)


def ruled(name, lower):
    return name[0].lower() + name[1:] if lower else upper(name)


def upper(name):
    return name[0].upper() + name[1:]


def elements_of(by_field, newer):
    """One line per field name; a second, with the type, where a name has two elements."""
    out = {}
    for field, choices in by_field.items():
        common = max(choices, key=lambda e: (len(choices[e]), e))
        if common != "member":
            out[field] = common
        for element, types in choices.items():
            if element != common:
                out.update({f"{t}.{field}": element for t in types})
    out.update(newer)
    return out


def wrapped(words):
    return "\n".join(textwrap.wrap(" ".join(words), 118, break_long_words=False, break_on_hyphens=False))


def model_file(service, version, ident, members):
    model, newer = load(service, version), {"actions": [], "elements": {}, "errors": {}, **NEWER.get(service, {})}
    meta, operations = model["metadata"], model["operations"]
    namespace = meta.get("xmlNamespace", "") + "/" * (service == "ec2")  # EC2 itself answers with the stroke
    lines = [("Service", meta.get("signingName", meta["endpointPrefix"])), ("Version", version), ("Namespace", namespace)]
    flags = [("Flat", meta["protocol"] == "ec2"), ("Compatible", "awsQueryCompatible" in meta), ("AnyText", service in ("logs", "secretsmanager")),
             ("Sparse", service == "secretsmanager")]
    silent = [a for a, op in operations.items() if "output" not in op]
    blocks = [("Actions", sorted([a for a in operations if a not in silent] + newer["actions"])), ("Silent", sorted(silent))]
    if members:
        lower = mostly_lower(model)
        by_field, names, required = member_table(model, lower)
        flags.append(("Lower", lower))
        blocks.append(("Names", pairs(names)))
        blocks.append(("Required", pairs({k: ",".join(v) for k, v in required.items()})))
        if "query" in meta["protocols"]:
            blocks.insert(2, ("Elements", pairs(elements_of(by_field, newer["elements"]))))
            assert all("output" not in op or op["output"]["resultWrapper"] == a + "Result" for a, op in operations.items())
    if "awsQueryCompatible" in meta:
        faults = {n: s["error"].get("code", n) for n, s in model["shapes"].items() if s.get("exception")}
        faults.update({name: code for code, name in newer["errors"].items()})
        blocks.append(("Errors", pairs({code: name for name, code in faults.items() if faults.get(code) != code})))
    fields = [f'\t{k}: "{v}",' for k, v in lines if v] + [f"\t{k}: true," for k, v in flags if v]
    fields += [f"\t{k}: `\n{wrapped(v)}`," for k, v in blocks if v]
    body = "\n".join(fields)
    return gofmt(f"""// Code generated by {SHAPE}/gen/gen.py from botocore {BOTOCORE}, {service} {version}. DO NOT EDIT.

package shape

// {ident} is the wire form of {meta["serviceFullName"]}.
var {ident} = New(Text{{
{body}
}})
""")


def pairs(table):
    return [f"{k}={v}" for k, v in sorted(table.items())]


def gofmt(text):
    return subprocess.run(["gofmt"], input=text, capture_output=True, text=True, check=True).stdout


def errors_file():
    lines = []
    for service, version in (("rds", "2014-10-31"), ("sts", "2011-06-15")):
        shapes = load(service, version)["shapes"]
        found = {s["error"]["code"]: s["error"]["httpStatusCode"] for s in shapes.values() if s.get("exception")}
        lines.append(f'\t"{service}": `\n' + wrapped(f"{c}={n}" for c, n in sorted(found.items())) + "`,")
    body = "\n".join(lines)
    return f"""// Code generated by {SHAPE}/gen/gen.py from botocore {BOTOCORE}. DO NOT EDIT.

package rds

// modelErrors holds, for each service, every error code of its model with its HTTP status.
var modelErrors = map[string]string{{
{body}
}}
"""


def main():
    assert botocore.__version__ == BOTOCORE, f"needs botocore {BOTOCORE}, found {botocore.__version__}"
    files = {f"{SHAPE}/{s[2].lower()}_gen.go": model_file(*s) for s in SERVICES}
    files["internal/api/rds/errors_gen_test.go"] = errors_file()
    for path, text in files.items():
        path = os.path.join(ROOT, path)
        if "--check" not in sys.argv:
            with open(path, "w") as f:
                f.write(text)
        elif not os.path.exists(path) or open(path).read() != text:
            sys.exit(f"{path} is not current: run go generate ./internal/aws/shape")


if __name__ == "__main__":
    main()
