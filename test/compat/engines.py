"""What the tests must know of each engine, so that one test fits both."""

import contextlib
import dataclasses
import re
import secrets

import psycopg
import pymysql

# Every password that a test hands to the service; test_secret looks for them.
passwords = []


def new_password():
    passwords.append("Seed" + secrets.token_hex(12))
    return passwords[-1]


@dataclasses.dataclass(frozen=True)
class Engine:
    name: str
    port: int
    license: str
    # name, value to set, what the server says then
    dynamic: tuple
    static: tuple
    formula: str  # a parameter whose default follows the memory of the class
    reserved_user: str
    longest_password: int
    log_contains: str

    @contextlib.contextmanager
    def connect(self, endpoint, user, password, database=None, tls=False, ca=None):
        if self.name == "postgres":
            connection = psycopg.connect(
                host=endpoint["Address"], port=endpoint["Port"], user=user, password=password, dbname=database or "postgres",
                sslmode="verify-full" if ca else "require" if tls else "prefer", sslrootcert=ca, autocommit=True, connect_timeout=5,
            )  # fmt: skip
        else:
            connection = pymysql.connect(
                host=endpoint["Address"], port=endpoint["Port"], user=user, password=password, database=database,
                autocommit=True, connect_timeout=5, ssl={"ca": ca, "check_hostname": True} if ca else None,
            )  # fmt: skip
        try:
            yield connection
        finally:
            connection.close()

    def refused(self):
        return psycopg.OperationalError if self.name == "postgres" else pymysql.err.OperationalError

    def setting(self, connection, name):
        """A parameter as the running server has it, in its base unit."""
        text = f"SELECT setting FROM pg_settings WHERE name = '{name}'" if self.name == "postgres" else f"SELECT @@GLOBAL.{name}"
        return str(query(connection, text)[0][0])


POSTGRES = Engine(
    name="postgres", port=5432, license="postgresql-license", dynamic=("work_mem", "8192", "8192"),
    static=("max_connections", "77", "77"), formula="shared_buffers",
    reserved_user="rdsadmin", longest_password=128, log_contains="database system is ready to accept connections",
)  # fmt: skip

MARIADB = Engine(
    name="mariadb", port=3306, license="general-public-license", dynamic=("max_connections", "123", "123"),
    static=("back_log", "66", "66"), formula="innodb_buffer_pool_size",
    reserved_user="root", longest_password=41, log_contains="ready for connections",
)  # fmt: skip

ENGINES = {e.name: e for e in (POSTGRES, MARIADB)}


def evaluate(formula, class_bytes):
    """What {DBInstanceClassMemory*3/4} and the like come to."""
    factor, divisor = re.fullmatch(r"\{DBInstanceClassMemory(?:\*(\d+))?(?:/(\d+))?\}", formula).groups("1")
    return class_bytes * int(factor) // int(divisor)


def query(connection, text):
    with connection.cursor() as cursor:
        cursor.execute(text)
        return cursor.fetchall() if cursor.description else []
