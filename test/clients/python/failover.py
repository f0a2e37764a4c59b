"""A client of AWS's Python wrapper that follows a failover. It runs under kurabe exec.

FAILOVER_TOLD is the connection, as JSON. The client prints "ready" once it is connected,
writes one row after the other until the writer is lost, and prints as JSON how the wrapper
told of that and who writes then.
"""

import json
import os

import psycopg
from aws_advanced_python_wrapper import AwsWrapperConnection
from aws_advanced_python_wrapper.errors import FailoverSuccessError
from aws_advanced_python_wrapper.utils.rds_utils import RdsUtils

WHO = "SELECT coalesce(rds_tools.dbi_resource_id(), ''), pg_is_in_recovery(), current_setting('ssl')"
told = json.loads(os.environ["FAILOVER_TOLD"])
suffix, dialect = told.pop("suffix"), told.pop("dialect")
RdsUtils.set_prepare_host_func(lambda host: host.replace(f".rds.{suffix}", ".rds.amazonaws.com"))

# What the wrapper reads is made with the driver alone.
with psycopg.connect(**{k: v for k, v in told.items() if k != "cluster_instance_host_pattern"}, sslmode="verify-full", autocommit=True) as plain:
    plain.execute("CREATE EXTENSION IF NOT EXISTS rds_tools")

with AwsWrapperConnection.connect(
    psycopg.Connection.connect, **told, sslmode="verify-full", connect_timeout=10,
    plugins="failover_v2", wrapper_dialect=dialect, failover_timeout_sec=120, autocommit=True,
) as connection:  # fmt: skip
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE IF NOT EXISTS followed (n int)")
    cursor.execute(WHO)
    before = cursor.fetchone()
    print("ready", flush=True)
    rows, how = 0, None
    while how is None:
        try:
            cursor.execute("INSERT INTO followed VALUES (%s)", (rows,))
            rows += 1
        except FailoverSuccessError as e:
            how = type(e).__name__
    cursor = connection.cursor()
    cursor.execute(WHO)
    after = cursor.fetchone()
    cursor.execute("SELECT count(*) FROM followed")
    (count,) = cursor.fetchone()
    cursor.execute("INSERT INTO followed VALUES (-1)")
    print(json.dumps({"how": how, "before": before, "after": after, "rows": rows, "found": count}), flush=True)
