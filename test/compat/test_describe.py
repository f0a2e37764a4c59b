"""Actions that only read."""

import hashlib
import ssl

import pytest

import instances
from harness import ACCOUNT, REGION


def arn(kind, name):
    return f"arn:aws:rds:{REGION}:{ACCOUNT}:{kind}:{name}"


def every(rds, action, key, **wish):
    pages = list(rds.get_paginator(action).paginate(**wish))
    return [item for page in pages for item in page[key]]


def test_caller_identity(server):
    who = server.client("sts").get_caller_identity()
    assert who["Account"] == ACCOUNT and who["Arn"] == f"arn:aws:iam::{ACCOUNT}:root"


def test_engine_versions(rds, engine):
    versions = every(rds, "describe_db_engine_versions", "DBEngineVersions", Engine=engine.name)
    assert versions and len({v["EngineVersion"] for v in versions}) == len(versions)
    (default,) = rds.describe_db_engine_versions(Engine=engine.name, DefaultOnly=True)["DBEngineVersions"]
    assert default in versions
    assert default["DBParameterGroupFamily"] == engine.name + default["MajorEngineVersion"]
    (same,) = rds.describe_db_engine_versions(Engine=engine.name, EngineVersion=default["EngineVersion"])["DBEngineVersions"]
    assert same == default
    for name, good in [
        ("engine", engine.name), ("engine-version", default["EngineVersion"]), ("status", "available"),
        ("db-parameter-group-family", default["DBParameterGroupFamily"]), ("engine-mode", "provisioned"),
    ]:  # fmt: skip
        assert default in rds.describe_db_engine_versions(Filters=[{"Name": name, "Values": [good]}])["DBEngineVersions"]
        assert rds.describe_db_engine_versions(Filters=[{"Name": name, "Values": ["other"]}])["DBEngineVersions"] == []
    (sets,) = rds.describe_db_engine_versions(Engine=engine.name, DefaultOnly=True, ListSupportedCharacterSets=True)["DBEngineVersions"]
    assert default["DefaultCharacterSet"] in sets["SupportedCharacterSets"]
    majors = rds.describe_db_major_engine_versions(Engine=engine.name)["DBMajorEngineVersions"]
    assert {m["MajorEngineVersion"] for m in majors} == {v["MajorEngineVersion"] for v in versions}


def test_waiting_and_unknown_engines(rds):
    assert rds.describe_db_engine_versions(Engine="mysql")["DBEngineVersions"] == []
    with pytest.raises(rds.exceptions.ClientError, match="InvalidParameterValue"):
        rds.describe_db_engine_versions(Filters=[{"Name": "teapot", "Values": ["x"]}])


def test_what_is_orderable_can_be_created(server, rds, engine):
    options = every(rds, "describe_orderable_db_instance_options", "OrderableDBInstanceOptions", Engine=engine.name)
    seen = [(o["EngineVersion"], o["DBInstanceClass"], o["StorageType"]) for o in options]
    assert len(seen) == len(set(seen)) and (options[0]["EngineVersion"], instances.CLASS, "local") in seen
    only = every(
        rds, "describe_orderable_db_instance_options", "OrderableDBInstanceOptions", Engine=engine.name,
        DBInstanceClass=instances.CLASS, PaginationConfig={"PageSize": 20},
    )  # fmt: skip
    assert only == [o for o in options if o["DBInstanceClass"] == instances.CLASS]
    storage = next((o for o in only if o["StorageType"] == "gp3"), None)
    if storage is None:
        return  # this host cannot enforce IOPS, and so does not offer a type that promises them
    db = instances.create(server, engine, StorageType="gp3", AllocatedStorage=storage["MinStorageSize"])
    now = db.describe()
    assert (now["StorageType"], now["Iops"], now["StorageThroughput"]) == ("gp3", 3000, 125)
    db.delete()


def test_paging_of_options_is_complete(rds, engine):
    small = every(
        rds, "describe_orderable_db_instance_options", "OrderableDBInstanceOptions", Engine=engine.name, PaginationConfig={"PageSize": 20}
    )
    assert small == every(rds, "describe_orderable_db_instance_options", "OrderableDBInstanceOptions", Engine=engine.name)
    assert len(small) > 20


def test_valid_modifications(rds, resident):
    valid = rds.describe_valid_db_instance_modifications(DBInstanceIdentifier=resident.name)["ValidDBInstanceModificationsMessage"]
    local = next(s for s in valid["Storage"] if s["StorageType"] == "local")
    assert local["StorageSize"][0]["From"] == 20


def test_account(rds, resident):
    quotas = {q["AccountQuotaName"]: q for q in rds.describe_account_attributes()["AccountQuotas"]}
    assert quotas["DBInstances"]["Used"] >= 1
    assert all(q["Used"] <= q["Max"] for q in quotas.values())
    assert rds.describe_source_regions()["SourceRegions"] == []


def test_certificate_is_that_of_ca_pem(server, rds):
    (ca,) = rds.describe_certificates()["Certificates"]
    pem = server.send("GET", "/ca.pem")[2]
    digest = hashlib.sha1(ssl.PEM_cert_to_DER_cert(pem)).hexdigest()
    assert ca["Thumbprint"].replace(":", "").lower() == digest
    assert rds.describe_certificates(CertificateIdentifier=ca["CertificateIdentifier"])["Certificates"] == [ca]
    with pytest.raises(rds.exceptions.CertificateNotFoundFault):
        rds.describe_certificates(CertificateIdentifier="rds-ca-2019")


def test_filters(rds, resident):
    now = resident.describe()

    def found(name, *values):
        out = rds.describe_db_instances(Filters=[{"Name": name, "Values": list(values)}])["DBInstances"]
        return [i["DBInstanceIdentifier"] for i in out]

    assert found("dbi-resource-id", now["DbiResourceId"]) == [resident.name]
    assert found("db-instance-id", resident.name) == found("db-instance-id", now["DBInstanceArn"]) == [resident.name]
    assert resident.name in found("engine", now["Engine"])
    assert found("dbi-resource-id", "db-NONE") == found("engine", "mysql") == found("db-cluster-id", "c") == found("domain", "d") == []
    assert rds.describe_db_instances(DBInstanceIdentifier=now["DBInstanceArn"])["DBInstances"] == [now]
    assert rds.describe_db_instances(DBInstanceIdentifier=resident.name.upper())["DBInstances"] == [now]
    with pytest.raises(rds.exceptions.ClientError, match="InvalidParameterValue.*teapot"):
        found("teapot", "x")
    with pytest.raises(rds.exceptions.ClientError, match="InvalidParameterCombination.*must not be empty"):
        found("engine")
    assert found("db-instance-id", resident.name.upper(), "absent") == [resident.name]
    # To RDS the identifier is one more value of that filter.
    by_name = [{"Name": "db-instance-id", "Values": [resident.name]}]
    assert rds.describe_db_instances(DBInstanceIdentifier="absent", Filters=by_name)["DBInstances"] == [now]
    with pytest.raises(rds.exceptions.DBInstanceNotFoundFault):
        rds.describe_db_instances(DBInstanceIdentifier=resident.name, Filters=[{"Name": "engine", "Values": ["mysql"]}])


def test_page_sizes(rds):
    for size in (19, 101, 0, -1):
        with pytest.raises(rds.exceptions.ClientError, match="InvalidParameterValue.*MaxRecords"):
            rds.describe_db_instances(MaxRecords=size)
    for call in (rds.describe_db_instances, rds.describe_db_parameter_groups, rds.describe_db_engine_versions, rds.describe_events):
        with pytest.raises(rds.exceptions.ClientError, match="InvalidParameterValue.*Marker"):
            call(Marker="not a marker")


def test_event_categories(rds):
    maps = rds.describe_event_categories(SourceType="db-instance")["EventCategoriesMapList"]
    assert [m["SourceType"] for m in maps] == ["db-instance"] and "availability" in maps[0]["EventCategories"]
    with pytest.raises(rds.exceptions.ClientError, match="InvalidParameterValue"):
        rds.describe_event_categories(SourceType="teapot")


def test_events_have_listed_categories(rds, resident):
    """Who asks for the categories of a source finds every event of it by them."""
    listed = {m["SourceType"]: m["EventCategories"] for m in rds.describe_event_categories()["EventCategoriesMapList"]}
    events = every(rds, "describe_events", "Events", Duration=24 * 60)
    assert resident.name in {e["SourceIdentifier"] for e in events}
    for e in events:
        assert set(e["EventCategories"]) <= set(listed[e["SourceType"]]), e
    by_category = every(rds, "describe_events", "Events", Duration=24 * 60, EventCategories=sorted({c for of in listed.values() for c in of}))
    assert len(by_category) >= len(events)


def test_events_page_without_gaps(rds, resident):
    """Twenty changes of a group make more than one page."""
    rds.create_db_parameter_group(DBParameterGroupName="events", DBParameterGroupFamily=family(rds, resident), Description="d")
    name, value, _ = resident.engine.dynamic
    for n in range(25):
        rds.modify_db_parameter_group(
            DBParameterGroupName="events",
            Parameters=[{"ParameterName": name, "ParameterValue": str(int(value) + n), "ApplyMethod": "immediate"}],
        )
    wish = {"SourceType": "db-parameter-group", "SourceIdentifier": "events"}
    all_of_them = every(rds, "describe_events", "Events", **wish)
    paged = every(rds, "describe_events", "Events", **wish, PaginationConfig={"PageSize": 20})
    assert paged == all_of_them and len(all_of_them) >= 25
    assert {e["SourceArn"] for e in all_of_them} == {arn("pg", "events")}
    rds.delete_db_parameter_group(DBParameterGroupName="events")


def family(rds, db):
    (version,) = rds.describe_db_engine_versions(Engine=db.engine.name, DefaultOnly=True)["DBEngineVersions"]
    return version["DBParameterGroupFamily"]


def test_log_files(rds, resident):
    files = every(rds, "describe_db_log_files", "DescribeDBLogFiles", DBInstanceIdentifier=resident.name)
    assert files and len({f["LogFileName"] for f in files}) == len(files)
    newest = max(files, key=lambda f: f["LastWritten"])
    assert every(rds, "describe_db_log_files", "DescribeDBLogFiles", DBInstanceIdentifier=resident.name, FilenameContains="nowhere") == []
    whole, portions, marker = "", 0, "0"
    while True:
        part = rds.download_db_log_file_portion(
            DBInstanceIdentifier=resident.name, LogFileName=newest["LogFileName"], Marker=marker, NumberOfLines=2
        )
        whole, portions, marker = whole + part.get("LogFileData", ""), portions + 1, part["Marker"]
        if not part["AdditionalDataPending"]:
            break
    assert resident.engine.log_contains in whole and portions > 1
    pages = rds.get_paginator("download_db_log_file_portion").paginate(DBInstanceIdentifier=resident.name, LogFileName=newest["LogFileName"])
    assert "".join(p.get("LogFileData", "") for p in pages).startswith(whole[:200])
    for bad in ("absent", "../applied.json", "/etc/passwd", newest["LogFileName"] + "/../../applied.json"):
        with pytest.raises(rds.exceptions.DBLogFileNotFoundFault):
            rds.download_db_log_file_portion(DBInstanceIdentifier=resident.name, LogFileName=bad)
