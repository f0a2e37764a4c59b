"""Logs of engines are exported: which, and what is said of it."""

import botocore.exceptions
import pytest
from harness import wait_for


def test_types(rds, engine):
    (version,) = rds.describe_db_engine_versions(Engine=engine.name, DefaultOnly=True)["DBEngineVersions"]
    assert version["SupportsLogExportsToCloudwatchLogs"] is True
    assert version["ExportableLogTypes"] == {"postgres": ["postgresql"], "mariadb": ["error", "general", "slowquery"]}[engine.name]


def test_modify(rds, engine, resident):
    (version,) = rds.describe_db_engine_versions(Engine=engine.name, DefaultOnly=True)["DBEngineVersions"]
    types = version["ExportableLogTypes"]
    for wrong, named in (({"EnableLogTypes": ["audit", types[0], "x"]}, "'audit', 'x'"), ({"DisableLogTypes": ["upgrade"]}, "'upgrade'")):
        with pytest.raises(botocore.exceptions.ClientError) as caught:
            resident.modify(CloudwatchLogsExportConfiguration=wrong)
        error = caught.value.response["Error"]
        assert error["Code"] == "InvalidParameterCombination"
        assert error["Message"].startswith(f"You cannot use the log types {named} with engine version {engine.name} {version['EngineVersion']}. For supported")
    with pytest.raises(botocore.exceptions.ClientError, match="InvalidParameterCombination"):
        resident.modify(CloudwatchLogsExportConfiguration={"EnableLogTypes": types, "DisableLogTypes": types})
    assert "EnabledCloudwatchLogsExports" not in resident.describe()

    def exported():
        told = resident.describe()
        return told.get("EnabledCloudwatchLogsExports", []), told["PendingModifiedValues"].get("PendingCloudwatchLogsExports")

    resident.modify(CloudwatchLogsExportConfiguration={"EnableLogTypes": types[::-1]})
    wait_for("the export", lambda: exported() == (types, None), 60)
    resident.modify(CloudwatchLogsExportConfiguration={"DisableLogTypes": types[:1]})
    wait_for("the end of one", lambda: exported() == (types[1:], None), 60)
    resident.modify(CloudwatchLogsExportConfiguration={"DisableLogTypes": types})
    wait_for("the end of all", lambda: exported() == ([], None), 60)
